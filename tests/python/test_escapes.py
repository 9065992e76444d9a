"""Bytes that leave without an operator: right when they were away, and kept as long as needed."""

from __future__ import annotations

import copy
import ctypes
import gc
import io
import pickle
from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from pathlib import Path

import numpy as np
import pytest
import torch
from bits import as_bytes, away, send_away

import headwater

VALUES = torch.arange(256, dtype=torch.float32)
RAW = VALUES.numpy().tobytes()


def managed() -> object:
    from headwater import _C

    return _C


@pytest.fixture
def tensor(minimum: str) -> torch.Tensor:
    """A managed tensor whose bytes are away."""
    return away(VALUES.to(minimum))


@pytest.fixture
def cpu_tensor() -> torch.Tensor:
    """The same, for what exists for CPU tensors only."""
    headwater.enable("minimum", device="cpu", min_tensor_bytes=1)
    return away(VALUES)


def leaves_when_unused(tensor: torch.Tensor) -> bool:
    gc.collect()
    torch.ones(16, device=tensor.device).add_(1)
    return not managed().is_resident(tensor)


# What hands out an object over the bytes, which stay while it lives.
EXPORTS: dict[str, Callable[[torch.Tensor], np.ndarray]] = {
    "numpy": lambda t: t.numpy(),
    "numpy, forced": lambda t: t.requires_grad_().numpy(force=True),
    "numpy of a parameter without gradients": lambda t: torch.nn.Parameter(t, False).numpy(),
    "numpy of a view": lambda t: t.view(4, 64).numpy(),
    "asarray": np.asarray,
    "dlpack": np.from_dlpack,
}


@pytest.mark.parametrize("export", EXPORTS.values(), ids=EXPORTS.keys())
def test_an_exported_array_keeps_the_bytes_while_it_lives(
    export: Callable[[torch.Tensor], np.ndarray], cpu_tensor: torch.Tensor
) -> None:
    array = export(cpu_tensor)
    assert array.tobytes() == RAW
    part = array.reshape(-1)[8:16]
    del array
    assert not leaves_when_unused(cpu_tensor)
    assert part[0] == 8
    del part
    assert leaves_when_unused(cpu_tensor)


def test_an_exported_array_and_its_tensor_see_each_others_writes(cpu_tensor: torch.Tensor) -> None:
    array = cpu_tensor.numpy()
    cpu_tensor[0] = 100
    array[1] = 200
    assert array[0] == 100
    assert cpu_tensor[1].item() == 200
    del array
    send_away(cpu_tensor)
    assert cpu_tensor[:2].tolist() == [100, 200]


def test_an_array_under_no_grad_shares_a_parameters_bytes(cpu_tensor: torch.Tensor) -> None:
    parameter = torch.nn.Parameter(cpu_tensor)
    with torch.no_grad():
        array = parameter.numpy()
    array[0] = 7
    del array
    assert parameter[0].item() == 7


def test_an_array_outlives_its_tensor(cpu_tensor: torch.Tensor) -> None:
    array = cpu_tensor.numpy()
    pinned = headwater.stats().pinned_bytes
    assert pinned >= len(RAW)
    expected = array.tobytes()
    kept = cpu_tensor.data
    del cpu_tensor
    assert array.tobytes() == expected
    del array
    assert leaves_when_unused(kept)


@pytest.mark.parametrize(
    "refused",
    [
        lambda t: t.requires_grad_().numpy(),
        lambda t: torch.view_as_complex(t.view(-1, 2)).conj().numpy(),
        lambda t: t.requires_grad_().__dlpack__(),
    ],
)
def test_what_torch_refuses_to_export_is_refused_as_before(
    refused: Callable[[torch.Tensor], object], cpu_tensor: torch.Tensor
) -> None:
    with pytest.raises((RuntimeError, BufferError)):
        refused(cpu_tensor)
    assert headwater.stats().pinned_bytes == 0


def test_numpy_of_a_gpu_tensor_is_refused_as_before(tensor: torch.Tensor) -> None:
    if tensor.is_cuda:
        with pytest.raises(TypeError, match="can't convert cuda"):
            tensor.numpy()


