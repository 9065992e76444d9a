"""What is not made again since its bytes could differ, and what a replay puts back."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from bits import as_bytes, enable_minimum
from torch import Tensor

import headwater
from headwater import _C

# What properties of torch.backends call; those are frozen where PyTorch's own tests are loaded.
precision = torch._C._get_fp32_precision_getter
set_precision = torch._C._set_fp32_precision_setter


@pytest.fixture
def precisions() -> Iterator[None]:
    """Those of PyTorch when it starts, before and after: to set one for all sets others too."""
    of_libraries = [(lib, op) for lib in ("cuda", "mkldnn") for op in ("conv", "rnn")]
    before = {which: precision(*which) for which in of_libraries}

    def reset() -> None:
        torch.set_float32_matmul_precision("highest")
        for backend, operator in (("generic", "all"), ("cuda", "matmul"), ("mkldnn", "matmul")):
            set_precision(backend, operator, "none")
        for which, value in before.items():
            set_precision(*which, value)

    reset()
    yield
    reset()


@pytest.mark.usefixtures("precisions")
@pytest.mark.parametrize("setting", [("generic", "all"), ("cuda", "matmul")], ids=str)
def test_a_precision_of_the_newer_kind_is_no_error(setting: tuple[str, str], minimum: str) -> None:
    set_precision(*setting, "tf32")
    source = torch.arange(4096.0).to(minimum)
    with headwater.region("recompute"):
        double = source * 2
    assert torch.equal(double.cpu(), torch.arange(4096.0) * 2)
    assert headwater.stats().num_replays == 1


@pytest.mark.usefixtures("precisions")
@pytest.mark.parametrize("older", [True, False])
def test_precisions_are_put_back(older: bool) -> None:
    torch.manual_seed(0)
    left, right = torch.randn(64, 64), torch.randn(64, 64)
    expected = left @ right
    enable_minimum("cpu")
    left, right = left + 0, right + 0
    with headwater.region("recompute"):
        product = left @ right
    if older:
        torch.set_float32_matmul_precision("medium")
    else:
        set_precision("generic", "all", "bf16")
    assert torch.equal(product, expected)
    assert headwater.stats().num_replays == 1
    assert precision("mkldnn", "matmul") == "bf16"
    if older:
        assert torch.get_float32_matmul_precision() == "medium"
    else:  # it still follows what is set for all
        set_precision("generic", "all", "ieee")
        assert precision("mkldnn", "matmul") == "ieee"


RAW = bytes(range(256)) * 64


def enable_with_room() -> None:
    """For a few tensors of that size, which then stay until others need the room."""
    headwater.enable(4 * len(RAW), device="cpu", min_tensor_bytes=1, standby="off")


def write_unseen(tensor: Tensor) -> None:
    """As a kernel of an extension does with what it has asked for."""
    ctypes.memmove(torch._C.TensorBase.data_ptr(tensor), RAW, len(RAW))


def crowd_out(*tensors: Tensor) -> None:
    others = [torch.ones(len(RAW) // 4) for _ in range(8)]
    assert not any(_C.is_resident(tensor) for tensor in tensors)
    del others


FACTORIES: dict[str, Callable[[], Tensor]] = {
    "empty": lambda: torch.empty(4096),
    "zeros": lambda: torch.zeros(4096),
    "full": lambda: torch.full((4096,), 3.0),
    "new_zeros": lambda: torch.ones(1).new_zeros(4096),
    "fill": lambda: torch.empty(4096).fill_(2.0),
    "scaled": lambda: torch.zeros(4096).mul_(2.0),
}


@pytest.mark.parametrize("name", FACTORIES)
def test_what_a_kernel_fills_unseen_is_not_made_again(name: str) -> None:
    enable_with_room()
    with headwater.region("recompute"):
        made = FACTORIES[name]()
        write_unseen(made)
    crowd_out(made)
    assert as_bytes(made) == RAW


@pytest.mark.parametrize("keep", [True, False])
def test_nor_is_it_where_something_else_is_made_of_it(keep: bool) -> None:
    enable_with_room()
    with headwater.region("recompute"):
        made = torch.zeros(4096)
        write_unseen(made)
        flipped = made.view(torch.int32).flip(0)
        further = flipped + 1
    kept = made if keep else None
    del made, flipped
    expected = torch.frombuffer(bytearray(RAW), dtype=torch.int32).flip(0) + 1
    crowd_out(further)
    assert torch.equal(further, expected)
    assert kept is None or as_bytes(kept) == RAW


def test_nor_is_it_where_it_is_changed_in_place() -> None:
    enable_with_room()
    bias = torch.ones(4096, dtype=torch.int32) + 0
    with headwater.region("recompute"):
        made = torch.empty(4096, dtype=torch.int32)
        write_unseen(made)
        made.add_(bias)
    crowd_out(made)
    assert torch.equal(made, torch.frombuffer(bytearray(RAW), dtype=torch.int32) + 1)


def test_what_is_filled_by_operators_is_made_again(minimum: str) -> None:
    source = torch.arange(4096.0).to(minimum)
    with headwater.region("recompute"):
        copied = torch.empty_like(source).copy_(source)
        drawn = torch.empty_like(source).bernoulli_(0.5).div_(0.5)
    before = headwater.stats().num_replays
    assert torch.equal(copied.cpu(), torch.arange(4096.0))
    assert headwater.stats().num_replays == before + 1
    assert set(drawn.tolist()) == {0.0, 2.0}
    assert headwater.stats().num_replays == before + 2


def test_attention_without_dropout_is_made_again(minimum: str) -> None:
    torch.manual_seed(0)
    query = torch.randn(2, 4, 64, 32).to(minimum)
    expected = F.scaled_dot_product_attention(query, query, query).cpu()
    random = torch.get_rng_state()
    with headwater.region("recompute"):
        made = F.scaled_dot_product_attention(query, query, query)
    assert torch.equal(made.cpu(), expected)
    assert headwater.stats().num_replays > 0
    assert torch.equal(torch.get_rng_state(), random)
