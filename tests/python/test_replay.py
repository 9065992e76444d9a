"""What was given up is made again by the operators that made it, with the same bits."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from bits import enable_minimum
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

import headwater

WIDTH, BATCH, STEPS = 64, 64, 3
Block = Callable[[Tensor], Tensor]


class Residual(nn.Module):
    """Changes its own result in place, twice."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.second(F.gelu(self.first(x)))
        hidden += x
        return hidden.relu_()


class Shared(nn.Module):
    """One layer, used again and again."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(3):
            x = torch.tanh(self.layer(x))
        return x


class Mask(nn.Module):
    """A mask that is drawn, and another that is a view of a wider one."""

    def forward(self, x: Tensor) -> Tensor:
        mask = torch.rand_like(x) > 0.3
        noise = torch.empty(x.shape[0], 2 * x.shape[1], device=x.device).normal_()
        return torch.where(mask, x * 1.5, x) + noise[:, ::2]


class Pieces(nn.Module):
    """Views, pieces put together, and a write through a view."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        left, right = self.layer(x).chunk(2, dim=1)
        both = torch.cat([right.sin(), left.t().contiguous().t().cos()], dim=1)
        target = torch.zeros_like(both)
        target[:, 1::2].copy_(both[:, ::2])
        return both * target + both


def dropout() -> nn.Module:
    return nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.GELU(), nn.Dropout(0.4), nn.Tanh())


def rrelu() -> nn.Module:
    return nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.RReLU(), nn.LayerNorm(WIDTH))


def batch_norm() -> nn.Module:
    return nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.BatchNorm1d(WIDTH), nn.ReLU(inplace=True))


def images() -> nn.Module:
    return nn.Sequential(
        nn.Unflatten(1, (4, 4, 4)),
        nn.Conv2d(4, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(inplace=True),
        nn.Conv2d(16, 4, 3, padding=1),
        nn.Flatten(),
    )


BLOCKS: dict[str, Callable[[], nn.Module]] = {
    "dropout": dropout,
    "rrelu": rrelu,
    "batch_norm": batch_norm,
    "images": images,
    "residual": Residual,
    "shared": Shared,
    "mask": Mask,
    "pieces": Pieces,
}


def digest(net: nn.Module, losses: list[str], device: str) -> tuple[object, ...]:
    state = [value.detach().cpu().flatten().tolist() for value in net.state_dict().values()]
    random = torch.cuda.get_rng_state() if device == "cuda" else torch.get_rng_state()
    return losses, state, random.tolist()


def run_plainly(block: Block, x: Tensor) -> Tensor:
    return block(x)


@headwater.region("recompute")
def recompute(block: Block, x: Tensor) -> Tensor:
    return block(x)


def train(
    make: Callable[[], nn.Module],
    device: str,
    run: Callable[[Block, Tensor], Tensor],
    dtype: torch.dtype = torch.float32,
    accumulate: int = 1,
) -> tuple[object, ...]:
    torch.manual_seed(0)
    net = nn.Sequential(*(make() for _ in range(4))).to(device=device, dtype=dtype)
    learns = any(True for _ in net.parameters())
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9) if learns else None
    losses = []
    for _ in range(STEPS):
        for _ in range(accumulate):
            x = torch.randn(BATCH, WIDTH, dtype=dtype).to(device).requires_grad_()
            loss = run(net, x).square().mean() / accumulate
            loss.backward()
            losses.append(loss.item().hex())
            assert x.grad is not None
            losses.append(x.grad.sum().item().hex())
        if optimizer is not None:
            optimizer.step()
            optimizer.zero_grad()
    return digest(net, losses, device)


@contextmanager
def deterministic(device: str) -> Iterator[None]:
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(device == "cuda")
    yield
    torch.use_deterministic_algorithms(before)


def check(device: str, *arguments: object, **options: object) -> None:
    """The same bits with everything given up, and something was."""
    run = options.pop("run", recompute)
    with deterministic(device):
        expected = train(*arguments, device, run_plainly, **options)  # type: ignore[arg-type]
        enable_minimum(device)
        result = train(*arguments, device, run, **options)  # type: ignore[arg-type]
        stats = headwater.stats()
    headwater.disable()
    assert result == expected
    assert stats.num_replays > 0
    assert stats.num_given_up >= stats.num_replays


@pytest.mark.parametrize("name", BLOCKS)
def test_blocks_train_to_the_same_bits(name: str, device: str) -> None:
    check(device, BLOCKS[name])


