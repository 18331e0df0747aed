"""Taking single clauses away from the judge: each has to let a fault pass that it alone sees.

A clause that can go without any fault passing says nothing that the others do not say; it has to
name those that it follows from.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, NoReturn
from unittest.mock import patch

from hypothesis.errors import UnsatisfiedAssumption

from kvspec.errors import ClauseBroken, EventUnsupported, TargetHung, TargetUnusable
from kvspec.machine import run_machine
from kvspec.memory import fits
from kvspec.optimized.manager import Manager
from kvspec.scenarios import SCENARIOS, Unsupported, run_scenario
from kvspec.session import Session
from kvspec.spec.case import Case, Violation
from kvspec.spec.clauses import (
    CLAUSES,
    DATA_BYTES,
    DATA_KERNEL,
    LIVE_ANSWER,
    Clause,
    Predicate,
    Profile,
)
from kvspec.spec.events import Event, Observation
from kvspec.spec.types import BlockId, InvalidInput
from kvspec.targets import TargetFault

from .catalogue import MUTANTS
from .drivers import at_work, name_of
from .liar import LIAR, Liar

EXAMPLES = 300
"""Runs of the state machine that a fault has to pass."""


@dataclass(frozen=True, slots=True)
class Loss:
    """What taking a clause away lets pass: a fault's id, or nothing.

    `seen` tells of each fault that was tried before which clause saw it all the same.
    """

    clause: str
    passes: str
    seen: dict[str, str]
    seconds: float

    @property
    def explained(self) -> bool:
        """Whether a fault passes, or the clause says what it follows from."""
        return bool(self.passes or CLAUSES[self.clause].follows_from)


def faults_of(clause: Clause) -> list[str]:
    """The faults to try: wrong books where the clause speaks of books, then what is filed."""
    filed = [mutant.id for mutant in MUTANTS.values() if mutant.clause == clause.id]
    return [LIAR, *filed] if clause.id in clauses_of_books() else filed


@cache
def clauses_of_books() -> frozenset[str]:
    """The clauses that say what an event owes the next snapshot, as the scenarios meet them."""
    found: set[str] = set()
    owe = Case.owe

    def note(case: Case, clause: Clause, what: str, block: BlockId) -> None:
        found.add(clause.id)
        owe(case, clause, what, block)

    with patch.object(Case, "owe", note):
        for scenario in SCENARIOS.values():
            run_scenario(scenario, "optimized", Manager)
    return frozenset(found)


def lose(id: str, examples: int = EXAMPLES, seed: int = 0) -> Loss:
    """Take a clause away and try faults until one passes that the whole judge sees by it."""
    clause, began, seen = CLAUSES[id], time.monotonic(), dict[str, str]()
    for name in faults_of(clause):
        with _fault(clause, name) as fault:
            with without(clause):
                seen[name] = broken_by(fault, examples, seed)
            if not seen[name]:
                whole = broken_by(fault, examples, seed)
                if whole == id:
                    return Loss(id, name, seen, time.monotonic() - began)
                seen[name] = f"{whole or 'nobody'}, the clause in its place"
    return Loss(id, "", seen, time.monotonic() - began)


@dataclass(frozen=True, slots=True)
class Fault:
    """Something to judge: a target, and the profile that it is held to."""

    target: str
    factory: Callable[[], Any]
    profile: Profile | None


@contextmanager
def _fault(clause: Clause, id: str) -> Iterator[Fault]:
    if id == LIAR:
        yield Fault(LIAR, lambda: Liar(clause), None)
        return
    mutant = MUTANTS[id]
    with at_work(mutant) as counter:
        yield Fault(name_of(mutant), counter, mutant.profile)


def broken_by(fault: Fault, examples: int, seed: int) -> str:
    """The clause that a fault breaks in the scenarios and in the state machine, or nothing.

    What a scenario says of values is set aside: here the judge is on trial.
    """
    try:
        for scenario in SCENARIOS.values():
            try:
                run_scenario(scenario, fault.target, fault.factory, profile=fault.profile)
            except (Unsupported, EventUnsupported):
                continue
            except (ClauseBroken, TargetUnusable, TargetHung):
                raise
            except Exception:  # another value, or a scenario that was led astray by one
                continue
        run_machine(
            fault.target, fault.factory, profile=fault.profile, examples=examples, seed=seed
        )
    except ClauseBroken as broken:
        return broken.violation.clause.id
    except TargetHung:
        return "it hangs"
    return ""


@contextmanager
def without(clause: Clause) -> Iterator[None]:
    """The judge without a clause.

    Where the judge cannot go on from what the clause would have refused, or a target does not
    answer, nothing more is asked. The bytes that a worker moves mirror what a target reads, so
    none are moved but for the clauses about bytes.
    """
    weigh, breaks = Case._weigh, Session._break
    send, judge, lacks = Session.send, Session._judge, Session.lacks

    def weigh_others(
        case: Case, of: Clause, holds: Predicate, observed: Any, allowed: Any, where: str
    ) -> None:
        if of is not clause:
            weigh(case, of, holds, observed, allowed, where)
        elif clause is LIVE_ANSWER and not holds(observed, allowed):
            raise EventUnsupported("no answer")

    def break_others(session: Session, violation: Violation) -> None:
        if violation.clause is not clause:
            breaks(session, violation)
        if clause is LIVE_ANSWER:
            _give_up(session)

    def judge_on(session: Session, event: Event, answer: Observation) -> None:
        try:
            judge(session, event, answer)
        except (ClauseBroken, TargetUnusable, TargetHung):
            raise
        except Exception:
            _give_up(session)

    def lacks_all(session: Session, event: Event) -> bool:
        if hasattr(session, "given_up"):
            raise UnsatisfiedAssumption  # ends a run of the state machine, or a scenario
        return lacks(session, event)

    def send_if_valid(session: Session, event: Event) -> Observation:
        try:
            return send(session, event)
        except (InvalidInput, TargetFault):  # led on, the driver or the reference is lost
            _give_up(session)

    about_bytes = clause in (DATA_BYTES, DATA_KERNEL)
    with (
        patch("kvspec.session.fits", fits if about_bytes else lambda _: False),
        patch.object(Case, "_weigh", weigh_others),
        patch.object(Session, "_break", break_others),
        patch.object(Session, "_judge", judge_on),
        patch.object(Session, "send", send_if_valid),
        patch.object(Session, "lacks", lacks_all),
    ):
        yield


def _give_up(session: Session) -> NoReturn:
    session.given_up = True  # type: ignore[attr-defined]
    raise EventUnsupported("nothing more can be judged")