@pytest.mark.parametrize(
    "capsule",
    [
        torch.Tensor.__dlpack__,
        lambda t: torch.utils.dlpack.to_dlpack(t),
        lambda t: torch.to_dlpack(t),
    ],
    ids=["__dlpack__", "torch.utils.dlpack.to_dlpack", "torch.to_dlpack"],
)
def test_a_dlpack_capsule_keeps_the_bytes(
    capsule: Callable[[torch.Tensor], object], tensor: torch.Tensor
) -> None:
    other = torch.from_dlpack(capsule(tensor))
    assert as_bytes(other) == RAW
    other[0] = 5
    assert not leaves_when_unused(tensor)
    del other
    assert leaves_when_unused(tensor)
    assert tensor[0].item() == 5


def test_the_c_exchange_api_is_hidden_so_that_dlpack_is_used_instead(minimum: str) -> None:
    assert not hasattr(torch.Tensor, "__dlpack_c_exchange_api__")


@pytest.mark.parametrize("owner", ["tensor", "storage"])
def test_an_address_stays_true_to_the_end_of_the_step(owner: str, cpu_tensor: torch.Tensor) -> None:
    view = cpu_tensor[2:]
    address = view.data_ptr() if owner == "tensor" else cpu_tensor.untyped_storage().data_ptr() + 8
    assert not leaves_when_unused(cpu_tensor)
    assert ctypes.string_at(address, 8) == RAW[8:16]
    headwater.end_step()
    assert leaves_when_unused(cpu_tensor)


def test_an_optimizers_step_ends_the_step(minimum: str) -> None:
    parameter = torch.nn.Parameter(torch.ones(64, device=minimum))
    other = torch.ones(64, device=minimum)
    other.data_ptr()
    parameter.sum().backward()
    torch.optim.SGD([parameter], lr=0.1).step()
    assert leaves_when_unused(other)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_the_cuda_array_interface_holds_for_good() -> None:
    headwater.enable("minimum", device="cuda", min_tensor_bytes=1)
    tensor = away(VALUES.cuda())
    assert tensor.__cuda_array_interface__["data"][0] != 0
    headwater.end_step()
    assert not leaves_when_unused(tensor)


def test_the_cuda_array_interface_of_a_cpu_tensor_is_still_missing(
    cpu_tensor: torch.Tensor,
) -> None:
    assert not hasattr(cpu_tensor, "__cuda_array_interface__")
    assert leaves_when_unused(cpu_tensor)


# What reads the bytes during a call only: each returns what must equal RAW.
def _saved(tensor: torch.Tensor, **options: object) -> bytes:
    file = io.BytesIO()
    torch.save({"t": tensor, "view": tensor[4:]}, file, **options)  # type: ignore[arg-type]
    file.seek(0)
    loaded = torch.load(file)
    assert loaded["view"].untyped_storage()._cdata == loaded["t"].untyped_storage()._cdata
    return as_bytes(loaded["t"])


def _changed_storage(tensor: torch.Tensor) -> bytes:
    storage = tensor.untyped_storage()
    storage.fill_(1)
    storage[0] = 3
    assert storage[0] == 3 and storage[1] == 1
    storage.copy_(VALUES.to(tensor.device).untyped_storage())
    return as_bytes(tensor)


def _resized_to_nothing_and_back(tensor: torch.Tensor) -> bytes:
    storage = tensor.untyped_storage()
    size = storage.nbytes()
    storage.resize_(0)
    assert storage.nbytes() == 0
    storage.resize_(size)
    tensor.copy_(VALUES)
    return as_bytes(tensor)


