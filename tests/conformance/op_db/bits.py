"""What a sample left behind, as plain bytes that no later move can touch."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy
import torch

_COMPRESSED = {
    torch.sparse_csr: ("crow_indices", "col_indices"),
    torch.sparse_bsr: ("crow_indices", "col_indices"),
    torch.sparse_csc: ("ccol_indices", "row_indices"),
    torch.sparse_bsc: ("ccol_indices", "row_indices"),
}
# Aliases are compared pair by pair; a few tensors show every way an operator can alias.
_MAX_ALIASES = 12


@dataclass(frozen=True)
class Record:
    """One tensor or number: where it was found, what it looks like, and its bits."""

    label: str
    form: str
    data: bytes


def leaves(value: object, label: str) -> Iterator[tuple[str, object]]:
    """Yields the leaves of nested tuples, lists and dicts, each with its path."""
    if isinstance(value, (tuple, list)):
        for index, item in enumerate(value):
            yield from leaves(item, f"{label}[{index}]")
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, f"{label}[{key!r}]")
    else:
        yield label, value


def tensors(value: object, label: str = "") -> list[torch.Tensor]:
    """The tensors among the leaves of ``value``, in order."""
    return [leaf for _, leaf in leaves(value, label) if isinstance(leaf, torch.Tensor)]


def record(value: object, label: str) -> list[Record]:
    """Records every leaf of ``value``.

    >>> [r.form for r in record((torch.zeros(2), 3), "output")]
    ['torch.float32 (2,) (1,) 0', 'int']
    """
    records: list[Record] = []
    for path, leaf in leaves(value, label):
        if isinstance(leaf, torch.Tensor):
            records.extend(_record_tensor(leaf, path))
        elif leaf is None or isinstance(leaf, (bool, int, float, complex, str, torch.Size)):
            records.append(Record(path, type(leaf).__name__, repr(leaf).encode()))
        else:
            records.append(Record(path, type(leaf).__name__, b""))
    return records


def record_aliases(values: list[torch.Tensor]) -> Record:
    """Records which of the tensors share bytes."""
    dense = [t for t in values if is_dense(t)][:_MAX_ALIASES]
    pairs = [
        f"{i}={j}"
        for j in range(len(dense))
        for i in range(j)
        if torch._C._is_alias_of(dense[i], dense[j])
    ]
    return Record("aliases", "pairs", " ".join(pairs).encode())


def difference(expected: list[Record], actual: list[Record]) -> str | None:
    """Describes the first difference, or returns None when there is none."""
    if len(expected) != len(actual):
        return f"number of results: expected {len(expected)}, got {len(actual)}"
    for left, right in zip(expected, actual, strict=True):
        if (left.label, left.form) != (right.label, right.form):
            return f"{left.label}: expected {left.form}, got {right.label} {right.form}"
        if left.data != right.data:
            return f"{left.label} ({left.form}): {_first_byte(left.data, right.data)}"
    return None


def is_dense(value: torch.Tensor) -> bool:
    """Whether the tensor is nothing but strides over one storage."""
    return (
        type(value) in (torch.Tensor, torch.nn.Parameter)
        and value.layout == torch.strided
        and not value.is_nested
        and not value.is_quantized
    )


def holds_bytes(value: torch.Tensor) -> bool:
    """Whether the tensor owns ordinary bytes, which Headwater would move."""
    if not is_dense(value) or value.device.type == "meta" or value.numel() == 0:
        return False
    return not value._is_zerotensor()  # all zeros by a mark alone: there is no memory behind it


def _record_tensor(value: torch.Tensor, path: str) -> Iterator[Record]:
    with torch.no_grad():
        value = value.detach()
        if is_dense(value):
            yield _record_dense(value, path)
            return
        form = f"{type(value).__name__} {value.dtype} {value.layout} quantized={value.is_quantized}"
        yield Record(path, form, b"")
        for name, part in _parts(value):
            yield from record(part, f"{path}.{name}")


def _parts(value: torch.Tensor) -> Iterator[tuple[str, object]]:
    if value.is_quantized:
        yield "int_repr", value.int_repr()
        if value.qscheme() in (torch.per_tensor_affine, torch.per_tensor_symmetric):
            yield "scale", (value.q_scale(), value.q_zero_point())
        else:
            yield "scale", (value.q_per_channel_scales(), value.q_per_channel_zero_points())
    elif value.is_nested:
        yield "parts", list(value.unbind())
    elif value.layout == torch.sparse_coo:
        yield "coalesced", value.is_coalesced()
        yield "size", value.size()
        yield "indices", value._indices()
        yield "values", value._values()
    elif value.layout in _COMPRESSED:
        yield "size", value.size()
        for name in _COMPRESSED[value.layout]:
            yield name, getattr(value, name)()
        yield "values", value.values()
    elif hasattr(value, "__tensor_flatten__"):
        for name in value.__tensor_flatten__()[0]:
            yield name, getattr(value, name)
    else:
        yield "dense", value.to_dense()


def _record_dense(value: torch.Tensor, path: str) -> Record:
    form = f"{value.dtype} {tuple(value.shape)} {value.stride()} {value.storage_offset()}"
    if value.is_conj() or value.is_neg():
        form += f" conj={value.is_conj()} neg={value.is_neg()}"
    if value.device.type == "meta" or value.numel() == 0:
        return Record(path, form, b"")
    # The copy goes to memory that numpy owns, which Headwater leaves alone: the bits are read by
    # an ordinary operator and then lie outside everything that is tested here.
    target = numpy.empty(value.numel() * value.element_size(), dtype=numpy.uint8)
    torch.from_numpy(target).view(value.dtype).view(value.shape).copy_(value)
    return Record(path, form, target.tobytes())


def _first_byte(left: bytes, right: bytes) -> str:
    if len(left) != len(right):
        return f"expected {len(left)} bytes, got {len(right)}"
    places = [i for i, (a, b) in enumerate(zip(left, right, strict=True)) if a != b]
    start = places[0]
    return (
        f"{len(places)} of {len(left)} bytes differ, first at byte {start}: "
        f"expected {left[start : start + 8].hex()}, got {right[start : start + 8].hex()}"
    )
