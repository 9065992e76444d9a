"""Places that max pooling finds travel packed: fewer bytes, the same bits."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812
from bits import enable_minimum

import headwater

PLACES = 2 * 16 * 32 * 32
PLACE_BYTES = PLACES * 8


def pool(device: str) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    images = torch.randn(2, 16, 64, 64).to(device)
    return F.max_pool2d(images, 2, return_indices=True)


def test_places_move_as_a_quarter_of_their_bytes(minimum: str) -> None:
    _, places = pool(minimum)
    before = headwater.stats().bytes_fetched
    found = places.clone()
    moved = headwater.stats().bytes_fetched - before
    assert PLACE_BYTES // 4 <= moved < PLACE_BYTES // 2
    assert torch.equal(found.cpu(), places.cpu())


def test_places_that_somebody_wrote_keep_their_bits(minimum: str) -> None:
    _, places = pool(minimum)
    before = places.cpu().clone()
    places.sub_(1 << 40)
    assert torch.equal(places.cpu(), before - (1 << 40))
    view = places.view(-1)[::2]
    view.mul_(3)
    assert torch.equal(view.cpu(), (before - (1 << 40)).view(-1)[::2] * 3)


def test_places_that_somebody_wrote_by_address_keep_their_bits() -> None:
    enable_minimum("cpu")
    _, places = pool("cpu")
    array = places.numpy()
    array -= 1 << 40
    del array
    before = places.clone()
    assert int(before.max()) < 0
    assert torch.equal(places.clone(), before)


def test_places_in_a_plane_too_large_for_16_bits_stay_as_they_are(minimum: str) -> None:
    torch.manual_seed(0)
    images = torch.zeros(1, 1, 300, 300)
    images[..., 299, 299] = 1
    _, places = F.max_pool2d(images.to(minimum), 2, return_indices=True)
    assert int(places.max()) == 300 * 300 - 1
    assert int(places.clone().max()) == 300 * 300 - 1


def test_places_of_windows_with_gaps_stay_as_they_are(minimum: str) -> None:
    images = torch.randn(1, 1, 2, 32768).to(minimum)
    options = {"kernel_size": 2, "stride": 1, "padding": 1, "dilation": 3, "return_indices": True}
    _, places = F.max_pool2d(torch.cat([images, images], dim=2), **options)
    headwater.disable()
    _, expected = F.max_pool2d(torch.cat([images, images], dim=2), **options)
    assert torch.equal(places, expected)


def test_a_network_with_pooling_trains_to_the_same_bits(device: str) -> None:
    def train() -> list[bytes]:
        torch.manual_seed(0)
        weight = torch.nn.Parameter(torch.randn(8, 3, 3, 3).to(device))
        optimizer = torch.optim.SGD([weight], lr=0.1)
        losses = []
        for _ in range(5):
            optimizer.zero_grad()
            hidden = F.max_pool2d(F.conv2d(torch.ones(4, 3, 40, 40).to(device), weight), 2)
            loss = F.max_pool2d(hidden, 3, stride=2, padding=1).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach().cpu().numpy().tobytes())
        return losses

    plain = train()
    enable_minimum(device)
    assert train() == plain
