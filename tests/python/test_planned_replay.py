"""Once steps repeat, plans decide what is kept, offloaded or made again; the bits stay the same."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from new_process import in_a_new_process
from test_replay import BLOCKS, WIDTH, Block, deterministic, digest, run_plainly
from torch import Tensor, nn

import headwater
from headwater import _C

STEPS, BATCH, DEPTH = 10, 256, 12
Run = Callable[[Block, Tensor], Tensor]


def in_region(choice: str) -> Run:
    return headwater.region(choice)(run_plainly)


def train(
    make: Callable[[], nn.Module],
    device: str,
    run: Run,
    steps: int = STEPS,
    before_step: Callable[[int], None] = lambda step: None,
) -> tuple[object, ...]:
    """Trains for as many steps as it takes to have a plan and to follow it."""
    torch.manual_seed(0)
    net = nn.Sequential(*(make() for _ in range(DEPTH))).to(device)
    parameters = list(net.parameters()) or [nn.Parameter(torch.zeros(1, device=device))]
    optimizer = torch.optim.SGD(parameters, lr=0.05, momentum=0.9)
    losses = []
    for step in range(steps):
        before_step(step)
        x = torch.randn(BATCH, WIDTH).to(device).requires_grad_()
        loss = run(net, x).square().mean()
        loss.backward()
        losses.append(loss.item().hex())
        optimizer.step()
        optimizer.zero_grad()
        _C.finish_planning()
    return digest(net, losses, device)


def plain(make: Callable[[], nn.Module], device: str) -> tuple[tuple[object, ...], int]:
    """What plain PyTorch computes, and the most bytes it has on the device at once."""
    expected = train(make, device, run_plainly)
    headwater.enable("4GiB" if device == "cpu" else 0.5, device=device, standby="off")
    train(make, device, run_plainly)
    peak = headwater.stats().peak_bytes
    headwater.disable()
    return expected, peak


def replays_of_the_last_steps(run: Callable[[Callable[[int], None]], object], num: int) -> int:
    before: list[int] = []
    run(lambda step: before.append(headwater.stats().num_replays))
    return headwater.stats().num_replays - before[-num]


@pytest.mark.parametrize("share", [0.8, 0.5])
# What it takes to make a mask again is four times as large: too much beside so small a budget.
@pytest.mark.parametrize("name", [name for name in BLOCKS if name != "mask"])
def test_what_a_region_asks_for_is_planned_and_made_again(
    name: str, share: float, device: str
) -> None:
    with deterministic(device):
        expected, peak = plain(BLOCKS[name], device)
        headwater.enable(int(share * peak), device=device)
        result: list[object] = []
        run = in_region("recompute")
        replays = replays_of_the_last_steps(
            lambda before: result.append(train(BLOCKS[name], device, run, before_step=before)), 3
        )
        stats = headwater.stats()
        headwater.disable()
    assert result == [expected]
    assert stats.num_plans > 0
    assert stats.planned_replay_seconds > 0
    assert replays > 0
    assert stats.num_replays_refused == 0
    assert stats.peak_bytes <= int(share * peak)


class Cut(nn.Module):
    """Three tensors are made of a product that backward itself does not need."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        product = self.layer(x)
        return torch.addcmul(product.tanh(), product.sigmoid(), product.relu())


