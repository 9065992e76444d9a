"""U-Net: every level's activations wait for the way back up."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .task import Task

SIZES = {
    "cpu": {"width": 12, "levels": 3, "image": 64, "batch": 4},
    "gpu": {"width": 48, "levels": 4, "image": 256, "batch": 8},
}


def double_conv(channels_in: int, channels_out: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(channels_in, channels_out, 3, padding=1),
        nn.GroupNorm(4, channels_out),
        nn.SiLU(),
        nn.Conv2d(channels_out, channels_out, 3, padding=1),
        nn.GroupNorm(4, channels_out),
        nn.SiLU(),
    )


class UNet(nn.Module):
    """Halves the image ``levels`` times and comes back, joining each level's features."""

    def __init__(self, width: int, levels: int, channels: int = 1) -> None:
        super().__init__()
        self.inward = double_conv(channels, width)
        self.down = nn.ModuleList()
        self.encode = nn.ModuleList()
        self.up = nn.ModuleList()
        self.decode = nn.ModuleList()
        for level in range(levels):
            small, large = width << level, width << (level + 1)
            self.down.append(nn.Conv2d(small, small, 2, stride=2))
            self.encode.append(double_conv(small, large))
            self.up.insert(0, nn.ConvTranspose2d(large, small, 2, stride=2))
            self.decode.insert(0, double_conv(2 * small, small))
        self.outward = nn.Conv2d(width, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        skips = [self.inward(x)]
        for down, encode in zip(self.down, self.encode, strict=True):
            skips.append(encode(down(skips[-1])))
        x = skips.pop()
        for up, decode in zip(self.up, self.decode, strict=True):
            x = decode(torch.cat([up(x), skips.pop()], dim=1))
        return self.outward(x)


class UNetTask(Task):
    """Finds the bright regions of a noisy image."""

    def __init__(self, seed: int, width: int, levels: int, image: int, batch: int) -> None:
        super().__init__(seed)
        self.net = UNet(width, levels)
        self.image, self.batch = image, batch

    def loss(self, step: int) -> Tensor:
        generator = self.generator(step)
        shape = (self.batch, 1, self.image, self.image)
        clean = self.randn(*shape, generator=generator)
        noise = self.randn(*shape, generator=generator)
        mask = (clean > 0.5).to(clean.dtype)
        return F.binary_cross_entropy_with_logits(self.net(clean + 0.3 * noise), mask)
