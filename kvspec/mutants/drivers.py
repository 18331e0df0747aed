"""Hunting a mutant: the drivers of `kvspec check`, and others, until one of them sees it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from hypothesis.errors import Flaky

from kvspec import memory
from kvspec.check import BLOCKS, EXAMPLES, MAX_OUTPUT, STEPS
from kvspec.errors import ClauseBroken, ScenarioFailed, TargetUnusable
from kvspec.failure import Subject, shrunk
from kvspec.machine import run_machine
from kvspec.optimized.manager import Manager
from kvspec.prove import books
from kvspec.prove.search import explore
from kvspec.prove.worlds import SMALL
from kvspec.replay import replay_config, replay_workload
from kvspec.scenarios import SCENARIOS, Unsupported, run_scenario
from kvspec.scheduler import Limits
from kvspec.shards import cut
from kvspec.spec.events import EVENT_NAMES, Event
from kvspec.vectors.play import play
from kvspec.vectors.sources import vectors
from kvspec.workload import generated_workload

from .model import OPTIMIZED, Mutant

SHRINKING = 20.0
"""Seconds that the shrinking of one trace may take."""


@dataclass(frozen=True, slots=True)
class Kill:
    """What a driver saw: the broken clause, or the scenario (or vector) whose value differed.

    `events` counts those that the driver had sent by then, snapshots aside; `seconds` is wall time.
    """

    clause: str
    scenario: str
    events: int
    seconds: float
    trace: tuple[Event, ...] = field(default=(), repr=False)
    broken: ClauseBroken | None = field(default=None, repr=False)


@dataclass(slots=True)
class Counter:
    """Makes managers, and counts the events that they are sent."""

    make: Callable[[], Any]
    events: int = 0

    def __call__(self) -> Any:
        """A manager whose events are counted."""
        return _Counted(self.make(), self)


class _Counted:
    """Stands before a manager; each event is asked for by its name once."""

    def __init__(self, manager: Any, counter: Counter) -> None:
        self._manager, self._counter = manager, counter

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._manager, name)
        self._counter.events += name in _COUNTED
        return found


_COUNTED = frozenset(EVENT_NAMES.values()) - {"configure", "snapshot"}


@contextmanager
def at_work(mutant: Mutant) -> Iterator[Counter]:
    """The mutant as a target; a faulty worker or store is in place meanwhile."""
    if mutant.is_target:
        yield Counter(mutant.manager())
        return
    loaded = mutant.load()
    if mutant.worker:
        names = {"Worker": loaded.worker.Worker, "PlainStore": loaded.worker.PlainStore}
        with patch.multiple(memory, **names):
            yield Counter(Manager)
    else:
        with patch("kvspec.kernels.store.TorchStore", loaded.store.TorchStore):
            yield Counter(Manager)


def name_of(mutant: Mutant) -> str:
    """The name by which `kvspec check --target` finds it."""
    return "kvspec.mutants.targets:" + mutant.id.replace("-", "_")


def by_scenarios(mutant: Mutant, counter: Counter, seed: int) -> Kill | None:
    """Each scenario, cheapest first, until one shows the fault."""
    began = time.monotonic()
    for scenario in SCENARIOS.values():
        try:
            run_scenario(scenario, name_of(mutant), counter, profile=mutant.profile)
        except Unsupported:
            continue
        except ClauseBroken as broken:
            return _kill(broken, counter, began, scenario.id)
        except ScenarioFailed as failed:
            seconds = time.monotonic() - began
            return Kill("", scenario.id, counter.events, seconds, failed.events)
        except TargetUnusable:
            raise
        except Exception:  # an answer that no clause is about led the scenario astray
            return Kill("", scenario.id, counter.events, time.monotonic() - began)
    return None


def by_vectors(mutant: Mutant, counter: Counter, seed: int) -> Kill | None:
    """Each vector, from memory, until one shows the fault. Bytes and exact choices are in none."""
    began = time.monotonic()
    for case in vectors():
        played = play(case, name_of(mutant), counter)
        if played.result == "failed":
            seconds = time.monotonic() - began
            return Kill(played.clause, played.id, counter.events, seconds, played.trace)
    return None


def by_replay(mutant: Mutant, counter: Counter, seed: int) -> Kill | None:
    """A short workload through a scheduler, on a pool that is always short."""
    began = time.monotonic()
    try:
        replay_workload(
            generated_workload(seed),
            name_of(mutant),
            counter,
            replay_config(blocks=BLOCKS),
            Limits(max_output=MAX_OUTPUT),
            profile=mutant.profile,
        )
    except ClauseBroken as broken:
        return _kill(broken, counter, began)
    return None


def by_machine(mutant: Mutant, counter: Counter, seed: int) -> Kill | None:
    """The state machine, as many runs and in the same shards as in a default check."""
    began = time.monotonic()
    try:
        subject = Subject(name_of(mutant), counter, mutant.profile)
        for shard in cut(subject, examples=EXAMPLES, steps=STEPS, seed=seed):
            run_machine(
                shard.target,
                counter,
                profile=shard.profile,
                examples=shard.examples,
                steps=shard.steps,
                seed=shard.seed,
            )
    except ClauseBroken as broken:
        return _kill(broken, counter, began)
    except Flaky:
        return Kill("", "flaky", counter.events, time.monotonic() - began)
    return None


def by_walk(mutant: Mutant, counter: Counter, seed: int) -> Kill | None:
    """Every state of the small worlds of `kvspec prove`, breadth first.

    The copy is read as the manager that it was made from: what the fault adds to it is not told
    apart, so states may be passed over, but none is made up.
    """
    if not mutant.is_target or mutant.hidden:
        return None  # a walk needs the books
    began, transitions, make = time.monotonic(), 0, mutant.manager()
    read_as = "Fast" if mutant.package == OPTIMIZED else "Plain"
    with patch(f"kvspec.prove.books.{read_as}", (getattr(books, read_as), make)):
        subject = Subject(name_of(mutant), make, mutant.profile)
        for world in SMALL:
            try:
                walked = explore(world, subject)
            except TargetUnusable:  # the fault shows, but not as a broken clause
                continue
            transitions += walked.transitions
            if walked.broken is not None:
                violation, path = walked.broken
                seconds, trace = time.monotonic() - began, (world.config, *path)
                return Kill(violation.clause.id, world.id, transitions, seconds, trace)
    return None


def _kill(broken: ClauseBroken, counter: Counter, began: float, scenario: str = "") -> Kill:
    clause, seconds = broken.violation.clause.id, time.monotonic() - began
    return Kill(clause, scenario, counter.events, seconds, broken.events, broken)


Driver = Callable[[Mutant, Counter, int], Kill | None]

DRIVERS: dict[str, Driver] = {
    "scenarios": by_scenarios,
    "replay": by_replay,
    "machine": by_machine,
}
"""The drivers of a default check, cheapest first."""

MORE_DRIVERS: dict[str, Driver] = {"vectors": by_vectors, "walk": by_walk}
"""What a default check does not run."""

ALL_DRIVERS = {**DRIVERS, **MORE_DRIVERS}


def shrunk_length(mutant: Mutant, kill: Kill, counter: Counter) -> int:
    """Events of the shortest trace found that breaks the same clause; `configure` not counted."""
    if kill.broken is None:
        return max(len(kill.trace) - 1, 0)
    subject = Subject(name_of(mutant), counter, mutant.profile)
    failure = shrunk(kill.broken, subject, until=time.monotonic() + SHRINKING)
    return len(failure.events) - 1
