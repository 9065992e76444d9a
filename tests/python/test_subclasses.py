"""Tensor subclasses, dispatch modes, fake tensors and function transforms."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from bits import as_bytes, assert_same_bits, assert_unchanged_by_headwater, away
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

import headwater


class Logging(torch.Tensor):
    """Has bytes of its own and sees every operator."""

    seen: ClassVar[list[str]] = []

    @staticmethod
    def __new__(cls, data: torch.Tensor) -> Logging:
        return torch.Tensor._make_subclass(cls, data)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.seen.append(str(func))
        with torch._C._DisableTorchDispatch():
            result = func(*args, **(kwargs or {}))
        return cls(result) if isinstance(result, torch.Tensor) else result


class Scaled(torch.Tensor):
    """A wrapper: no bytes of its own, one inner tensor."""

    inner: torch.Tensor

    @staticmethod
    def __new__(cls, inner: torch.Tensor) -> Scaled:
        return torch.Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls, inner.shape, dtype=inner.dtype, device=inner.device
        )

    def __init__(self, inner: torch.Tensor) -> None:
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        inner = tree_map(lambda t: t.inner if isinstance(t, cls) else t, args)
        result = func(*inner, **(kwargs or {}))
        return tree_map(lambda t: cls(t) if isinstance(t, torch.Tensor) else t, result)


def test_a_subclass_with_bytes_gives_the_same_bits(device: str) -> None:
    def program(device: str) -> list[torch.Tensor]:
        x = Logging(torch.randn(8, 8, device=device))
        y = (x @ x).relu() + 1
        y.mul_(2)
        with torch._C._DisableTorchDispatch():
            return [torch.Tensor._make_subclass(torch.Tensor, y)]

    Logging.seen.clear()
    assert_unchanged_by_headwater(program, device)
    half = len(Logging.seen) // 2
    assert Logging.seen[:half] == Logging.seen[half:]


def test_a_wrappers_inner_tensor_is_managed(minimum: str) -> None:
    from headwater import _C

    wrapped = Scaled(torch.arange(64.0, device=minimum))
    result = wrapped * 2 + wrapped
    assert isinstance(result, Scaled)
    assert _C.is_managed(result.inner)
    assert as_bytes(result.inner) == as_bytes(torch.arange(64.0) * 3)


def test_a_wrapper_trains_through_its_inner_tensor(device: str) -> None:
    def program(device: str) -> list[torch.Tensor]:
        parameter = torch.nn.Parameter(Scaled(torch.randn(8, 8, device=device)))
        loss = (parameter * parameter).sum()
        loss.backward()
        return [loss.inner, parameter.grad.inner]  # type: ignore[union-attr, attr-defined]

    assert_unchanged_by_headwater(program, device)


def test_a_mode_sees_the_same_operators(device: str) -> None:
    class Count(TorchDispatchMode):
        def __init__(self) -> None:
            super().__init__()
            self.seen: list[str] = []

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None):
            self.seen.append(str(func))
            return func(*args, **(kwargs or {}))

    def run() -> tuple[list[str], list[torch.Tensor]]:
        torch.manual_seed(0)
        x = torch.randn(8, 8, device=device, requires_grad=True)
        with Count() as mode:
            (x @ x).relu().sum().backward()
        assert x.grad is not None
        return mode.seen, [x.grad]

    plain = run()
    with headwater.budget("minimum", device=device, min_tensor_bytes=1):
        managed = run()
        assert headwater.stats().bytes_offloaded > 0
    assert managed[0] == plain[0]
    assert_same_bits(managed[1], plain[1])


def test_a_function_mode_sees_exports_as_before(minimum: str) -> None:
    from torch.overrides import TorchFunctionMode

    class Watch(TorchFunctionMode):
        def __init__(self) -> None:
            super().__init__()
            self.seen: list[str] = []

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None):
            self.seen.append(func.__name__)
            return func(*args, **(kwargs or {}))

    tensor = away(torch.arange(4.0, device=minimum))
    with Watch() as mode:
        assert tensor.tolist() == [0, 1, 2, 3]
    assert "tolist" in mode.seen


def test_fake_tensors_are_left_alone(minimum: str) -> None:
    from torch._subclasses import FakeTensorMode

    real = away(torch.ones(8, 8, device=minimum))
    with FakeTensorMode() as mode:
        fake = mode.from_tensor(real)
        result = (fake @ fake).relu()
        empty = torch.empty(1 << 40, device=minimum)
    assert result.shape == (8, 8)
    assert empty.nbytes == 4 << 40
    assert real.sum().item() == 64


def test_meta_tensors_are_left_alone(minimum: str) -> None:
    layer = torch.nn.Linear(1 << 20, 1 << 20, device="meta")
    assert layer(torch.empty(1, 1 << 20, device="meta")).shape == (1, 1 << 20)


def test_function_transforms_give_the_same_bits(device: str) -> None:
    def program(device: str) -> list[torch.Tensor]:
        def loss(w: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
            return (w @ x).tanh().sum()

        w, x = torch.randn(4, 4, device=device), torch.randn(8, 4, device=device)
        gradient = torch.func.vmap(torch.func.grad(loss), (None, 0))(w, x)
        value, vjp = torch.func.vjp(lambda w: w.exp() @ w, w)
        hessian = torch.func.hessian(lambda x: (x**3).sum())(x[0])
        _, tangent = torch.func.jvp(torch.sin, (w,), (w,))
        return [gradient, value, vjp(value)[0], hessian, tangent]

    assert_unchanged_by_headwater(program, device)


def test_a_parameter_of_a_subclass_copies_and_pickles(minimum: str) -> None:
    layer = torch.nn.Linear(8, 8).to(minimum)
    layer(torch.ones(1, 8, device=minimum)).sum().backward()
    copied, pickled = copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))
    for first, second, third in zip(
        layer.parameters(), copied.parameters(), pickled.parameters(), strict=True
    ):
        assert as_bytes(first) == as_bytes(second) == as_bytes(third)


@pytest.fixture
def one_process_group(tmp_path: Path) -> Iterator[None]:
    distributed = torch.distributed
    store = distributed.FileStore(str(tmp_path / "store"), 1)
    distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    yield
    distributed.destroy_process_group()


@pytest.mark.usefixtures("one_process_group")
def test_dtensor_gives_the_same_bits() -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    mesh = init_device_mesh("cpu", (1,))

    def program(device: str) -> list[torch.Tensor]:
        w = distribute_tensor(torch.randn(8, 8), mesh, [Shard(0)]).requires_grad_()
        x = distribute_tensor(torch.randn(4, 8), mesh, [Replicate()])
        y = (x @ w).relu().sum()
        y.backward()
        assert w.grad is not None
        return [y.full_tensor(), w.grad.full_tensor(), w.to_local()]  # type: ignore[attr-defined]

    assert_unchanged_by_headwater(program, "cpu")