READS: dict[str, Callable[[torch.Tensor], bytes]] = {
    "tolist": lambda t: np.array(t.tolist(), dtype=np.float32).tobytes(),
    "item by item": lambda t: np.array([x.item() for x in t], dtype=np.float32).tobytes(),
    "cpu": lambda t: as_bytes(t.cpu()),
    "torch.save": _saved,
    "torch.save, legacy": lambda t: _saved(t, _use_new_zipfile_serialization=False),
    "pickle": lambda t: as_bytes(pickle.loads(pickle.dumps(t))),
    "pickle of a parameter": lambda t: as_bytes(pickle.loads(pickle.dumps(torch.nn.Parameter(t)))),
    "copy": lambda t: as_bytes(copy.copy(t)),
    "deepcopy": lambda t: as_bytes(copy.deepcopy(t)),
    "deepcopy of a parameter": lambda t: as_bytes(copy.deepcopy(torch.nn.Parameter(t))),
    "deepcopy of a storage": lambda t: bytes(copy.deepcopy(t.untyped_storage()).cpu()),
    "storage, clone": lambda t: bytes(t.untyped_storage().clone().cpu()),
    "storage, tolist": lambda t: bytes(t.untyped_storage().tolist()),
    "storage, bytes": lambda t: bytes(t.untyped_storage()),
    "storage, cpu": lambda t: bytes(t.untyped_storage().cpu()),
    "storage, write and copy": _changed_storage,
    "storage, resize": _resized_to_nothing_and_back,
    "typed storage, tolist": lambda t: np.array(t._typed_storage().tolist(), "f4").tobytes(),
    "typed storage, clone": lambda t: bytes(t._typed_storage().clone().untyped().cpu()),
    "typed storage, double": lambda t: np.array(
        t._typed_storage().double().tolist(), "f4"
    ).tobytes(),
}


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
@pytest.mark.parametrize("read", READS.values(), ids=READS.keys())
def test_a_read_finds_the_bytes_and_leaves_nothing_pinned(
    read: Callable[[torch.Tensor], bytes], tensor: torch.Tensor
) -> None:
    assert read(tensor) == RAW
    assert headwater.stats().pinned_bytes == 0


CPU_READS: dict[str, Callable[[torch.Tensor], bytes]] = {
    "apply_": lambda t: as_bytes(t.apply_(lambda x: x)),
    "map_": lambda t: as_bytes(t.map_(away(VALUES), lambda _, b: b)),
    "byteswap": lambda t: (
        t.untyped_storage().byteswap(torch.float32),
        t.untyped_storage().byteswap(torch.float32),
        as_bytes(t),
    )[2],
}


@pytest.mark.parametrize("read", CPU_READS.values(), ids=CPU_READS.keys())
def test_a_read_of_a_cpu_tensor_finds_the_bytes(
    read: Callable[[torch.Tensor], bytes], cpu_tensor: torch.Tensor
) -> None:
    assert read(cpu_tensor) == RAW
    assert headwater.stats().pinned_bytes == 0


def test_a_slice_of_a_storage_keeps_the_bytes(cpu_tensor: torch.Tensor) -> None:
    part = cpu_tensor.untyped_storage()[8:16]
    assert not leaves_when_unused(cpu_tensor)
    assert bytes(part) == RAW[8:16]
    del part
    assert leaves_when_unused(cpu_tensor)


def test_a_storage_is_not_shared_until_it_is(cpu_tensor: torch.Tensor) -> None:
    assert not cpu_tensor.is_shared()
    cpu_tensor.share_memory_()
    assert cpu_tensor.is_shared()
    torch.ones(16).add_(1)
    assert not managed().is_managed(cpu_tensor)
    assert as_bytes(cpu_tensor) == RAW


def test_a_tensor_can_be_sent_to_another_process(cpu_tensor: torch.Tensor) -> None:
    import torch.multiprocessing  # noqa: F401  registers how tensors are sent

    received = pickle.loads(ForkingPickler.dumps(cpu_tensor))
    assert as_bytes(received) == RAW


def test_is_pinned_answers_for_a_tensor_that_is_away(cpu_tensor: torch.Tensor) -> None:
    assert not cpu_tensor.is_pinned()
    if torch.cuda.is_available():
        assert as_bytes(cpu_tensor.pin_memory()) == RAW


