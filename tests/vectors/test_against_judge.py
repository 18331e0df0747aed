"""A vector allows what the judge allows: both look at every answer, altered in all small ways."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import pytest

from kvspec.spec import events as ev
from kvspec.spec.case import Ledger, Violation
from kvspec.spec.clauses import CLAUSES, Profile
from kvspec.spec.judge import initial_state, judge_admitted
from kvspec.spec.state import State
from kvspec.spec.types import Config, Connector, Group, GroupKind, RequestId, Token
from kvspec.targets import Target, find_factory
from kvspec.vectors.matching import Bound, Differs, Parts, hold
from kvspec.vectors.model import Case, Check, Predicate, Source
from kvspec.vectors.play import event_of, play
from kvspec.vectors.record import record
from kvspec.vectors.sources import vectors
from tests.machine.test_other_choices import LetsGo

SNAPSHOT = ev.Snapshot()


def altered(value: Any, blocks: int) -> Iterator[Any]:
    """A value changed in one place."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield from sorted(n for n in {value - 1, value + 1, 0, 1, blocks - 1, blocks} if n >= 0)
    elif isinstance(value, str):
        yield value + "x"
    elif isinstance(value, list | tuple):
        items = list(value)
        for at, item in enumerate(items):
            yield from ([*items[:at], other, *items[at + 1 :]] for other in altered(item, blocks))
            yield items[:at] + items[at + 1 :]
            yield [*items, item]
            if at:
                yield [*items[: at - 1], item, items[at - 1], *items[at + 1 :]]
        yield from ([*items, 0], [*items, 1], [*items, []])
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from ({**value, key: other} for other in altered(item, blocks))
            yield {k: v for k, v in value.items() if k != key}
            yield {**value, blocks - 1 if isinstance(key, int) else "other": item}


def answers(answer: ev.Observation, blocks: int) -> Iterator[ev.Observation]:
    """Every answer of the right form that differs from this one in one place."""
    plain = msgspec.to_builtins(answer)
    for name, value in plain.items():
        for other in altered(value, blocks):
            try:
                yield msgspec.convert(copy.deepcopy({**plain, name: other}), type(answer))
            except msgspec.ValidationError:
                continue


def judged(state: State, event: ev.Event, answer: ev.Observation, profile: Profile) -> str:
    """The clause that the judge finds broken; "form" for what no judge is asked about."""
    for name in ("blocks", "new_blocks", "table"):
        lists = getattr(answer, name, None)
        grouped = isinstance(answer, ev.Hit | ev.ConnectorHit | ev.View | ev.Grant)
        if grouped and lists is not None and len(lists) != len(state.config.groups):
            return "form"
    try:
        verdict = judge_admitted(state, event, answer, profile, Ledger())
    except (AssertionError, IndexError, ValueError, TypeError):
        return "form"
    return verdict.clause.id if isinstance(verdict, Violation) else ""


def allowed(
    checks: tuple[Check, ...], answer: ev.Observation, bound: Bound, profile: Profile
) -> str:
    """The clause that a vector finds broken; "ends" where the case ends without."""
    bound = replace(bound, blocks=dict(bound.blocks), digests=dict(bound.digests))
    values = msgspec.to_builtins(answer)
    try:
        for check in checks:
            hold(check, values, bound)
    except Parts:
        return "ends"
    except Differs as differs:
        return differs.clause if profile.covers(CLAUSES[differs.clause].profile) else "ends"
    return ""


@dataclass
class Comparison:
    """The reference plays a case; beside each of its answers stand the altered ones."""

    case: Case
    every: int
    counts: Counter[tuple[str, bool, bool]] = field(default_factory=Counter)

    def run(self) -> Comparison:
        config: Config = msgspec.convert(self.case.configuration, Config, from_attributes=True)
        target = Target("reference", find_factory("reference"), config)
        self.state, self.bound = initial_state(config), Bound(config.num_blocks)
        for number, step in enumerate(self.case.steps):
            event = event_of(step, self.bound)
            self.look(event, target.ask(event), step.allowed, tuple(Profile)[:2])
            books = target.ask(SNAPSHOT)
            profiles = (Profile.ACCOUNTING,) if number % self.every == 0 else ()
            self.look(SNAPSHOT, books, step.books, profiles)
            self.bound.shown = msgspec.to_builtins(books)
            for name in step.forget:
                del self.bound.blocks[name]
        return self

    def look(
        self,
        event: ev.Event,
        answer: ev.Observation,
        checks: tuple[Check, ...],
        profiles: tuple[Profile, ...],
    ) -> None:
        """Compare what is said of each answer, then go on with the right one."""
        if not isinstance(answer, ev.Rejection):
            for other in answers(answer, self.bound.num_blocks) if profiles else ():
                for profile in profiles:
                    self.compare(event, other, checks, profile)
            for check in checks:
                hold(check, msgspec.to_builtins(answer), self.bound)
        verdict = judge_admitted(self.state, event, answer, Profile.ACCOUNTING, Ledger())
        assert isinstance(verdict, State)
        self.state = verdict

    def compare(
        self, event: ev.Event, answer: ev.Observation, checks: tuple[Check, ...], profile: Profile
    ) -> None:
        """Nothing that the judge accepts fails a vector, nothing that it rejects passes one."""
        broken = judged(self.state, event, answer, profile)
        said = allowed(checks, answer, self.bound, profile)
        assert broken or said in ("", "ends"), (self.case.id, event, answer, profile, said)
        assert said or broken in ("", "form"), (self.case.id, event, answer, profile, broken)
        self.counts[profile.value, not broken, said == "ends"] += 1


def compared(every: int) -> Counter[tuple[str, bool, bool]]:
    total: Counter[tuple[str, bool, bool]] = Counter()
    for case in vectors():
        total += Comparison(case, every).run().counts
    return total


def test_a_vector_allows_what_the_judge_allows() -> None:
    counts = compared(every=40)
    assert counts["accounting", True, False] > 1000
    assert counts["accounting", True, True] > 50
    assert counts["accounting", False, False] > 20_000
    assert counts["soundness", True, True] > 1000


def test_a_state_that_a_load_replaces_may_be_counted_or_not() -> None:
    """One block short with it, enough without: a grant may be refused, and need not be."""
    prompt = tuple(map(Token, range(9)))
    a, b = RequestId("a"), RequestId("b")
    groups = Group(GroupKind.FULL, 2), Group(GroupKind.MAMBA_ALIGN, 2)
    events = (
        Config(6, 2, groups, 16, connector=Connector.UNIFORM),
        ev.Submit(a, prompt[:4]),
        ev.BeginStep(),
        ev.Allocate(a, 4),
        ev.EndStep(),
        ev.Execute(),
        ev.Process(),
        ev.Finish(a),
        ev.Submit(b, prompt),
        ev.BeginStep(),
        ev.Lookup(b),
        ev.Allocate(b, 0, 4),
    )
    case = record("small/made/short", "one block short", Source("scenario", "made"), events)
    either = [check.is_ for check in case.steps[-1].allowed if check.field == "granted"]
    assert either == [Predicate(one_of=(False, True))] * 2
    Comparison(case, 1).run()
    lets_go = play(case, "lets go", LetsGo)
    assert (lets_go.result, lets_go.why) == ("passed", "allocate: granted was chosen otherwise")


@pytest.mark.deep
def test_and_all_books() -> None:
    assert compared(every=1)["accounting", False, False] > 500_000
