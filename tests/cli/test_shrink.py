"""Shrinking: short, plain, admissible, bounded and the same every time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvspec.codec import trace_text
from kvspec.errors import ClauseBroken, InvalidInput, TargetHung
from kvspec.machine import run_machine
from kvspec.shrink import Events, breaks, reproduces, run_events, shrink
from kvspec.spec import events as ev
from kvspec.spec.types import BlockId, Config, Connector, Group, GroupKind, RequestId, Token
from kvspec.targets import canary
from tests.codec.strategies import EVENTS

NAME = "kvspec.targets:canary"
CONFIG = Config(
    16,
    2,
    (Group(GroupKind.FULL, 4, eagle=True), Group(GroupKind.MAMBA_ALIGN, 4)),
    16,
    connector=Connector.UNIFORM,
    deferral=True,
    max_in_flight=2,
)
TRACE: Events = (
    CONFIG,
    ev.Submit(RequestId("long name"), tuple(map(Token, range(9))), salt="pepper"),
    ev.Snapshot(),
    ev.Submit(RequestId("other"), tuple(map(Token, range(3)))),
    ev.Evict(tuple(map(BlockId, range(1, 9)))),
    ev.Reset(),
)


def test_what_does_not_matter_is_taken_out_and_the_rest_made_plain() -> None:
    def evicts_twice(events: Events) -> Events | None:
        found = any(isinstance(e, ev.Evict) and len(e.blocks) >= 2 for e in events)
        return events if found else None

    config, evict = shrink(TRACE, evicts_twice)
    assert config == Config(2, 1, (Group(GroupKind.FULL, 1),), 1)
    assert evict == ev.Evict((BlockId(0), BlockId(0)))


def test_a_trace_that_does_not_fail_is_left_as_it_is() -> None:
    assert shrink(TRACE, lambda _: None) == TRACE


def test_requests_get_short_names_and_plain_tokens() -> None:
    def submits(events: Events) -> Events | None:
        return events if any(isinstance(e, ev.Submit) for e in events) else None

    [_, submit] = shrink(TRACE, submits)
    assert isinstance(submit, ev.Submit)
    assert (submit.request, submit.salt) == ("a", None)


def test_the_configuration_stays_first() -> None:
    seen: list[Events] = []

    def anything(events: Events) -> Events | None:
        seen.append(events)
        return events

    assert len(shrink(TRACE, anything)) == 1
    assert all(isinstance(events[0], Config) for events in seen)


@given(st.integers(0, 200))
def test_the_budget_bounds_the_candidates(budget: int) -> None:
    spent = 0

    def counted(events: Events) -> Events | None:
        nonlocal spent
        assert spent <= budget + len(TRACE)  # the first run is not a candidate
        spent += len(events)
        return events if len(events) > 2 else None

    shrink(TRACE, counted, budget)


@given(st.lists(EVENTS.filter(lambda event: not isinstance(event, Config)), max_size=6))
def test_any_trace_can_be_shrunk(events: list[ev.Event]) -> None:
    trace = (CONFIG, *events)
    shrunk = shrink(trace, lambda candidate: candidate if len(candidate) > 1 else None, 500)
    assert len(shrunk) <= max(len(trace), 2)
    trace_text(shrunk)


def test_a_target_that_hangs_ends_the_search_with_the_best_so_far() -> None:
    def hangs(events: Events) -> Events | None:
        if len(events) < 4:
            raise TargetHung("no answer")
        return events

    assert 4 <= len(shrink(TRACE, hangs)) <= len(TRACE)


# --- on a target ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def found() -> ClauseBroken:
    """What the machine finds in the canary, unshrunk."""
    with pytest.raises(ClauseBroken) as caught:
        run_machine(NAME, canary, examples=100)
    return caught.value


def test_the_canary_is_shrunk_to_a_dozen_events_that_still_break_it(found: ClauseBroken) -> None:
    clause = found.violation.clause.id
    shrunk = shrink(found.events, breaks(clause, NAME, canary, None))
    assert len(shrunk) <= 12
    violation = reproduces(NAME, canary, None, shrunk)
    assert violation is not None
    assert violation.clause.id == clause


def test_the_same_trace_is_shrunk_to_the_same(found: ClauseBroken) -> None:
    still_fails = breaks(found.violation.clause.id, NAME, canary, None)
    assert shrink(found.events, still_fails, 5000) == shrink(found.events, still_fails, 5000)


def test_a_trace_that_conforms_breaks_nothing() -> None:
    assert reproduces(NAME, canary, None, TRACE[:2]) is None


def test_a_trace_is_run_as_it_is_or_refused() -> None:
    with pytest.raises(InvalidInput, match="'ghost' was not submitted"):
        run_events(NAME, canary, None, (CONFIG, ev.Finish(RequestId("ghost"))))
    with pytest.raises(InvalidInput, match="must be configure"):
        run_events(NAME, canary, None, (ev.Snapshot(),))
