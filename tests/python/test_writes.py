"""The adapter's table of unmarked writes covers every write that operators are seen to make."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.conformance.op_db.writes import NOT_AN_ARGUMENT, Choice, WriteWatch, find_writes

FRACTION = 0.05
# Operators whose schemas are known not to tell: always watched with all of their samples.
KNOWN = "batch_norm|instance_norm|rrelu|fused|embedding|dropout"


@pytest.fixture(scope="module")
def liar() -> Iterator[torch.library.Library]:
    """An operator that writes its second argument and says that it only reads it."""
    library = torch.library.Library("headwater_test_writes", "FRAGMENT")
    library.define("liar(Tensor a, Tensor b) -> Tensor")
    library.impl("liar", lambda a, b: a + b.fill_(1), "CompositeExplicitAutograd")
    yield library
    library._destroy()


def test_watch_finds_a_write_that_the_schema_does_not_mark(liar: torch.library.Library) -> None:
    watch = WriteWatch()
    with watch:
        torch.ops.headwater_test_writes.liar(torch.zeros(3), torch.zeros(3))
    assert watch.found["headwater_test_writes::liar"] == {1}


def test_watch_accepts_a_write_that_the_schema_marks() -> None:
    watch = WriteWatch()
    with watch:
        torch.zeros(3).add_(1)
    assert not any(watch.found.values())


def test_watch_finds_a_write_to_a_tensor_that_is_no_argument(
    liar: torch.library.Library,
) -> None:
    hidden = torch.zeros(3)
    liar.define("hidden_write(Tensor a) -> Tensor")
    liar.impl("hidden_write", lambda a: a + hidden.fill_(2), "CompositeExplicitAutograd")
    watch = WriteWatch()
    watch.bystanders = [hidden]
    with watch:
        torch.ops.headwater_test_writes.hidden_write(torch.zeros(3))
    assert watch.found["headwater_test_writes::hidden_write"] == {NOT_AN_ARGUMENT}


@pytest.mark.parametrize(("pattern", "fraction"), [("", FRACTION), (KNOWN, 1.0)])
def test_every_unmarked_write_is_in_the_adapter_table(pattern: str, fraction: float) -> None:
    from headwater import _C

    findings = find_writes(Choice(fraction=fraction, pattern=pattern))
    assert findings.num_samples > 100
    assert len(findings.operators) > 30
    table = _C.unmarked_writes()
    missing = {
        name: indices
        for name, indices in findings.as_table().items()
        if not set(indices) <= set(table.get(name, ()))
    }
    assert not missing, f"operators write arguments that the table does not name: {missing}"
