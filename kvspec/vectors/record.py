"""From events to a case: the reference answers them, and what else is allowed is worked out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec import UNSET

from kvspec.capabilities import LACKABLE, features
from kvspec.codec import form_of
from kvspec.spec import events as ev
from kvspec.spec.case import Ledger, Violation
from kvspec.spec.clauses import LIVE_ANSWER, Profile
from kvspec.spec.judge import initial_state, judge
from kvspec.spec.state import State
from kvspec.spec.types import Config
from kvspec.targets import Target, find_factory

from . import model as m
from .books import books
from .expected import Answered
from .naming import Naming

SNAPSHOT = ev.Snapshot()


def record(id: str, title: str, source: m.Source, events: Sequence[ev.Event]) -> m.Case:
    """The case of these events, the configuration first."""
    config, *rest = events
    assert isinstance(config, Config)
    recorder = _Recorder(config)
    steps = tuple(map(recorder.step, rest))
    return m.Case(
        format=m.FORMAT,
        id=id,
        title=title,
        source=source,
        clauses=_named(steps),
        needs=_needed(config, rest, steps),
        configuration=msgspec.convert(config, form_of(Config), from_attributes=True),
        steps=steps,
        refused=_refused(steps[-1]),
    )


class _Recorder:
    """The reference, judged as it goes."""

    def __init__(self, config: Config) -> None:
        self.target = Target("reference", find_factory("reference"), config)
        self.state, self.naming = initial_state(config), Naming()

    def step(self, event: ev.Event) -> m.Step:
        """Send one event."""
        form = self._form(event)
        before, seen = self.state, self.target.ask(event)
        self._judge(event, seen)
        answered = Answered(before, event, seen, self.state, self.naming)
        checks = answered.checks()
        shown = tuple(books(self.state, self.naming))
        self._judge(SNAPSHOT, self.target.ask(SNAPSHOT))
        return m.Step(
            event=form,
            may_skip=answered.may_skip(),
            refused=answered.refusal(),
            allowed=checks,
            books=shown,
            forget=self.naming.forget(self.state),
        )

    def _judge(self, event: ev.Event, seen: ev.Observation) -> State:
        verdict = judge(self.state, event, seen, Profile.ACCOUNTING, Ledger())
        assert not isinstance(verdict, Violation), verdict
        self.state = verdict
        return verdict

    def _form(self, event: ev.Event) -> Any:
        if isinstance(event, ev.Evict):
            return m.Evict(self.naming.all(event.blocks))
        kind: Any = type(event)
        form = form_of(kind, ev.EVENT_NAMES[kind])
        return msgspec.convert(event, form, from_attributes=True)


def _named(steps: Iterable[m.Step]) -> tuple[str, ...]:
    """The clauses that an engine may be found to break."""
    found = {LIVE_ANSWER.id}
    for step in steps:
        found |= {step.refused} if step.refused is not UNSET else set()
        for check in (*step.allowed, *step.books):
            found |= {check.clause, *_inside(check.is_)}
    return tuple(sorted(found))


def _inside(pattern: Any) -> set[str]:
    """The clauses that the predicates of a pattern name."""
    if isinstance(pattern, tuple):
        return set().union(*map(_inside, pattern))
    if not isinstance(pattern, m.Predicate):
        return set()
    own = {pattern.clause} if pattern.clause is not UNSET else set()
    held = [v for v in (pattern.one_of, pattern.map, pattern.copies) if v is not UNSET]
    return own | set().union(*map(_inside, held))


def _needed(config: Config, events: Sequence[ev.Event], steps: Sequence[m.Step]) -> tuple[str, ...]:
    """What an engine must not lack, by the names of `kvspec.capabilities`."""
    found = set(features(config))
    for event, step in zip(events, steps, strict=True):
        if not step.may_skip:
            found |= {ev.EVENT_NAMES[type(event)], *features(event)}
    return tuple(name for name in LACKABLE if name in found)


def _refused(last: m.Step) -> Any:
    """The clause by which the last event is refused, as an error or for want of room or order."""
    if last.refused is not UNSET:
        return last.refused
    granted = [check for check in last.allowed if check.field == "granted"]
    return granted[-1].clause if granted and granted[-1].is_ is False else UNSET
