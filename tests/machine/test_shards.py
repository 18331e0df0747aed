"""A search in processes: the same seed finds the same, and a process that ends is told."""

from __future__ import annotations

import os
import pickle
from typing import NoReturn

import pytest

from kvspec.errors import ClauseBroken, TargetUnusable
from kvspec.failure import find_subject
from kvspec.reference.manager import Manager
from kvspec.shards import WORTH_IT, Outcome, search
from kvspec.shrink import run_events
from kvspec.spec import events as ev

CANARY = "kvspec.targets:canary"


class Leaves(Manager):
    """Ends its process from within, as a crash in C would."""

    def begin_step(self) -> NoReturn:
        os.kill(os.getpid(), 9)
        raise AssertionError


def found(target: str, examples: int = WORTH_IT, seed: int = 0) -> list[Outcome]:
    subject = find_subject(target)
    return search(subject, examples=examples, steps=5, seed=seed, max_seconds=None)


def test_the_same_seed_finds_the_same_in_other_processes() -> None:
    once, again = found("reference"), found("reference")
    assert len(once) == 2
    assert [o.ledger for o in once] == [o.ledger for o in again]
    assert once[0].ledger != once[1].ledger
    assert sum(o.run.examples for o in once) >= WORTH_IT


def test_a_small_search_starts_no_process() -> None:
    assert len(found("reference", examples=WORTH_IT - 1)) == 1


def test_a_broken_clause_comes_back_whole() -> None:
    broken = [o.broken for o in found(CANARY, examples=600) if o.broken]
    assert broken
    for one in broken:
        assert one.violation.clause.holds(1, 1)
        with pytest.raises(ClauseBroken) as again:
            rerun(one.events)
        assert again.value.violation.clause is one.violation.clause
        assert str(pickle.loads(pickle.dumps(one))) == str(one)


def rerun(events: tuple[ev.Event, ...]) -> None:
    subject = find_subject(CANARY)
    run_events(subject.target, subject.factory, subject.profile, events)


def test_a_target_that_ends_its_process_is_unusable() -> None:
    with pytest.raises(TargetUnusable, match="ended the process it ran in, exit status -9"):
        found(f"{__name__}:Leaves")
