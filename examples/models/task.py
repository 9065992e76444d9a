"""What every example network offers: parameters, a state dict and a loss for step number n."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Task(nn.Module):
    """A network with its own data, so that one training loop serves all of them.

    ``loss(step)`` draws its batch on the network's device from ``seed`` and ``step`` alone: two
    tasks built alike see the same data, whatever ran before.

    Example:
        >>> task = build("gpt", "cpu", seed=0)
        >>> task.loss(step=0).backward()

    """

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.seed = seed

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    def generator(self, step: int) -> torch.Generator:
        """The source of randomness for the data of one step."""
        generator = torch.Generator(device=self.device)
        generator.manual_seed(self.seed * 1_000_003 + step)
        return generator

    def randn(self, *shape: int, generator: torch.Generator) -> Tensor:
        return torch.randn(*shape, generator=generator, device=self.device)

    def randint(self, high: int, *shape: int, generator: torch.Generator) -> Tensor:
        return torch.randint(high, shape, generator=generator, device=self.device)

    def loss(self, step: int) -> Tensor:
        """The scalar to minimise at this step."""
        raise NotImplementedError

    def blocks(self) -> list[nn.Module]:
        """Parts of one tensor in, one tensor out, that a user would wrap in a checkpoint."""
        return []
