"""Fixtures of the Python tests. Whatever a test does, Headwater is off after it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from bits import DEVICES, enable_minimum

import headwater


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "gpu: needs a GPU")


@pytest.fixture(autouse=True)
def headwater_is_off_afterwards() -> Iterator[None]:
    torch.manual_seed(0)
    yield
    headwater.disable()


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> str:
    """Every device there is to manage."""
    return request.param


@pytest.fixture
def minimum(device: str) -> str:
    """A device managed with room for nothing but the running operator."""
    enable_minimum(device)
    return device
