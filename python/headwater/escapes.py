"""Where PyTorch's Python code reads bytes without dispatching an operator.

Every such place is a row of the table: which attribute, and for how long its caller may use the
bytes. While Headwater is enabled the attribute is wrapped so that the bytes are on the device
first; ``install``'s undo puts back exactly what was there.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch

from headwater import escape_kinds as kinds
from headwater import tool_kinds as tools

_Kind = Callable[[Any, str], Any]

_TENSOR = torch.Tensor
_STORAGE = torch.UntypedStorage

# TypedStorage and the rest of both classes reach bytes through these or through operators.
_ROWS: list[tuple[Any, _Kind, tuple[str, ...]]] = [
    (_TENSOR, kinds.address, ("data_ptr", "const_data_ptr")),
    (_TENSOR, kinds.export, ("numpy",)),
    (_TENSOR, kinds.call, ("tolist", "apply_", "map_", "map2_", "pin_memory", "is_pinned")),
    (_TENSOR, kinds.permanent_property, ("__cuda_array_interface__",)),
    # Hands out addresses through C functions; without it consumers call __dlpack__.
    (_TENSOR, kinds.hidden, ("__dlpack_c_exchange_api__",)),
    (_STORAGE, kinds.address, ("data_ptr",)),
    (_STORAGE, kinds.storage_item, ("__getitem__",)),
    (_STORAGE, kinds.permanent, ("_share_cuda_",)),
    (_STORAGE, kinds.refused, ("_swap_data_ptr_", "_resize_with_addr_")),
    (_STORAGE, kinds.call, ("__setitem__", "copy_", "fill_", "resize_", "tolist", "clone")),
    (_STORAGE, kinds.call, ("_byteswap", "_write_file", "_set_from_file", "_get_filename")),
    (_STORAGE, kinds.call, ("is_shared", "_share_fd_cpu_", "_share_filename_cpu_")),
    (_STORAGE, kinds.call, ("_get_shared_fd", "_shared_incref", "_shared_decref")),
    (torch._C, kinds.export, ("_to_dlpack", "_to_dlpack_versioned")),
    (torch, kinds.export, ("to_dlpack",)),
    (torch.utils.dlpack, kinds.export, ("to_dlpack",)),
    (torch._C.PyTorchFileWriter, kinds.call, ("write_record",)),
    (torch._C, kinds.call, ("_gds_save_storage", "_gds_load_storage", "_is_alias_of")),
    (torch, kinds.contents, ("tensor", "as_tensor", "asarray")),
    (torch, kinds.whole, ("sparse_coo_tensor", "sparse_compressed_tensor", "tensor_split")),
    (torch, kinds.whole, ("ctc_loss",)),
    (torch._VF, kinds.lengths, ("_pack_padded_sequence", "gru", "lstm", "rnn_tanh", "rnn_relu")),
    (torch._VF, kinds.whole, ("_pad_packed_sequence",)),
    (torch._C, kinds.whole, ("_cuda_jiterator_compile_and_launch_kernel",)),
    (torch, kinds.whole, ("sparse_csr_tensor", "sparse_csc_tensor")),
    (torch, kinds.whole, ("sparse_bsr_tensor", "sparse_bsc_tensor")),
    (_TENSOR, kinds.whole, ("tensor_split",)),
    (_TENSOR, kinds.contents, ("new_tensor", "new")),
    (torch._C.ScriptModule, tools.script_module, ("save", "save_to_buffer", "__deepcopy__")),
    (torch._C.ScriptModule, tools.script_module, ("_save_for_mobile",)),
    (torch._C.ScriptModule, tools.script_module, ("_save_to_buffer_for_mobile",)),
    (torch._ops, tools.without_our_key, ("_compute_keyset",)),
    (torch.autograd.profiler, tools.reads_all, ("_prepare_profiler", "_enable_profiler")),
    (torch.profiler.profiler, tools.reads_all, ("_enable_execution_trace_observer",)),
    (torch._C._InferenceMode, tools.attached_afterwards, ("__exit__",)),
    (torch, kinds.call, ("set_rng_state",)),
    (torch.random, kinds.call, ("set_rng_state",)),
]

# A captured graph replays fixed addresses.
_CUDA_ROWS: list[tuple[Any, _Kind, tuple[str, ...]]] = [
    (torch.cuda.CUDAGraph, kinds.refused, ("capture_begin", "replay")),
]


def install(device: str) -> Callable[[], None]:
    """Wraps every row's attributes; returns the undo."""
    rows = _ROWS if device == "cpu" else _ROWS + _CUDA_ROWS
    undo: list[Callable[[], None]] = []
    for owner, kind, names in rows:
        # Not every supported PyTorch has every attribute.
        undo += [_replace(owner, name, kind) for name in names if hasattr(owner, name)]

    def undo_all() -> None:
        for step in reversed(undo):
            step()
        _forget_tensor_methods()

    if torch._C._autograd._profiler_enabled():
        tools.expect_readers()
    _forget_tensor_methods()
    return undo_all


def _forget_tensor_methods() -> None:
    """torch.compile remembers Tensor's methods as it first found them."""
    rules = sys.modules.get("torch._dynamo.trace_rules")
    remembered = getattr(rules, "get_tensor_method", None)
    if remembered is not None:
        remembered.cache_clear()


def _replace(owner: Any, name: str, kind: _Kind) -> Callable[[], None]:
    was_own = name in vars(owner)
    original = vars(owner)[name] if was_own else getattr(owner, name)
    wrapped = kind(original, name)
    if wrapped is kinds.ABSENT:
        delattr(owner, name)
    else:
        setattr(owner, name, wrapped)

    def undo() -> None:
        if was_own:
            setattr(owner, name, original)
        else:
            delattr(owner, name)

    return undo
