"""Memory and interceptors that are not ours, and streams beside the current one."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from new_process import in_a_new_process

import headwater
from headwater import _C

COUNT = 1 << 14
BYTES = 4 * COUNT


def send_all_away(device: str = "cpu") -> None:
    torch.ones(COUNT, device=device).add_(1)


def test_another_interceptor_at_our_key_is_told_of() -> None:
    ended = in_a_new_process(
        "import torch, headwater\n"
        "library = torch.library.Library('_', 'IMPL')\n"
        "library.fallback(lambda op, *arguments: None, headwater._C.intercept_key())\n"
        "headwater.enable('1GiB', device='cpu')\n"
    )
    assert ended.returncode != 0
    assert "Another library intercepts operators" in ended.stderr
    assert "Load only one of them" in ended.stderr


def test_a_mapped_file_is_left_alone_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "numbers"
    path.write_bytes(bytes(BYTES))
    mapped = torch.from_file(str(path), shared=True, size=COUNT, dtype=torch.float32)
    headwater.enable("minimum", device="cpu")
    mapped.add_(1)
    send_all_away()
    assert not _C.is_managed(mapped)
    assert headwater.stats().unmanaged_bytes == BYTES
    assert mapped.sum().item() == COUNT
    assert path.read_bytes() == torch.ones(COUNT).numpy().tobytes()


def test_a_checkpoint_can_be_mapped(tmp_path: Path) -> None:
    torch.save({"numbers": torch.arange(float(COUNT))}, tmp_path / "saved")
    headwater.enable("minimum", device="cpu")
    mapped = torch.load(tmp_path / "saved", mmap=True)["numbers"]
    send_all_away()
    assert torch.equal(mapped, torch.arange(float(COUNT)))


def run_on_two_streams(rounds: int) -> torch.Tensor:
    """One stream makes what the other uses and frees, without waiting for it on the host."""
    torch.manual_seed(0)
    side = torch.cuda.Stream()
    total = torch.zeros(COUNT, device="cuda")
    kept = [torch.randn(COUNT, device="cuda") for _ in range(4)]
    for i in range(rounds):
        made = kept[i % 4] * (i + 1)
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            kept[(i + 1) % 4] = kept[(i + 1) % 4].sin() + made
            made.record_stream(side)
        del made  # freed while the side stream may still read it
        torch.cuda.current_stream().wait_stream(side)
        total += kept[(i + 1) % 4]
        send_all_away("cuda")
    return total.cpu()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("budget", ["minimum", "1MiB"])
def test_tensors_may_be_used_on_several_streams(budget: str) -> None:
    expected = run_on_two_streams(64)
    headwater.enable(budget, device="cuda", standby="off")
    assert torch.equal(run_on_two_streams(64), expected)
    assert headwater.stats().num_offloads > 0
