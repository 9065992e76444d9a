"""PyTorch means the same under Headwater: small programs, each with and without, bit for bit."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
from bits import as_bytes, assert_unchanged_by_headwater, away, send_away

import headwater

Program = Callable[[str], list[torch.Tensor]]


def views_and_aliases(device: str) -> list[torch.Tensor]:
    base = torch.arange(64.0, device=device)
    row, column = base.view(8, 8)[2], base.view(8, 8).t()[3]
    row.add_(column)
    alias = base.detach()
    alias[0] = 42
    return [base, row, column, alias, base.as_strided((4,), (3,), 5)]


def in_place_and_out(device: str) -> list[torch.Tensor]:
    a, b = torch.randn(32, device=device), torch.randn(32, device=device)
    out = torch.empty(32, device=device)
    torch.add(a, b, out=out)
    torch.mul(out, a, out=out)
    grown = torch.empty(0, device=device)
    torch.cat([a, b], out=grown)
    a.mul_(2).sub_(b).clamp_(min=0)
    return [a, b, out, grown]


def resize_and_set(device: str) -> list[torch.Tensor]:
    t = torch.arange(16.0, device=device)
    t.resize_(8)
    t.resize_(32)[16:].zero_()
    source = torch.arange(10.0, device=device)
    t.set_(source.untyped_storage(), 2, (4,), (1,))
    t.mul_(10)
    other = torch.empty(0, device=device).set_(source)
    return [t, source, other]


def swapped_data(device: str) -> list[torch.Tensor]:
    parameter = torch.nn.Parameter(torch.ones(16, device=device))
    parameter.data = torch.arange(16.0, device=device)
    parameter.data.mul_(3)
    return [parameter.detach()]


def storage_emptied_and_refilled(device: str) -> list[torch.Tensor]:
    t = torch.arange(128.0, device=device)
    view = t[64:]
    storage = t.untyped_storage()
    storage.resize_(0)
    storage.resize_(512)
    t.copy_(torch.arange(128.0, device=device) * 2)
    return [t, view + 0]


def no_grad_and_inference(device: str) -> list[torch.Tensor]:
    layer = torch.nn.Linear(8, 8).to(device)
    x = torch.randn(4, 8, device=device)
    with torch.no_grad():
        first = layer(x)
    with torch.inference_mode():
        second = layer(first)
        second.add_(1)
    return [first, second + 0]


def double_backward(device: str) -> list[torch.Tensor]:
    x = torch.randn(16, device=device, requires_grad=True)
    (gradient,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    gradient.pow(2).sum().backward()
    assert x.grad is not None
    return [gradient, x.grad]


def hooks(device: str) -> list[torch.Tensor]:
    seen: list[torch.Tensor] = []
    layer = torch.nn.Linear(8, 8).to(device)
    layer.register_forward_hook(lambda _m, _i, output: output * 2)
    layer.register_full_backward_hook(lambda _m, _i, out: seen.append(out[0].clone()))
    layer.weight.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad * 1))
    y = layer(torch.randn(4, 8, device=device, requires_grad=True))
    y.register_hook(lambda g: g + 1)
    y.sum().backward()
    return [y, *seen, *(p.grad for p in layer.parameters() if p.grad is not None)]


def saved_tensor_hooks(device: str) -> list[torch.Tensor]:
    x = torch.randn(16, device=device, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        (x.exp() * x).sum().backward()
    assert x.grad is not None
    return [x.grad]


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoint_recomputes_the_same(device: str, reentrant: bool) -> None:
    def program(device: str) -> list[torch.Tensor]:
        from torch.utils.checkpoint import checkpoint

        block = torch.nn.Sequential(
            torch.nn.Linear(16, 16), torch.nn.Dropout(0.5), torch.nn.GELU()
        ).to(device)
        x = torch.randn(4, 16, device=device, requires_grad=True)
        y = checkpoint(block, x, use_reentrant=reentrant)
        y.sum().backward()
        assert x.grad is not None
        return [y, x.grad, *(p.grad for p in block.parameters())]

    assert_unchanged_by_headwater(program, device)


def autocast(device: str) -> list[torch.Tensor]:
    layer = torch.nn.Linear(16, 16).to(device)
    x = torch.randn(4, 16, device=device)
    dtype = torch.float16 if device == "cuda" else torch.bfloat16
    with torch.autocast(device, dtype=dtype):
        y = layer(x) @ x.t()
    y.float().sum().backward()
    return [y.float(), *(p.grad for p in layer.parameters() if p.grad is not None)]


def batch_norm_statistics(device: str) -> list[torch.Tensor]:
    norm = torch.nn.BatchNorm1d(8).to(device)
    for _ in range(3):
        norm(torch.randn(16, 8, device=device))
    return [norm.running_mean, norm.running_var, norm.num_batches_tracked]


def custom_function(device: str) -> list[torch.Tensor]:
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, gradient):
            (x,) = ctx.saved_tensors
            return 2 * x * gradient

    x = torch.randn(16, device=device, requires_grad=True)
    Square.apply(x).sum().backward()
    assert x.grad is not None
    return [x.grad]


def indexing(device: str) -> list[torch.Tensor]:
    t = torch.arange(64.0, device=device).view(8, 8)
    t[2:4, ::2] = -1
    t[t > 50] = 0
    t[torch.tensor([0, 7], device=device)] += 1
    return [t, t[1], t[..., None][:, 0], torch.where(t > 0)[0]]


def strings_and_numbers(device: str) -> list[torch.Tensor]:
    t = torch.arange(8.0, device=device)
    assert "7." in repr(t) and f"{t[3]:.1f}" == "3.0"
    assert 5 in t and int(t[4]) == 4 and bool(t[1]) and [float(x) for x in t][2] == 2.0
    return [t, torch.tensor([t[0], t[1]]), torch.tensor(t.tolist())]


def optimizers(device: str) -> list[torch.Tensor]:
    parameters = [torch.nn.Parameter(torch.randn(16, device=device)) for _ in range(4)]
    for make in (
        lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
        lambda p: torch.optim.AdamW(p, lr=0.1, foreach=True),
        lambda p: torch.optim.AdamW(p, lr=0.1, fused=True),
    ):
        optimizer = make(parameters)
        for _ in range(2):
            optimizer.zero_grad()
            sum((p**2).sum() for p in parameters).backward()  # type: ignore[union-attr]
            torch.nn.utils.clip_grad_norm_(parameters, 1.0)
            optimizer.step()
    return [p.detach() for p in parameters]


PROGRAMS: list[Program] = [
    views_and_aliases,
    in_place_and_out,
    resize_and_set,
    swapped_data,
    storage_emptied_and_refilled,
    no_grad_and_inference,
    double_backward,
    hooks,
    saved_tensor_hooks,
    autocast,
    batch_norm_statistics,
    custom_function,
    indexing,
    strings_and_numbers,
    optimizers,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_program_gives_the_same_bits(program: Program, device: str) -> None:
    assert_unchanged_by_headwater(program, device)


def test_freed_tensors_are_forgotten(minimum: str) -> None:
    before = headwater.stats().num_tensors
    x = torch.ones(64, device=minimum)
    for _ in range(10):
        x = x * 2
    del x
    assert headwater.stats().num_tensors == before


def test_the_last_reference_may_be_the_operators_own_argument(minimum: str) -> None:
    total = torch.stack([torch.ones(64, device=minimum) * n for n in range(8)]).sum(0)
    assert total.tolist() == [28.0] * 64


def foreign() -> Iterator[torch.Tensor]:
    yield torch.from_numpy(np.arange(64, dtype=np.float32))
    yield torch.frombuffer(bytearray(np.arange(64, dtype=np.float32).tobytes()), dtype=torch.float)
    yield torch.arange(64.0).share_memory_()


@pytest.mark.parametrize("kind", range(3), ids=["numpy", "frombuffer", "shared"])
def test_foreign_memory_is_left_alone_and_counted(kind: int) -> None:
    from headwater import _C

    tensor = list(foreign())[kind]
    headwater.enable("minimum", device="cpu", min_tensor_bytes=1)
    address = tensor.data_ptr()
    tensor.add_(1)
    torch.ones(8).add(1)
    assert not _C.is_managed(tensor)
    assert tensor.data_ptr() == address
    assert headwater.stats().unmanaged_bytes >= 256
    assert as_bytes(tensor) == (np.arange(64, dtype=np.float32) + 1).tobytes()


def test_a_numpy_array_made_before_enable_stays_true() -> None:
    tensor = torch.arange(64.0)
    array = tensor.numpy()
    headwater.enable("minimum", device="cpu", min_tensor_bytes=1)
    tensor.add_(1)
    torch.ones(8).add(1)
    array[1] = 100
    assert array[0] == 1
    assert tensor[1].item() == 100


def sparse(device: str) -> torch.Tensor:
    return torch.eye(8, device=device).to_sparse()


def sparse_rows(device: str) -> torch.Tensor:
    return torch.eye(8, device=device).to_sparse_csr()


def quantized(device: str) -> torch.Tensor:
    return torch.quantize_per_tensor(torch.ones(8, device=device), 0.1, 0, torch.quint8)


def nested(device: str) -> torch.Tensor:
    parts = [torch.ones(2, 3, device=device), torch.ones(4, 3, device=device)]
    return torch.nested.nested_tensor(parts)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("make", [sparse, sparse_rows, quantized, nested])
def test_other_layouts_are_left_alone_and_work(
    make: Callable[[str], torch.Tensor], minimum: str
) -> None:
    tensor = make(minimum)
    torch.ones(8, device=minimum).add(1)
    if make is quantized:
        assert tensor.dequantize().sum().item() == pytest.approx(8)
        assert headwater.stats().unmanaged_bytes > 0
    elif make is nested:
        assert [part.sum().item() for part in tensor.unbind()] == [6, 12]
    else:
        assert as_bytes(tensor.to_dense()) == as_bytes(torch.eye(8))
        product = torch.mm(tensor, torch.ones(8, 8, device=minimum))
        assert as_bytes(product) == as_bytes(torch.ones(8, 8))


def test_small_tensors_stay_where_they_are(device: str) -> None:
    from headwater import _C

    headwater.enable("minimum", device=device, min_tensor_bytes=1024)
    small, large = torch.ones(16, device=device) + 1, torch.ones(1024, device=device) + 1
    torch.ones(1024, device=device).add(1)
    assert _C.is_resident(small)
    assert not _C.is_resident(large)


def test_every_view_sees_the_bytes_come_back(minimum: str) -> None:
    base = away(torch.arange(64.0, device=minimum))
    views = [base[8:], base.view(8, 8).t(), base.detach()]
    send_away(base)
    base.add_(1)
    assert [view.reshape(-1)[0].item() for view in views] == [9, 1, 1]


@pytest.mark.parametrize("budget", ["minimum", "1MB"])
def test_long_packed_sequences_keep_their_bits(budget: str) -> None:
    net = torch.nn.GRU(16, 16)
    data = torch.randn(600, 4, 16)

    def train() -> list[bytes]:
        packed = torch.nn.utils.rnn.pack_padded_sequence(data, [600, 500, 300, 20])
        output, state = net(packed)
        padded, lengths = torch.nn.utils.rnn.pad_packed_sequence(output)
        net.zero_grad()
        (padded.sum() + state.sum()).backward()
        grads = [as_bytes(parameter.grad) for parameter in net.parameters()]
        return [as_bytes(padded), as_bytes(lengths), *grads]

    expected = train()
    headwater.enable(budget, device="cpu")
    assert train() == expected
