"""The shortest use of Headwater: one line more than plain PyTorch."""

import torch
from torch import nn

import headwater

device = "cuda" if torch.cuda.is_available() else "cpu"
headwater.enable(budget="24MiB", device=device)

net = nn.Sequential(*[nn.Sequential(nn.Linear(512, 512), nn.GELU()) for _ in range(12)]).to(device)
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
for step in range(10):
    x = torch.randn(1024, 512, device=device)
    loss = (net(x) - x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step}: loss {loss.item():.4f}")

stats = headwater.stats()
print(
    f"peak {stats.peak_bytes / 2**20:.1f} MiB, moved {stats.bytes_offloaded / 2**20:.0f} MiB down"
)
