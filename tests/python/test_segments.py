"""What the allocator of a GPU is told, on any machine: nobody's settings are lost."""

from __future__ import annotations

import pytest
import torch

from headwater import segments


class Allocator:
    """Takes settings as PyTorch's does, and can refuse one."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.unknown = "nothing"

    def set(self, settings: str) -> None:
        if self.unknown in settings:
            raise ValueError(f"Unrecognized key '{self.unknown}'")
        self.told.append(settings)


@pytest.fixture
def allocator(monkeypatch: pytest.MonkeyPatch) -> Allocator:
    made = Allocator()
    monkeypatch.setattr(torch._C, "_accelerator_setAllocatorSettings", made.set)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    monkeypatch.setattr(torch.cuda, "get_allocator_backend", lambda: "native")
    for name in ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"):
        monkeypatch.delenv(name, raising=False)
    return made


def test_segments_expand_by_small_pages_until_undone(allocator: Allocator) -> None:
    undo = segments.install("cuda:0")
    assert allocator.told == ["expandable_segments:True,large_segment_size_mb:12"]
    undo()
    assert allocator.told[1:] == ["expandable_segments:False,large_segment_size_mb:20"]


def test_the_users_other_settings_are_named_again(
    allocator: Allocator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:64")
    segments.install("cuda")()
    assert allocator.told == [
        "max_split_size_mb:64,expandable_segments:True,large_segment_size_mb:12",
        "max_split_size_mb:64,expandable_segments:False,large_segment_size_mb:20",
    ]


def test_the_users_pages_are_kept(allocator: Allocator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTORCH_ALLOC_CONF", "large_segment_size_mb:32")
    segments.install("cuda")()
    assert allocator.told == [
        "large_segment_size_mb:32,expandable_segments:True",
        "large_segment_size_mb:32,expandable_segments:False",
    ]


def test_a_build_without_pages_to_choose_lets_segments_expand(allocator: Allocator) -> None:
    allocator.unknown = "large_segment_size_mb"
    segments.install("cuda")()
    assert allocator.told == ["expandable_segments:True", "expandable_segments:False"]


@pytest.mark.parametrize("choice", ["True", "False"])
def test_where_the_user_has_chosen_nothing_is_set(
    allocator: Allocator, monkeypatch: pytest.MonkeyPatch, choice: str
) -> None:
    monkeypatch.setenv("PYTORCH_ALLOC_CONF", f"expandable_segments:{choice}")
    segments.install("cuda")()
    assert allocator.told == []


def test_the_cpu_has_no_segments(allocator: Allocator) -> None:
    segments.install("cpu")()
    assert allocator.told == []


def test_pytorch_takes_the_settings() -> None:
    torch._C._accelerator_setAllocatorSettings("large_segment_size_mb:12")
    torch._C._accelerator_setAllocatorSettings("large_segment_size_mb:20")
