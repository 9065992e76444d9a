"""What Headwater did, as data."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Stall:
    """Moves that one operator waited for, of tensors of one size."""

    op: str  # the operator that waited
    direction: str  # "fetch", or "offload" where room had to be made
    tensor: int  # id of the last of the tensors; activations have new ones in every step
    tensor_bytes: int  # of each of them
    num_waits: int
    wait_seconds: float  # host_seconds, or what the bytes take on the link where that is more
    host_seconds: float  # that the calling thread spent


@dataclass(frozen=True)
class Stats:
    """Numbers since ``enable`` (the peaks: since ``reset_peak_stats``). All zero if never enabled.

    >>> Stats(budget_bytes=1024).as_dict()["budget_bytes"]
    1024
    """

    budget_bytes: int = 0  # the limit in force; 0 for "minimum"
    resident_bytes: int = 0  # managed bytes on the device now
    peak_bytes: int = 0  # most managed bytes on the device at once
    managed_bytes: int = 0  # bytes of all managed tensors, on the device or not
    pinned_bytes: int = 0  # bytes that may not leave the device now
    unmanaged_bytes: int = 0  # device bytes seen in operators but left alone
    host_bytes: int = 0  # of tensors stored in host memory, those on their way included
    peak_host_bytes: int = 0  # most of them at once
    host_slab_bytes: int = 0  # host memory taken from the system for them; on a GPU it is pinned
    peak_host_slab_bytes: int = 0  # most that was taken at once
    disk_bytes: int = 0  # disk space that holds tensors the host had no room for
    bytes_offloaded: int = 0  # copied from the device
    bytes_fetched: int = 0  # copied back to it
    bytes_stowed: int = 0  # written to disk
    bytes_recalled: int = 0  # read back from it
    stall_seconds: float = 0.0  # time operators waited for moves
    num_ops: int = 0
    num_tensors: int = 0
    standing_by: bool = False  # operators are let through: everything fits twice over
    num_offloads: int = 0
    num_fetches: int = 0
    num_offloads_ahead: int = 0  # of those, begun before room was short
    num_fetches_ahead: int = 0  # of the fetches, begun before an operator asked
    num_fetches_abandoned: int = 0  # of those, never used
    num_stows: int = 0  # tensors written to disk
    num_recalls: int = 0  # tensors read back from it
    num_recalls_ahead: int = 0  # of those, begun before an operator asked
    num_inherited: int = 0  # tensors whose bytes an operator's result took, see the docs on plans
    num_given_up: int = 0  # tensors whose bytes went without a copy: operators can make them again
    num_replays: int = 0  # tensors made again
    num_replayed_ops: int = 0  # operators that ran once more for that
    bytes_replayed: int = 0
    num_replays_refused: int = 0  # tensors that were to be made again by plan, and could not be
    num_plans: int = 0  # carried out so far; a step that repeats itself needs one
    planning_seconds: float = 0.0  # that making plans took, on a thread beside the training
    num_ops_held_back: int = 0  # began no moves ahead, since a collective used the link
    num_stages: int = 0  # of the plan that is followed now; 0 when there is none
    planned_step_seconds: float = 0.0  # what a step takes by that plan
    planned_stall_seconds: float = 0.0  # of it, waiting for moves
    planned_replay_seconds: float = 0.0  # of it, making tensors again
    planned_peak_bytes: int = (
        0  # most bytes on the device at once, by that plan, workspaces included
    )
    fetch_bytes_per_second: float = 0.0  # of the link, as measured for the plan
    offload_bytes_per_second: float = 0.0
    num_clean_drops: int = 0  # offloads that copied nothing, the host copy being current
    num_chunked_ops: int = 0  # list operators run in chunks that fit
    num_evacuations: int = 0  # times others left for an operator that found no room on the device
    bytes_evacuated: int = 0  # of those that left then
    gap_bytes: int = 0  # of the budget, kept free: the device loses about as many to gaps

    def as_dict(self) -> dict[str, int | float]:
        """Returns the fields by name, ready for a log or a JSON file."""
        return asdict(self)
