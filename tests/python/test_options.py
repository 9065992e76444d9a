"""How options are read."""

from __future__ import annotations

import numpy as np
import pytest
from headwater.devices import find_device, free_bytes
from headwater.options import (
    MINIMUM,
    Options,
    disabled_by_environment,
    format_bytes,
    parse_budget,
    parse_size,
)

GIB = 2**30


def budget_of(value: object, total: int = 16 * GIB, free: int = 10 * GIB) -> int | None:
    return parse_budget(value, "cpu", total, lambda: free)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (4096, 4096),
        (np.int64(4096), 4096),
        ("4096", 4096),
        ("10GiB", 10 * GIB),
        ("10 gib", 10 * GIB),
        (" 1.5GB ", 1_500_000_000),
        ("512MiB", 512 * 2**20),
        ("3kB", 3000),
        ("3KiB", 3072),
        ("7B", 7),
        (0.5, 8 * GIB),
        ("0.25", 4 * GIB),
        (1.0, 16 * GIB),
        ("minimum", MINIMUM),
        ("Minimum", MINIMUM),
        ("auto", 9 * GIB),
    ],
)
def test_a_budget_is_bytes_a_size_a_fraction_or_a_word(value: object, expected: int | None) -> None:
    assert budget_of(value) == expected


def test_auto_never_exceeds_the_device() -> None:
    assert budget_of("auto", total=4 * GIB, free=100 * GIB) == 4 * GIB


def test_free_memory_is_asked_for_auto_only() -> None:
    def fail() -> int:
        raise AssertionError("asked")

    assert parse_budget("1GiB", "cpu", 16 * GIB, fail) == GIB


@pytest.mark.parametrize(
    "value",
    ["", "lots", "GiB", "10 GiBs", "10G", "1e9", "0x10", "10 10", None, [], True, False, b"1GiB"],
)
def test_an_unreadable_budget_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r"^Cannot read budget\. Write an int of bytes"):
        budget_of(value)


@pytest.mark.parametrize("value", [0, -1, "0", "-1GiB", "0GiB", 2**63, "99999999999GiB"])
def test_a_budget_that_is_no_positive_size_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="at least 1 byte and less than"):
        budget_of(value)


@pytest.mark.parametrize("value", [0.0, -0.5, 1.5, float("nan"), float("inf"), "1.5", "-0.5"])
def test_a_fraction_outside_zero_to_one_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="fraction of the device, above 0 and at most 1"):
        budget_of(value)


def test_a_budget_above_the_device_is_refused_with_both_sizes() -> None:
    with pytest.raises(ValueError, match="asked 17 GiB, cpu has 16 GiB$"):
        budget_of("17GiB")


@pytest.mark.parametrize("value", ["none", True, 1.5, 0, -4, "0"])
def test_a_size_that_is_not_positive_bytes_is_refused_by_name(value: object) -> None:
    with pytest.raises(ValueError, match="host_budget"):
        parse_size(value, "host_budget")  # type: ignore[arg-type]


def test_an_argument_wins_over_the_environment_and_that_over_the_default() -> None:
    environment = {"HEADWATER_BUDGET": "1GiB", "HEADWATER_LOG": "debug", "HEADWATER_DEVICE": ""}
    options = Options.gather({"budget": "2GiB", "log_level": None}, environment)
    assert options == Options(budget="2GiB", log_level="debug", device=None)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        (Options.gather({}, {"HEADWATER_BUDGET": "lots"}), "HEADWATER_BUDGET"),
        (Options.gather({"budget": "lots"}, {"HEADWATER_BUDGET": "1GiB"}), "budget"),
    ],
)
def test_an_error_names_where_the_value_came_from(options: Options, name: str) -> None:
    with pytest.raises(ValueError, match=f"^Cannot read {name}\\."):
        parse_budget(options.budget, "cpu", GIB, lambda: GIB, options.name("budget"))


def test_every_option_has_an_environment_variable() -> None:
    environment = {
        "HEADWATER_BUDGET": "0.5",
        "HEADWATER_DEVICE": "cpu",
        "HEADWATER_HOST_BUDGET": "1GiB",
        "HEADWATER_DISK": "folder",
        "HEADWATER_DISK_BUDGET": "2GiB",
        "HEADWATER_MIN_TENSOR_BYTES": "1",
        "HEADWATER_LOG": "off",
    }
    expected = Options("0.5", "cpu", "1GiB", "folder", "2GiB", "1", "off")
    assert Options.gather({}, environment) == expected


def test_an_unknown_log_level_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^Unknown log_level\. Use.*got 'loud'$"):
        Options.gather({"log_level": "loud"}, {})


@pytest.mark.parametrize(("value", "off"), [("1", True), ("yes", True), ("0", False), ("", False)])
def test_headwater_disable_is_read_as_a_switch(value: str, off: bool) -> None:
    assert disabled_by_environment({"HEADWATER_DISABLE": value}) is off


@pytest.mark.parametrize("name", ["tpu", "cuda:99", "meta", "cpu cpu", 3.5])
def test_a_device_that_does_not_exist_is_refused(name: object) -> None:
    with pytest.raises(ValueError, match=r"[Dd]evice"):
        find_device(name)  # type: ignore[arg-type]


def test_the_free_memory_of_the_machine_is_known() -> None:
    assert free_bytes("cpu") > 0


def test_sizes_are_printed_with_their_unit() -> None:
    assert [format_bytes(n) for n in (12, 1536, 3 * GIB)] == ["12 B", "1.5 KiB", "3 GiB"]
