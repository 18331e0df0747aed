"""The judge: State x Event x Observation -> State | Violation.

It does not choose. It is given what the target chose and says whether that was allowed. Every
function beside it takes a `Case`, requires clauses and edits the draft of the next state.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import clauses as c
from . import events as ev
from . import marks as m
from .admit import admit
from .case import Broken, Case, Ledger, Violation
from .chunks import block_fits_no_step, chunk_length, free_from
from .clauses import Profile
from .judge_end import (
    judge_append,
    judge_detach,
    judge_end,
    judge_evict,
    judge_free_detached,
    judge_preempt,
    judge_reset,
    judge_submit,
    judge_withdraw,
)
from .judge_grant import judge_allocate
from .judge_lookup import judge_lookup, judge_lookup_for_connector, judge_truncate
from .judge_snapshot import judge_snapshot
from .judge_step import (
    judge_begin_step,
    judge_end_step,
    judge_execute,
    judge_load_external,
    judge_offload_done,
    judge_offload_read,
    judge_process,
    judge_release_retained,
    judge_take_copies,
    judge_take_offloads,
    judge_take_zeroing,
)
from .state import State
from .types import Config, align_down

MAY_BE_REJECTED = (ev.Truncate, ev.Allocate)
"""Events that the language may call an error, so that a target has to refuse them."""

KEEPS_LOOKUP = (ev.Lookup, ev.LookupForConnector, ev.Truncate, ev.Snapshot)
"""Events after which a lookup still counts as the one directly before."""

CHANGES_NOTHING = (*KEEPS_LOOKUP, ev.Chunk)
"""Questions."""


def initial_state(config: Config) -> State:
    """A cache that was just configured: nothing held, nothing keyed."""
    return State(config)


def judge(
    state: State,
    event: ev.Event,
    observation: ev.Observation,
    profile: Profile = Profile.ACCOUNTING,
    ledger: Ledger | None = None,
) -> State | Violation:
    """The next state, or the clause that the observation breaks.

    `ledger`, where given, counts how often each clause was exercised. Raises `InvalidInput` when
    the event itself may not be sent in this state.
    """
    admit(state, event)
    return judge_admitted(state, event, observation, profile, ledger or Ledger())


def judge_admitted(
    state: State,
    event: ev.Event,
    observation: ev.Observation,
    profile: Profile,
    ledger: Ledger,
) -> State | Violation:
    """As `judge`, for an event that `admit` has let pass."""
    case = Case(state, profile, ledger)
    if not isinstance(event, KEEPS_LOOKUP):
        case.draft.set(last_lookup=None)
    if not isinstance(event, ev.Snapshot):
        case.draft.set(freed=())
    if not isinstance(event, CHANGES_NOTHING):
        case.draft.set(free_list=None)
    try:
        if not isinstance(event, MAY_BE_REJECTED):
            rejected = observation if isinstance(observation, ev.Rejection) else None
            case.require(c.LIVE_ANSWER, rejected, None)
        _JUDGES[type(event)](case, event, observation)
    except Broken as broken:
        return broken.violation
    return case.close()


def judge_chunk(case: Case, event: ev.Chunk, seen: ev.ChunkLength) -> None:
    """Pure arithmetic: the state has no part in it."""
    clipped = event.start < free_from(event)
    stuck = clipped and block_fits_no_step(event) and event.wanted > 0
    if stuck:
        case.require(c.CHUNK_ADVANCE, seen.num_tokens, 1)
        case.mark(m.STUCK_CHUNK)
    if seen.num_tokens > 0 or not stuck:
        case.require(c.CHUNK_END, seen.num_tokens, chunk_length(event))
    end = event.start + seen.num_tokens
    tail = align_down(event.num_prompt_tokens, event.hash_unit)
    if clipped and seen.num_tokens < event.wanted and end == tail and tail % event.block_size:
        case.mark(m.TAIL_STOP)


_JUDGES: dict[type[ev.Event], Callable[[Case, Any, Any], None]] = {
    ev.Submit: judge_submit,
    ev.BeginStep: judge_begin_step,
    ev.Lookup: judge_lookup,
    ev.LookupForConnector: judge_lookup_for_connector,
    ev.Truncate: judge_truncate,
    ev.Allocate: judge_allocate,
    ev.TakeZeroing: judge_take_zeroing,
    ev.TakeCopies: judge_take_copies,
    ev.TakeOffloads: judge_take_offloads,
    ev.EndStep: judge_end_step,
    ev.Execute: judge_execute,
    ev.Process: judge_process,
    ev.ReleaseRetained: judge_release_retained,
    ev.Append: judge_append,
    ev.Withdraw: judge_withdraw,
    ev.Preempt: judge_preempt,
    ev.Finish: judge_end,
    ev.Abort: judge_end,
    ev.Detach: judge_detach,
    ev.FreeDetached: judge_free_detached,
    ev.OffloadRead: judge_offload_read,
    ev.OffloadDone: judge_offload_done,
    ev.LoadExternal: judge_load_external,
    ev.Evict: judge_evict,
    ev.Reset: judge_reset,
    ev.Chunk: judge_chunk,
    ev.Snapshot: judge_snapshot,
}
