"""A process may end while Headwater is enabled, whatever is alive and whoever is running."""

from __future__ import annotations

import pytest
from new_process import in_a_new_process

# On a GPU a thread must not begin with a matrix product: PyTorch warns of that on its own.
PROGRAMS = {
    "absent tensors and what refers to them": """
        kept = [torch.randn(64, 64, device=device) for _ in range(20)]
        views = [tensor[1:] for tensor in kept]
        array = (kept[0] + 1).cpu().numpy()
        held = headwater.hold(kept[1])
        address = kept[2].data_ptr()
        graph = kept[3].requires_grad_().exp()
    """,
    "an optimizer": """
        net = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(4)]).to(device)
        optimizer = torch.optim.AdamW(net.parameters())
        for _ in range(2):
            net(torch.randn(16, 64, device=device)).square().mean().backward()
            optimizer.step(), optimizer.zero_grad()
    """,
    "daemon threads in operators": """
        import _thread, threading
        begun = [threading.Event() for _ in range(3)]
        shared = torch.randn(64, 64, device=device)
        def work(event):
            while True:
                (shared.tanh() @ shared) + 1
                event.set()
        for event in begun[1:]:
            threading.Thread(target=work, args=(event,), daemon=True).start()
        _thread.start_new_thread(work, (begun[0],))
        for event in begun:
            event.wait()
    """,
    "a daemon thread that trains": """
        import threading
        begun = threading.Event()
        def work():
            weights = torch.randn(64, 64, device=device, requires_grad=True)
            optimizer = torch.optim.SGD([weights])
            while True:
                loss = (weights @ weights).tanh()
                loss.register_hook(lambda gradient: gradient + 1)
                loss.sum().backward()
                optimizer.step()
                begun.set()
        threading.Thread(target=work, daemon=True).start()
        begun.wait()
    """,
    "a thread that outlives the main program": """
        import threading
        shared = torch.randn(64, 64, device=device)
        work = lambda: [shared.tanh() @ shared for _ in range(100)]
        threading.Thread(target=work).start()
    """,
    "data loader workers": """
        from torch.utils.data import DataLoader, TensorDataset
        data = TensorDataset(torch.randn(64, 64), torch.randn(64, 64))
        loader = DataLoader(data, batch_size=8, num_workers=2, persistent_workers=True)
        batches = iter(loader)
        left, right = next(batches)
        product = left.to(device) @ right.to(device).T
    """,
    "operators while the interpreter ends": """
        import atexit
        class Late:
            def __init__(self):
                self.tensor, self.itself = torch.randn(64, 64, device=device) + 1, self
            def __del__(self):
                self.tensor.sum().item()
        late, cycle = Late(), Late()
        del cycle
        atexit.register(lambda: (late.tensor @ late.tensor).sum().item())
    """,
}


@pytest.mark.parametrize("budget", ["minimum", "512KiB"])
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_a_process_may_end_with(program: str, budget: str, device: str) -> None:
    lines = [line.removeprefix(" " * 8) for line in program.splitlines()]
    start = [
        "import headwater, torch",
        f"device = {device!r}",
        f"headwater.enable({budget!r}, device=device, min_tensor_bytes=1)",
    ]
    done = in_a_new_process("\n".join([*start, *lines, "print('end')"]))
    assert (done.returncode, done.stdout.strip(), done.stderr.strip()) == (0, "end", "")


def test_a_daemon_thread_does_not_outlive_what_waits_for_it_at_exit() -> None:
    done = in_a_new_process(
        "import atexit, threading, torch, headwater\n"
        "headwater.enable('minimum', device='cpu', min_tensor_bytes=1)\n"
        "stop, shared = threading.Event(), torch.randn(64, 64)\n"
        "def work():\n"
        "    while not stop.is_set(): shared + 1\n"
        "thread = threading.Thread(target=work, daemon=True)\n"
        "thread.start()\n"
        "atexit.register(lambda: (stop.set(), thread.join(), print('joined')))\n"
    )
    assert (done.returncode, done.stdout.strip()) == (0, "joined"), done.stderr
