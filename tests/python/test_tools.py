"""PyTorch's own tools over managed tensors: operators over functions, profilers, TorchScript."""

from __future__ import annotations

import copy
import io
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import headwater
from headwater import _C

BUDGET = "8MiB"


def send_all_away() -> None:
    torch.ones(4096).add(1)


def make_net() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(200, 300), nn.ReLU(), nn.Linear(300, 200))


def train(steps: int) -> Tensor:
    torch.manual_seed(0)
    net = nn.Sequential(*[nn.Linear(512, 512) for _ in range(6)])
    optimizer = torch.optim.AdamW(net.parameters())
    for _ in range(steps):
        optimizer.zero_grad()
        loss = net(torch.randn(64, 512)).square().mean()
        loss.backward()
        optimizer.step()
    return loss.detach()


def cond(values: Tensor) -> Tensor:
    result: Tensor = torch.cond(values.sum() > 0, torch.sin, torch.cos, (values,))
    return result


def while_loop(values: Tensor) -> Tensor:
    from torch._higher_order_ops.while_loop import while_loop as loop

    def fewer(i: Tensor, x: Tensor) -> Tensor:
        return i < 3

    def double(i: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        return i + 1, x * 2

    _, doubled = loop(fewer, double, (torch.tensor(0), values))
    return doubled


def cond_exported(values: Tensor) -> Tensor:
    class Choice(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return cond(x)

    program = torch.export.export(Choice(), (torch.ones(9000),))
    result: Tensor = program.module()(values)
    return result


@pytest.mark.parametrize("function", [cond, while_loop, cond_exported])
@pytest.mark.parametrize("budget", ["1GiB", "minimum"])
def test_operators_over_functions_give_the_same_bits(
    function: Callable[[Tensor], Tensor], budget: str
) -> None:
    values = torch.randn(9000)
    expected = function(values)
    headwater.enable(budget, device="cpu")
    assert torch.equal(function(values), expected)


def test_gradients_go_through_operators_over_functions() -> None:
    values = torch.randn(9000, requires_grad=True)
    cond(values).sum().backward()
    expected, values.grad = values.grad, None
    headwater.enable("minimum", device="cpu")
    cond(values).sum().backward()
    assert values.grad is not None and expected is not None
    assert torch.equal(values.grad, expected)


@pytest.mark.parametrize("option", ["with_stack", "record_shapes", "with_flops", "profile_memory"])
def test_a_training_under_pressure_can_be_profiled(
    option: str, capfd: pytest.CaptureFixture[str]
) -> None:
    expected = train(2)
    headwater.enable(BUDGET, device="cpu")
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], **{option: True}
    ) as profile:
        loss = train(2)
    assert torch.equal(loss, expected)
    counts = {event.key: event.count for event in profile.key_averages()}
    assert counts["aten::addmm"] == 2 * 6
    assert headwater.stats().num_offloads > 0
    assert "INTERNAL ASSERT" not in capfd.readouterr().err


def test_a_session_may_begin_while_a_profiler_runs(capfd: pytest.CaptureFixture[str]) -> None:
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True
    ):
        headwater.enable("minimum", device="cpu")
        net = make_net()
        send_all_away()
        net(torch.ones(3, 200)).sum().backward()
    assert "INTERNAL ASSERT" not in capfd.readouterr().err


def test_an_execution_trace_of_absent_tensors_is_written(tmp_path: Path) -> None:
    headwater.enable("minimum", device="cpu")
    net = make_net()
    send_all_away()
    observer = torch.profiler.ExecutionTraceObserver()
    observer.register_callback(str(tmp_path / "trace.json"))
    observer.start()
    net(torch.ones(3, 200)).sum().backward()
    observer.stop()
    observer.unregister_callback()
    assert "addmm" in (tmp_path / "trace.json").read_text()


def save(module: torch.jit.ScriptModule) -> torch.jit.ScriptModule:
    file = io.BytesIO()
    torch.jit.save(module, file)  # type: ignore[no-untyped-call]
    file.seek(0)
    loaded: torch.jit.ScriptModule = torch.jit.load(file)  # type: ignore[no-untyped-call]
    return loaded


def save_to_buffer(module: torch.jit.ScriptModule) -> torch.jit.ScriptModule:
    file = io.BytesIO(module.save_to_buffer())
    loaded: torch.jit.ScriptModule = torch.jit.load(file)  # type: ignore[no-untyped-call]
    return loaded


@pytest.mark.parametrize("take", [save, save_to_buffer, copy.deepcopy])
def test_a_script_module_is_saved_and_copied_with_its_bytes(
    take: Callable[[torch.jit.ScriptModule], torch.jit.ScriptModule],
) -> None:
    expected = make_net()(torch.ones(3, 200))
    headwater.enable("minimum", device="cpu")
    module = torch.jit.script(make_net())
    send_all_away()
    taken = take(module)
    send_all_away()
    assert torch.equal(taken(torch.ones(3, 200)), expected)


def test_the_state_of_a_generator_can_be_put_back() -> None:
    headwater.enable("minimum", device="cpu")
    generator = torch.Generator()
    state = generator.get_state().clone()
    expected = torch.rand(8, generator=generator)
    send_all_away()
    generator.set_state(state)
    assert torch.equal(torch.rand(8, generator=generator), expected)


def test_a_session_begun_in_inference_mode_goes_on_after_it() -> None:
    with torch.inference_mode():
        headwater.enable("4MiB", device="cpu")
    assert _C.is_managed(torch.ones(1 << 14) + 1)


def test_a_session_cannot_begin_inside_a_backward_pass() -> None:
    def enable(gradient: Tensor) -> None:
        headwater.enable("4MiB", device="cpu")

    values = torch.ones(4, requires_grad=True)
    values.register_hook(enable)
    with pytest.raises(RuntimeError, match="inside a backward pass"):
        (values * 2).sum().backward()
    assert not headwater.is_enabled()
