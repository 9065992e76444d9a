"""Fixtures of the Python tests. Whatever a test does, Headwater is off after it."""

from __future__ import annotations

import os
from collections.abc import Iterator

# On a GPU: workspaces that leave room for plans under budgets of a few MiB, and that repeat their
# bits. Read with the first product.
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":16:8")
os.environ.setdefault("CUBLASLT_WORKSPACE_SIZE", "128")  # KiB

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
