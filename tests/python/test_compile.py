"""Compiled models: a compiled graph is one operator."""

from __future__ import annotations

import sys

import pytest
import torch
from bits import assert_same_bits

import headwater

GRAPHS = "torch._inductor.output_code"


def train(device: str, steps: int = 3) -> list[torch.Tensor]:
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.LayerNorm(64), torch.nn.Linear(64, 8)
    ).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    compiled = torch.compile(model)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = compiled(torch.randn(16, 32, device=device)).pow(2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return [*losses, *(p.detach() for p in model.parameters())]


def test_a_compiled_model_trains_to_the_same_bits(device: str) -> None:
    plain = train(device)
    with headwater.budget("minimum", device=device, min_tensor_bytes=1):
        managed = train(device)
        assert headwater.stats().bytes_offloaded > 0
        assert headwater.stats().pinned_bytes == 0
    assert_same_bits(plain, managed)
    assert_same_bits(plain, train(device))


def test_a_function_compiled_before_enable_runs_under_headwater(device: str) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return (x.sin() * x).sum(0)

    compiled = torch.compile(function)
    x = torch.randn(16, 16, device=device)
    expected = compiled(x)
    with headwater.budget("minimum", device=device, min_tensor_bytes=1):
        x.add(1)
        result = compiled(x)
    assert_same_bits([expected], [result])


def test_graph_breaks_between_graphs_find_the_bytes(minimum: str) -> None:
    @torch.compile
    def function(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        numbers = y.tolist()
        return y + torch.tensor(numbers, device=y.device) + len(numbers)

    assert function(torch.ones(4, device=minimum)).tolist() == [8.0] * 4


def test_constructors_are_traced_in_one_graph_while_enabled_and_after(device: str) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return x + torch.tensor([1.0, 2.0], device=x.device) * x.new_tensor([3.0, 4.0])

    def compiled() -> list[float]:
        torch._dynamo.reset()
        whole = torch.compile(function, fullgraph=True, backend="aot_eager")
        return whole(torch.ones(2, device=device)).tolist()

    with headwater.budget("minimum", device=device, min_tensor_bytes=1):
        assert compiled() == [4.0, 9.0]
    assert compiled() == [4.0, 9.0]


def test_an_error_in_a_compiled_graph_leaves_nothing_pinned(minimum: str) -> None:
    @torch.compile
    def function(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        return (x * 2)[i] + 1

    x = torch.ones(8, device=minimum)
    assert function(x, torch.tensor([1, 2], device=minimum)).tolist() == [3.0, 3.0]
    if minimum == "cpu":  # a GPU cannot recover from this
        with pytest.raises((IndexError, RuntimeError)):
            function(x, torch.tensor([1, 2000], device=minimum))
    assert headwater.stats().pinned_bytes == 0
    assert (x + 1).tolist() == [2.0] * 8


def test_compiled_graphs_are_called_plainly_again_after_disable() -> None:
    torch.compile(lambda x: x + 1)(torch.ones(2))
    graph_type = sys.modules[GRAPHS].CompiledFxGraph  # type: ignore[attr-defined]
    before = graph_type.__call__
    with headwater.budget("minimum", device="cpu"):
        assert graph_type.__call__ is not before
    assert graph_type.__call__ is before


def test_enabling_does_not_import_the_compiler() -> None:
    from test_api import in_a_new_process

    code = (
        "import sys, headwater\n"
        "before = set(sys.meta_path and map(id, sys.meta_path))\n"
        "headwater.enable('minimum', device='cpu')\n"
        f"print({GRAPHS!r} in sys.modules)\n"
        "headwater.disable()\n"
        "print(set(map(id, sys.meta_path)) == before)\n"
    )
    assert in_a_new_process(code).stdout.split() == ["False", "True"]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_cuda_graphs_are_declined_with_a_clear_error() -> None:
    headwater.enable("minimum", device="cuda", min_tensor_bytes=1)
    layer = torch.nn.Linear(8, 8).cuda()
    compiled = torch.compile(layer, mode="reduce-overhead")
    with pytest.raises(RuntimeError, match="CUDA graphs"), torch.no_grad():
        for _ in range(3):
            compiled(torch.ones(4, 8, device="cuda"))
    with pytest.raises(RuntimeError, match="never move"), torch.cuda.graph(torch.cuda.CUDAGraph()):
        pass