def test_what_several_tensors_are_made_of_is_made_once(device: str) -> None:
    with deterministic(device):
        expected, peak = plain(Cut, device)
        headwater.enable(peak // 2, device=device)
        counts: list[tuple[int, int]] = []

        def count(step: int) -> None:
            counts.append((headwater.stats().num_replays, headwater.stats().num_replayed_ops))

        assert train(Cut, device, in_region("recompute"), before_step=count) == expected
    replays, runs = (last - before for before, last in zip(*counts[-2:], strict=True))
    assert replays >= DEPTH
    assert runs <= 1.5 * replays  # the three alone would run two operators each
    assert headwater.stats().num_replays_refused == 0


@pytest.mark.parametrize("choice", ["keep", "offload"])
def test_what_is_to_be_kept_or_copied_is_not_made_again(choice: str, device: str) -> None:
    with deterministic(device):
        expected, peak = plain(BLOCKS["dropout"], device)
        headwater.enable(peak // 2, device=device)
        assert train(BLOCKS["dropout"], device, in_region(choice)) == expected
    assert headwater.stats().num_plans > 0
    assert headwater.stats().num_replays == 0


def test_plans_make_nothing_again_where_that_is_switched_off(device: str) -> None:
    with deterministic(device):
        expected, peak = plain(BLOCKS["residual"], device)
        headwater.enable(peak // 2, device=device, recompute="off")
        assert train(BLOCKS["residual"], device, run_plainly) == expected
    assert headwater.stats().num_plans > 0
    assert headwater.stats().num_replays == 0


def test_regions_count_where_plans_make_nothing_again(device: str) -> None:
    with deterministic(device):
        expected, peak = plain(BLOCKS["residual"], device)
        headwater.enable(peak // 2, device=device, recompute="off")
        result: list[object] = []
        replays = replays_of_the_last_steps(
            lambda before: result.append(
                train(BLOCKS["residual"], device, in_region("recompute"), before_step=before)
            ),
            3,
        )
    assert result == [expected]
    assert replays > 0


def test_what_cannot_be_made_again_after_all_is_copied() -> None:
    """An array over an activation may change it unseen."""
    arrays = []

    class Watched(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            hidden = torch.tanh(x * 1.5)
            arrays.append(hidden.detach().numpy())
            del arrays[:-2]
            return torch.sin(hidden)

    expected, peak = plain(Watched, "cpu")
    headwater.enable(peak * 7 // 10, device="cpu")
    assert train(Watched, "cpu", in_region("recompute"), steps=STEPS) == expected
    arrays.clear()


def test_a_policy_is_asked_once_for_each_kind_of_operator(device: str) -> None:
    asked: list[tuple[str, tuple[int, ...]]] = []

    def policy(op: str, made: Tensor) -> str | None:
        asked.append((op, tuple(made.shape)))
        return "recompute" if op in ("aten::gelu", "aten::tanh") else "offload"

    with deterministic(device):
        expected, peak = plain(BLOCKS["dropout"], device)
        headwater.enable(peak // 2, device=device)
        headwater.set_policy(policy)
        assert train(BLOCKS["dropout"], device, run_plainly) == expected
        stats = headwater.stats()
        headwater.disable()
    assert stats.num_replays > 0
    assert asked.count(("aten::gelu", (BATCH, WIDTH))) == 1


def test_a_policy_may_look_at_what_was_made(device: str) -> None:
    def policy(op: str, made: Tensor) -> str | None:
        return "recompute" if made.is_floating_point() and float(made.max()) > 0 else None

    with deterministic(device):
        expected, peak = plain(BLOCKS["dropout"], device)
        headwater.enable(peak // 2, device=device)
        headwater.set_policy(policy)
        assert train(BLOCKS["dropout"], device, run_plainly) == expected
    assert headwater.stats().num_replays > 0


def test_an_activation_that_is_held_once_is_made_again_later() -> None:
    held = []
    steps = 12

    class Watched(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            hidden = torch.tanh(x * 1.5)
            held.append(hidden.detach().numpy() if len(held) == 7 * DEPTH + 3 else None)
            return torch.sin(hidden)

    _, peak = plain(Watched, "cpu")
    held.clear()
    headwater.enable(peak * 7 // 10, device="cpu")
    run = in_region("recompute")
    replays = replays_of_the_last_steps(lambda before: train(Watched, "cpu", run, steps, before), 3)
    assert headwater.stats().num_replays_refused <= 1
    assert replays > 0
    assert headwater.stats().num_plans == 1


def test_steps_of_two_lengths_that_take_turns_have_a_plan_each(device: str) -> None:
    torch.manual_seed(0)
    net = nn.Sequential(*(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()) for _ in range(DEPTH)))
    net.to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    batches = [torch.randn(rows, WIDTH).to(device) for rows in (1024, 768)]
    headwater.enable("1500KiB", device=device)
    plans = []
    for step in range(24):
        net(batches[step % 2]).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        _C.finish_planning()
        plans.append(headwater.stats().num_plans)
    assert plans[-1] == plans[-12] == 2
    assert headwater.stats().num_stages > 0


def test_a_step_that_no_plan_knows_makes_again_what_its_region_says(device: str) -> None:
    torch.manual_seed(0)
    net = nn.Sequential(*(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()) for _ in range(DEPTH)))
    net.to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    usual, odd = (torch.randn(rows, WIDTH).to(device) for rows in (768, 1024))
    headwater.enable("1500KiB", device=device)
    replays = []
    for batch in [usual] * 8 + [odd]:
        with headwater.region("recompute"):
            loss = net(batch).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        _C.finish_planning()
        replays.append(headwater.stats().num_replays)
    assert headwater.stats().num_plans == 1
    assert replays[-1] - replays[-2] >= DEPTH // 2


def test_a_policy_that_says_something_else_is_told_so(device: str) -> None:
    _, peak = plain(BLOCKS["dropout"], device)
    headwater.enable(peak // 2, device=device)
    headwater.set_policy(lambda op, made: "forget")
    with pytest.raises(ValueError, match="'keep', 'offload', 'recompute' or None: 'forget'"):
        train(BLOCKS["dropout"], device, run_plainly)
    headwater.set_policy(None)
    train(BLOCKS["dropout"], device, run_plainly)


@pytest.mark.parametrize("ending", ["headwater.disable()", "pass", "headwater.set_policy(None)"])
def test_a_process_with_a_policy_ends_as_any_other(ending: str) -> None:
    result = in_a_new_process(
        "import torch, headwater\n"
        "headwater.enable('4MiB', device='cpu')\n"
        "headwater.set_policy(lambda op, made: 'recompute')\n"
        "torch.ones(4096).mul_(2)\n" + ending
    )
    assert result.returncode == 0, result.stderr


def test_a_policy_needs_a_session() -> None:
    with pytest.raises(RuntimeError, match="not enabled"):
        headwater.set_policy(None)
