"""Several processes: DDP over gloo, and children of a managed process."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
import torch
import torch.distributed
import torch.multiprocessing
from bits import as_bytes, away
from test_moves_ahead import TENSOR_BYTES, Chain
from torch.nn.parallel import DistributedDataParallel

import headwater

WORLD = 2


def model() -> torch.nn.Module:
    torch.manual_seed(0)
    layers = [layer for _ in range(12) for layer in (torch.nn.Linear(64, 64), torch.nn.ReLU())]
    return torch.nn.Sequential(*layers, torch.nn.BatchNorm1d(64), torch.nn.Linear(64, 4))


def train(rank: int) -> list[bytes]:
    network = DistributedDataParallel(model())
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.01)
    torch.manual_seed(rank)
    for _ in range(4):
        optimizer.zero_grad()
        network(torch.randn(256, 64)).pow(2).sum().backward()
        optimizer.step()
    return [as_bytes(t) for t in network.state_dict().values()]


def compare(rank: int, folder: str) -> None:
    torch.set_num_threads(1)
    store = torch.distributed.FileStore(f"{folder}/store", WORLD)
    torch.distributed.init_process_group("gloo", store=store, rank=rank, world_size=WORLD)
    plain = train(rank)
    with headwater.budget("1GiB", device="cpu", min_tensor_bytes=1):
        assert train(rank) == plain
        peak = headwater.stats().peak_bytes
    with headwater.budget(int(peak * 0.3), device="cpu", min_tensor_bytes=1):
        assert train(rank) == plain
        assert headwater.stats().bytes_offloaded > 0
        assert headwater.stats().peak_bytes <= int(peak * 0.3)
    torch.distributed.destroy_process_group()


def collectives(rank: int, folder: str) -> None:
    torch.set_num_threads(1)
    store = torch.distributed.FileStore(f"{folder}/store", WORLD)
    torch.distributed.init_process_group("gloo", store=store, rank=rank, world_size=WORLD)
    with headwater.budget("minimum", device="cpu", min_tensor_bytes=1):
        mine = away(torch.full((64,), float(rank)))
        work = torch.distributed.all_reduce(mine, async_op=True)
        torch.ones(64).add(1)
        work.wait()
        assert mine.tolist() == [1.0] * 64
        parts = [torch.zeros(8) for _ in range(WORLD)]
        torch.distributed.all_gather(parts, torch.full((8,), float(rank)))
        assert [part[0].item() for part in parts] == [0.0, 1.0]
        if rank == 0:
            torch.distributed.send(away(torch.arange(16.0)), 1)
        else:
            received = torch.empty(16)
            torch.distributed.recv(received, 0)
            assert received.tolist() == list(range(16))
        torch.distributed.broadcast(mine, 0)
    assert mine.tolist() == [1.0] * 64
    torch.distributed.destroy_process_group()


def moves_ahead_wait(rank: int, folder: str) -> None:
    torch.set_num_threads(1)
    store = torch.distributed.FileStore(f"{folder}/store", WORLD)
    torch.distributed.init_process_group("gloo", store=store, rank=rank, world_size=WORLD)
    shared = torch.ones(4096)
    if rank == 1:
        store.wait(["rank 0 has computed"])
        torch.distributed.all_reduce(shared)
    else:
        chain = Chain()
        expected = as_bytes(chain.forward(24))
        headwater.enable(10 * TENSOR_BYTES, device="cpu")
        for _ in range(6):
            chain.forward(24)
            chain.optimizer.step()
        assert headwater.stats().num_ops_held_back == 0
        work = torch.distributed.all_reduce(shared, async_op=True)
        before = headwater.stats()
        chain.forward(4)
        held = headwater.stats()
        assert held.num_ops_held_back > 0
        assert held.num_fetches_ahead == before.num_fetches_ahead
        assert as_bytes(chain.forward(24)) == expected  # also while the collective goes on
        store.set("rank 0 has computed", "yes")
        work.wait()
        headwater.disable()
    assert shared.tolist() == [2.0] * 4096
    torch.distributed.destroy_process_group()


@pytest.mark.parametrize(
    "work",
    [compare, collectives, moves_ahead_wait],
    ids=["ddp", "collectives", "moves ahead wait"],
)
def test_two_processes_over_gloo_give_the_same_bits(work: object, tmp_path: Path) -> None:
    torch.multiprocessing.spawn(work, (str(tmp_path),), nprocs=WORLD)


class Rows(torch.utils.data.Dataset):
    def __init__(self, rows: torch.Tensor) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.rows[index] * 2


def test_forked_loader_workers_read_tensors_that_were_away(minimum: str) -> None:
    rows = away(torch.arange(32.0, device=minimum).view(8, 4)) if minimum == "cpu" else None
    rows = torch.arange(32.0).view(8, 4) if rows is None else rows
    loader = torch.utils.data.DataLoader(
        Rows(rows), batch_size=4, num_workers=1, timeout=60, multiprocessing_context="fork"
    )
    batches = [batch.to(minimum) + 1 for batch in loader]
    assert as_bytes(torch.cat(batches)) == as_bytes(torch.arange(32.0).view(8, 4) * 2 + 1)


def test_loader_threads_and_workers_feed_a_managed_device(minimum: str) -> None:
    loader = torch.utils.data.DataLoader(
        Rows(torch.arange(32.0).view(8, 4)),
        batch_size=4,
        num_workers=1,
        timeout=60,
        pin_memory=minimum == "cuda",
        multiprocessing_context="fork",
    )
    total = sum(batch.to(minimum).sum() for batch in loader)
    assert float(total) == 992


def test_children_forked_while_other_threads_compute_can_compute() -> None:
    stop = threading.Event()

    def compute() -> None:
        x = torch.ones(256, 256)
        while not stop.is_set():
            x = (x + 1).mul(0.5)

    headwater.enable("minimum", device="cpu", min_tensor_bytes=1)
    worker = threading.Thread(target=compute)
    worker.start()
    try:
        for _ in range(5):
            child = os.fork()
            if child == 0:
                os._exit(0 if torch.ones(64).add(1).sum().item() == 128.0 else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        stop.set()
        worker.join()