@pytest.mark.parametrize("name", ["dropout", "batch_norm", "residual"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_types_train_to_the_same_bits(name: str, dtype: torch.dtype, device: str) -> None:
    check(device, BLOCKS[name], dtype=dtype)


@pytest.mark.parametrize("name", ["dropout", "batch_norm", "residual"])
def test_gradients_that_add_up_over_passes_have_the_same_bits(name: str, device: str) -> None:
    check(device, BLOCKS[name], accumulate=3)


def test_a_checkpoint_within_and_around_has_the_same_bits(device: str) -> None:
    class Checkpointed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.outer = dropout(), dropout()

        def forward(self, x: Tensor) -> Tensor:
            inner = checkpoint(self.inner, x, use_reentrant=False)
            return self.outer(inner)

    def around(block: Block, x: Tensor) -> Tensor:
        return checkpoint(recompute, block, x, use_reentrant=False)

    check(device, Checkpointed)
    with deterministic(device):
        expected = train(
            dropout, device, lambda block, x: checkpoint(block, x, use_reentrant=False)
        )
        enable_minimum(device)
        assert train(dropout, device, around) == expected


def test_autocast_has_the_same_bits(device: str) -> None:
    def cast(block: Block, x: Tensor) -> Tensor:
        with torch.autocast(device, dtype=torch.bfloat16):
            return block(x).float()

    def cast_and_recompute(block: Block, x: Tensor) -> Tensor:
        return recompute(lambda given: cast(block, given), x)

    with deterministic(device):
        expected = train(dropout, device, cast)
        enable_minimum(device)
        assert train(dropout, device, cast_and_recompute) == expected
        assert headwater.stats().num_replays > 0


def test_a_generator_of_ones_own_is_put_back(minimum: str) -> None:
    generator = torch.Generator(device=minimum).manual_seed(7)
    base = torch.ones(64, 64).to(minimum)
    with headwater.region("recompute"):
        noise = torch.empty_like(base).normal_(generator=generator)
        drawn = noise * 2
    after = generator.get_state().clone()
    expected = torch.Generator(device=minimum).manual_seed(7)
    headwater.stats()
    values = drawn.cpu()
    assert torch.equal(generator.get_state(), after)
    again = torch.empty(64, 64, device=minimum).normal_(generator=expected)
    assert torch.equal(values, (again * 2).cpu())


def test_what_is_written_is_made_again_from_what_it_was(minimum: str) -> None:
    source = torch.arange(4096.0).to(minimum)
    with headwater.region("recompute"):
        double = source * 2
        quadruple = double * 2
    source.zero_()
    assert torch.equal(double.cpu(), torch.arange(4096.0) * 2)
    assert torch.equal(quadruple.cpu(), torch.arange(4096.0) * 4)


def test_what_is_freed_is_kept_for_what_needs_it(minimum: str) -> None:
    source = torch.arange(4096.0).to(minimum)
    with headwater.region("recompute"):
        double = source * 2
        quadruple = double * 2
    del source, double
    torch.ones(4096).to(minimum).mul_(2)
    assert torch.equal(quadruple.cpu(), torch.arange(4096.0) * 4)
    assert headwater.stats().num_replays > 0


def test_writing_through_an_array_does_not_reach_what_was_made_before() -> None:
    enable_minimum("cpu")
    source = torch.arange(4096.0).clone()
    with headwater.region("recompute"):
        double = source * 2
    source.numpy()[:] = 0
    assert torch.equal(double, torch.arange(4096.0) * 2)


def test_given_up_bytes_can_be_held_and_saved(minimum: str, tmp_path: object) -> None:
    source = torch.arange(4096.0).to(minimum)
    with headwater.region("recompute"):
        double = source * 2
    with headwater.hold(double):
        assert headwater.stats().num_replays == 1
    torch.save(double, f"{tmp_path}/double.pt")
    assert torch.equal(torch.load(f"{tmp_path}/double.pt").cpu(), torch.arange(4096.0) * 2)


def test_disabling_makes_everything_again(minimum: str) -> None:
    source = torch.arange(4096.0).to(minimum)
    with headwater.region("recompute"):
        many = [source * i for i in range(8)]
    assert headwater.stats().num_given_up > 0
    headwater.disable()
    for i, made in enumerate(many):
        assert torch.equal(made.cpu(), torch.arange(4096.0) * i)


def test_long_chains_are_cut(minimum: str) -> None:
    value = torch.ones(4096).to(minimum)
    with headwater.region("recompute"):
        chain = [value]
        for _ in range(400):
            chain.append(chain[-1] + chain[-1])
            chain[-1].clamp_(max=2.0**20)
    before = headwater.stats().num_ops
    assert float(chain[-1][0]) == 2.0**20
    assert headwater.stats().num_ops - before < 100


def test_without_room_to_make_it_is_left_alone(device: str) -> None:
    headwater.enable("1GiB" if device == "cpu" else 0.5, device=device)
    with headwater.region("recompute"):
        made = torch.ones(4096).to(device) * 2
    assert float(made.sum()) == 8192
    assert headwater.stats().num_given_up == 0


def test_regions_nest_and_end(minimum: str) -> None:
    source = torch.arange(4096.0).to(minimum)
    with headwater.region("recompute"):
        with headwater.region("offload"):
            copied = source + 1
        given_up = source + 2
    after = source + 3
    assert headwater.stats().num_given_up == 1
    for i, made in enumerate((copied, given_up, after), start=1):
        assert torch.equal(made.cpu(), torch.arange(4096.0) + i)


def test_another_region_is_refused() -> None:
    with pytest.raises(ValueError, match="'offload', 'recompute': 'forget'"):
        headwater.region("forget")


def test_what_somebody_holds_while_it_is_read_is_copied_instead() -> None:
    enable_minimum("cpu")
    source = torch.arange(4096.0).clone()
    array = source.numpy()
    with headwater.region("recompute"):
        double = source * 2
    array[:] = 0
    assert torch.equal(double, torch.arange(4096.0) * 2)
    assert headwater.stats().num_given_up == 0


def test_results_put_into_tensors_of_others_keep_their_bits(minimum: str) -> None:
    source = torch.arange(4096.0).to(minimum)
    with headwater.region("recompute"):
        result = torch.mul(source, 2, out=torch.empty(0, device=minimum))
        values, places = torch.topk(
            source,
            3,
            out=(
                torch.empty(0, device=minimum),
                torch.empty(0, dtype=torch.long, device=minimum),
            ),
        )
        wide = (source * 3).resize_(80, 80)
    for _ in range(2):
        assert torch.equal(result.cpu(), torch.arange(4096.0) * 2)
        assert values.tolist() == [4095, 4094, 4093]
        assert places.tolist() == [4095, 4094, 4093]
        assert torch.equal(wide.cpu().flatten()[:4096], torch.arange(4096.0) * 3)


def test_a_storage_that_was_exchanged_is_freed(minimum: str) -> None:
    other = torch.arange(4096.0).to(minimum)
    with headwater.region("recompute"):
        exchanged = torch.ones(64, 64, device=minimum) * 2
        view = exchanged[:8]
        exchanged.set_(other.untyped_storage(), 0, (4096,), (1,))
        again = exchanged * 2
    del other, exchanged, view
    assert torch.equal(again.cpu(), torch.arange(4096.0) * 2)


def test_an_input_that_only_its_storage_object_holds_is_read_in_place(minimum: str) -> None:
    source = torch.arange(4096.0).to(minimum)
    with headwater.region("recompute"):
        double = source * 2
    storage = source.untyped_storage()
    del source
    assert torch.equal(double.cpu(), torch.arange(4096.0) * 2)
    assert headwater.stats().num_replays == 1
    assert storage.nbytes() == 4096 * 4


def test_bytes_kept_for_others_go_with_them(minimum: str) -> None:
    for _ in range(20):
        source = torch.arange(4096.0).to(minimum)
        with headwater.region("recompute"):
            double = source * 2
        torch.ones(16, device=minimum).add_(1)
        del source
        assert float(double[1]) == 2
    del double
    assert headwater.stats().num_tensors < 10


def test_settings_are_put_back() -> None:
    enable_minimum("cpu")
    tiny = torch.full((4096,), 1e-39)
    halves = torch.arange(4096)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    with headwater.region("recompute"):
        denormal, quotient = tiny * 0.5, halves / 2
    torch.set_flush_denormal(True)
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(2)
    try:
        assert float(denormal.view(torch.int32).float().sum()) > 0
        assert quotient.dtype == torch.float32
        assert torch.equal(quotient.double(), halves.double() * 0.5)
        assert torch.get_default_dtype() == torch.float64
        assert torch.get_num_threads() == 2
    finally:
        torch.set_flush_denormal(False)
        torch.set_default_dtype(torch.float32)
        torch.set_num_threads(before)
    assert headwater.stats().num_replays >= 2


def test_numbers_that_are_managed_stay_numbers(minimum: str) -> None:
    number = torch.tensor(3.0).to(minimum)
    with headwater.region("recompute"):
        product = number * 2.5
    torch.ones(16, device=minimum).add_(1)
    assert product.item() == 7.5
    assert product.dtype == torch.float32


def test_other_threads_may_free_what_a_replay_needs(minimum: str) -> None:
    made: list[Tensor] = []

    def free() -> None:
        while True:
            try:
                made.pop(0)
            except IndexError:
                if done.is_set():
                    return
                time.sleep(0)

    done = threading.Event()
    thread = threading.Thread(target=free)
    thread.start()
    try:
        for i in range(300):
            source = torch.full((4096,), float(i), device=minimum)
            with headwater.region("recompute"):
                middle = source * 2
                last = middle + 1
            made += [source, middle]
            del source, middle
            assert float(last[7]) == 2 * i + 1
    finally:
        done.set()
        thread.join()


def test_calls_of_a_decorated_function_may_overlap() -> None:
    from headwater import _C

    inside, leave = threading.Event(), threading.Event()
    left: list[int] = []

    @headwater.region("recompute")
    def wait() -> None:
        inside.set()
        leave.wait(10)

    def call() -> None:
        wait()
        left.append(_C.set_wish(0))

    thread = threading.Thread(target=call)
    thread.start()
    inside.wait(10)
    recompute(torch.tanh, torch.ones(4))
    leave.set()
    thread.join()
    assert left == [0]
    assert _C.set_wish(0) == 0
