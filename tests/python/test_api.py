"""Turning Headwater on and off, its numbers, and what bad use is told."""

from __future__ import annotations

import dataclasses
import pickle
import threading

import pytest
import torch
from bits import assert_same_bits
from new_process import in_a_new_process

import headwater


def test_tensors_keep_their_values_through_enable_and_disable(device: str) -> None:
    before = torch.randn(100, device=device)
    expected = before.clone()
    headwater.enable("minimum", device=device, min_tensor_bytes=1)
    during = before * 2
    headwater.disable()
    assert_same_bits([before, during], [expected, expected * 2])


def test_enabling_twice_is_refused_and_changes_nothing(minimum: str) -> None:
    with pytest.raises(RuntimeError, match="already enabled"):
        headwater.enable("1GiB", device=minimum)
    assert headwater.is_enabled()


def test_disabling_while_off_does_nothing() -> None:
    headwater.disable()
    assert not headwater.is_enabled()


def test_headwater_can_be_enabled_again(device: str) -> None:
    for _ in range(3):
        with headwater.budget("minimum", device=device, min_tensor_bytes=1):
            assert headwater.is_enabled()
        assert not headwater.is_enabled()


def test_the_block_ends_headwater_after_an_error_too() -> None:
    with pytest.raises(KeyError), headwater.budget("minimum", device="cpu"):
        raise KeyError("from the block")
    assert not headwater.is_enabled()


def test_disabling_inside_a_block_is_fine() -> None:
    with headwater.budget("minimum", device="cpu"):
        headwater.disable()


@pytest.mark.parametrize("budget", ["lots", 0, -1, True, 1.5, "0B", float("nan")])
def test_a_bad_budget_is_refused_and_leaves_headwater_off(budget: object) -> None:
    with pytest.raises(ValueError, match=r"[Bb]udget"):
        headwater.enable(budget, device="cpu")  # type: ignore[arg-type]
    assert not headwater.is_enabled()


def test_a_budget_above_the_device_is_refused(device: str) -> None:
    with pytest.raises(ValueError, match="above the device's memory"):
        headwater.enable("4000TiB", device=device)


@pytest.mark.parametrize("name", ["cuda:99", "tpu", "meta"])
def test_a_device_that_does_not_exist_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"[Dd]evice"):
        headwater.enable("1GiB", device=name)
    assert not headwater.is_enabled()


def test_disabling_inside_a_backward_pass_is_refused(minimum: str) -> None:
    x = torch.ones(8, device=minimum, requires_grad=True)
    errors: list[BaseException] = []

    def try_to_disable(_: torch.Tensor) -> None:
        with pytest.raises(RuntimeError, match="backward") as caught:
            headwater.disable()
        errors.append(caught.value)

    y = x * 2
    y.register_hook(try_to_disable)
    y.sum().backward()
    assert len(errors) == 1
    assert headwater.is_enabled()
    assert x.grad is not None and x.grad.tolist() == [2.0] * 8


def test_stats_count_what_happened(minimum: str) -> None:
    x = torch.ones(1024, device=minimum)
    for _ in range(4):
        x = x + 1
    stats = headwater.stats()
    assert stats.num_ops >= 5
    assert stats.bytes_offloaded > 0
    assert stats.bytes_fetched > 0
    assert stats.managed_bytes >= 4096
    assert stats.num_tensors >= 1


def test_stats_as_a_dictionary_have_every_field() -> None:
    stats = headwater.stats()
    assert stats.as_dict() == dataclasses.asdict(stats)
    with pytest.raises(dataclasses.FrozenInstanceError):
        stats.num_ops = 1  # type: ignore[misc]


def test_stats_of_the_ended_session_can_still_be_read(device: str) -> None:
    with headwater.budget("minimum", device=device, min_tensor_bytes=1):
        torch.ones(64, device=device).add(1)
    assert headwater.stats().num_ops > 0


def test_the_peak_can_be_reset(device: str) -> None:
    headwater.enable("64MiB", device=device, min_tensor_bytes=1)
    del_me = torch.ones(1 << 20, device=device)
    peak = headwater.stats().peak_bytes
    del del_me
    headwater.reset_peak_stats()
    assert headwater.stats().peak_bytes < peak


def test_the_budget_can_change_while_enabled(device: str) -> None:
    headwater.enable("64MiB", device=device, min_tensor_bytes=1)
    x = torch.ones(1 << 20, device=device)
    headwater.set_budget("1MiB")
    assert headwater.stats().budget_bytes == 2**20
    assert headwater.stats().resident_bytes <= 2**20
    headwater.set_budget("64MiB")
    assert x.sum().item() == 1 << 20


def test_the_budget_can_become_the_minimum(device: str) -> None:
    headwater.enable("64KiB", device=device, min_tensor_bytes=1)
    with pytest.raises(headwater.OutOfMemory):
        torch.ones(1 << 20, device=device)
    headwater.set_budget("minimum")
    assert headwater.stats().budget_bytes == 0
    assert torch.ones(1 << 20, device=device).sum().item() == 1 << 20


def test_changing_the_budget_while_off_is_refused() -> None:
    with pytest.raises(RuntimeError, match=r"not enabled.*enable\(\)"):
        headwater.set_budget("1GiB")