def test_saving_a_model_needs_no_more_room_than_its_largest_tensor(
    device: str, tmp_path: Path
) -> None:
    model = torch.nn.Sequential(*[torch.nn.Linear(128, 128) for _ in range(8)]).to(device)
    expected = [p.detach().clone() for p in model.parameters()]
    headwater.enable("160KiB", device=device, min_tensor_bytes=1)
    model(torch.ones(1, 128, device=device))
    torch.save(model.state_dict(), tmp_path / "model.pt")
    copied = copy.deepcopy(model)
    loaded = torch.load(tmp_path / "model.pt")
    for first, second, third in zip(expected, copied.parameters(), loaded.values(), strict=True):
        assert as_bytes(first) == as_bytes(second) == as_bytes(third)


def test_random_state_can_be_set_from_a_tensor_that_is_away() -> None:
    headwater.enable("minimum", device="cpu", min_tensor_bytes=1)
    state = away(torch.stack([torch.get_rng_state()] * 2))[0]  # one alone is never managed
    first = torch.rand(4).tolist()
    torch.set_rng_state(state)
    assert torch.rand(4).tolist() == first


@pytest.mark.parametrize(
    "make",
    [
        lambda t: torch.tensor([t[0], t[1], 2.0]),
        lambda t: torch.tensor([[t[0]], [t[1:2]], [2.0]]).view(-1),
        lambda t: torch.as_tensor((t[0], t[1], t[2])),
        lambda t: torch.asarray([t[0], t[1], t[2]]),
        lambda t: t.new_tensor([t[0], t[1], t[2]]),
        lambda t: torch.sparse_coo_tensor([[0, 1, 2]], [t[0], t[1], t[2]]).to_dense(),
    ],
    ids=["tensor", "nested", "as_tensor", "asarray", "new_tensor", "sparse"],
)
def test_a_tensor_is_made_from_a_list_of_tensors_that_are_away(
    make: Callable[[torch.Tensor], torch.Tensor], tensor: torch.Tensor
) -> None:
    assert make(tensor).tolist() == [0.0, 1.0, 2.0]
    assert headwater.stats().pinned_bytes == 0


def test_an_address_read_outside_all_this_raises_and_does_not_crash(
    cpu_tensor: torch.Tensor,
) -> None:
    unwrapped = torch._C.TensorBase.data_ptr
    if tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 13):
        with pytest.raises(RuntimeError):
            unwrapped(cpu_tensor)
    else:
        assert unwrapped(cpu_tensor) == 0


def test_a_subclass_of_tensor_exports_like_its_base(minimum: str) -> None:
    class Named(torch.Tensor):
        pass

    tensor = VALUES.to(minimum).as_subclass(Named)
    tensor = tensor + 0
    assert isinstance(tensor, Named)
    assert tensor.tolist() == VALUES.tolist()
    if minimum == "cpu":
        assert tensor.numpy().tobytes() == RAW


def test_what_needs_fixed_addresses_is_refused(cpu_tensor: torch.Tensor) -> None:
    if hasattr(torch.UntypedStorage, "_swap_data_ptr_"):
        storage = cpu_tensor.untyped_storage()
        with pytest.raises(RuntimeError, match=r"never move.*_swap_data_ptr_"):
            storage._swap_data_ptr_(storage)


def test_an_array_outlives_a_resize_of_its_tensor(minimum: str) -> None:
    if minimum != "cpu":
        pytest.skip("arrays are made of CPU tensors")
    tensor = torch.arange(4096.0)
    array = tensor.numpy()
    tensor.resize_(1 << 16)
    tensor.fill_(1.0)
    assert array[:3].tolist() == [0.0, 1.0, 2.0]


def test_an_array_stays_true_in_a_later_session() -> None:
    headwater.enable("minimum", device="cpu", min_tensor_bytes=1)
    tensor = torch.arange(64.0)
    array = tensor.numpy()
    headwater.disable()
    headwater.enable("minimum", device="cpu", min_tensor_bytes=1)
    tensor.add_(1)
    torch.ones(64).add(1)
    assert array[:2].tolist() == [1.0, 2.0]