@pytest.mark.parametrize("budget", ["lots", 0, -1, "4000TiB"])
def test_changing_to_a_bad_budget_keeps_the_old_one(budget: object) -> None:
    headwater.enable("64MiB", device="cpu")
    with pytest.raises(ValueError, match=r"[Bb]udget"):
        headwater.set_budget(budget)  # type: ignore[arg-type]
    assert headwater.stats().budget_bytes == 64 * 2**20


def test_hold_keeps_bytes_on_the_device_until_released(minimum: str) -> None:
    from headwater import _C

    x = torch.arange(64.0, device=minimum)
    hold = headwater.hold(x)
    torch.ones(8, device=minimum).add(1)
    assert _C.is_resident(x)
    hold.release()
    torch.ones(8, device=minimum).add(1)
    assert not _C.is_resident(x)


def test_hold_does_nothing_while_off_and_refuses_other_things() -> None:
    with headwater.hold(torch.ones(2)) as hold:
        hold.release()
    with pytest.raises(TypeError, match=r"takes a tensor: got list"):
        headwater.hold([1])  # type: ignore[arg-type]


def test_nothing_of_torch_stays_changed_after_disable(device: str) -> None:
    def looked_at() -> list[object]:
        owners = [torch.Tensor, torch.UntypedStorage, torch._C.PyTorchFileWriter, threading]
        return [dict(vars(owner)) for owner in owners] + [torch._C._to_dlpack, torch.to_dlpack]

    before = looked_at()
    with headwater.budget("minimum", device=device):
        assert looked_at() != before
    assert looked_at() == before


def test_out_of_memory_is_torchs_own_and_survives_pickling() -> None:
    error = headwater.OutOfMemory("too big", "aten::mm", 30, 20, 5, 35)
    assert isinstance(error, torch.OutOfMemoryError)
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.op, again.smallest_budget) == ("too big", "aten::mm", 35)


def test_the_environment_gives_the_options() -> None:
    code = "import headwater; headwater.enable(); print(headwater.stats().budget_bytes)"
    result = in_a_new_process(code, HEADWATER_BUDGET="3MiB", HEADWATER_DEVICE="cpu")
    assert result.stdout.strip() == str(3 * 2**20), result.stderr


def test_a_bad_variable_is_named_by_its_error() -> None:
    code = "import headwater; headwater.enable(device='cpu')"
    for variable in ("HEADWATER_BUDGET", "HEADWATER_HOST_BUDGET", "HEADWATER_LOG"):
        result = in_a_new_process(code, **{variable: "lots"})
        assert variable in result.stderr
        assert result.stderr.rstrip().endswith("got 'lots'")


def test_headwater_disable_turns_everything_off() -> None:
    code = (
        "import headwater, torch\n"
        "with headwater.budget('nonsense'): torch.ones(9).add(1).numpy()\n"
        "headwater.enable(); headwater.set_budget('x'); headwater.hold(torch.ones(1))\n"
        "print(headwater.is_enabled(), set(headwater.stats().as_dict().values()))\n"
    )
    result = in_a_new_process(code, HEADWATER_DISABLE="1")
    assert result.stdout.strip() in ("False {0}", "False {0.0}"), result.stderr


@pytest.mark.parametrize("version", ["2.10.1+cpu", "2.16.0", "3.0.0", "nightly"])
def test_another_torch_is_refused_by_name_before_the_compiled_module_loads(version: str) -> None:
    code = (
        f"import sys, torch; torch.__version__ = {version!r}\n"
        "try: import headwater\n"
        "except ImportError as e: print('headwater._C' in sys.modules, e)\n"
    )
    result = in_a_new_process(code)
    assert result.stdout.startswith("False"), result.stderr
    assert "supported 2.11 to 2.15" in result.stdout
    assert version in result.stdout


def test_a_build_for_another_torch_is_refused() -> None:
    installed = torch.__version__
    other = "2.12.0" if not installed.startswith("2.12") else "2.14.0"
    code = (
        f"import torch; torch.__version__ = {other!r}\n"
        "try: import headwater\n"
        "except ImportError as e: print(e)\n"
    )
    result = in_a_new_process(code)
    assert "built for another PyTorch" in result.stdout, result.stderr
    assert f"installed {other}" in result.stdout


def test_bytes_of_an_earlier_session_count_against_a_later_budget() -> None:
    headwater.enable("64MiB", device="cpu")
    storage = torch.empty(0, dtype=torch.uint8).untyped_storage()
    storage.resize_(8 << 20)  # charged, but no operator has seen it
    headwater.disable()
    headwater.enable("4MiB", device="cpu")
    seen = torch.empty(0, dtype=torch.uint8).set_(storage)
    assert headwater.stats().peak_bytes >= seen.numel()


def test_a_storage_made_by_hand_is_managed_whoever_stands_before_the_allocator() -> None:
    result = in_a_new_process(
        "import headwater_counting_allocator as counting; counting.install()\n"
        "import torch, headwater\n"
        "headwater.enable('4MiB', device='cpu')\n"
        "seen = torch.empty(0, dtype=torch.uint8).set_(torch.UntypedStorage(8192))\n"
        "print(headwater.stats().managed_bytes)\n"
    )
    assert result.stdout.strip() == "8192", result.stderr
