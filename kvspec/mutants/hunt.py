"""Running the catalogue: every mutant against the drivers, several at a time."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from kvspec.errors import TargetHung, TargetUnusable

from .catalogue import MUTANTS
from .drivers import ALL_DRIVERS, DRIVERS, Counter, Kill, at_work, shrunk_length
from .load import DoesNotApply
from .model import Mutant

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a mutant fared: by driver what it saw, None where it saw nothing; others were not run.

    `spent` are the seconds of each driver; `shrunk` is the length in events of the shortest trace
    found by the first driver that saw it.
    """

    mutant: str
    kills: dict[str, Kill | None]
    spent: dict[str, float]
    seconds: float
    shrunk: int | None = None
    problem: str = ""

    @property
    def killer(self) -> str | None:
        """The first driver that saw it."""
        return next((name for name, kill in self.kills.items() if kill), None)

    @property
    def kill(self) -> Kill | None:
        """What that driver saw."""
        return self.kills[self.killer] if self.killer else None

    @property
    def to_kill(self) -> float:
        """Seconds until it was seen, those of the drivers before included."""
        kills = list(self.kills)
        before = kills[: kills.index(self.killer) + 1] if self.killer else kills
        return sum(self.spent[name] for name in before)

    @property
    def events(self) -> int | None:
        """Events until it was seen, those of drivers that saw nothing not counted."""
        return self.kill.events if self.kill else None


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run. `all_drivers` goes on when one has seen the mutant, `shrinks` traces."""

    drivers: tuple[str, ...] = tuple(DRIVERS)
    all_drivers: bool = False
    shrinks: bool = True
    seed: int = 0


def hunt(id: str, plan: Plan) -> Outcome:
    """Run the drivers on one mutant."""
    mutant, began = MUTANTS[id], time.monotonic()
    kills: dict[str, Kill | None] = {}
    spent: dict[str, float] = {}
    shrunk, problem = None, ""
    try:
        with at_work(mutant) as counter:
            for name in plan.drivers:
                started = time.monotonic()
                kills[name] = kill = _run(mutant, name, counter, plan.seed)
                spent[name] = time.monotonic() - started
                if kill and plan.shrinks and shrunk is None:
                    shrunk = shrunk_length(mutant, kill, counter)
                if kill and not plan.all_drivers:
                    break
    except (TargetUnusable, TargetHung) as error:
        problem = str(error)
    told = {name: kill and replace(kill, broken=None, trace=()) for name, kill in kills.items()}
    return Outcome(id, told, spent, time.monotonic() - began, shrunk, problem)


def _run(mutant: Mutant, driver: str, counter: Counter, seed: int) -> Kill | None:
    counter.events = 0
    return ALL_DRIVERS[driver](mutant, counter, seed)


def hunt_all(
    ids: Iterable[str], plan: Plan, workers: int, log: Callable[[Outcome], None] = lambda _: None
) -> list[Outcome]:
    """Run the drivers on many mutants; the outcomes are in the order of the ids."""
    ids = list(ids)
    for id in ids:
        MUTANTS[id].text()
    outcomes = []
    for outcome in in_processes(partial(hunt, plan=plan), ids, workers):
        log(outcome)
        outcomes.append(outcome)
    return outcomes


def in_processes(
    work: Callable[[str], Result], ids: Sequence[str], workers: int
) -> Iterator[Result]:
    """What `work` makes of each id, in their order, several at a time."""
    if workers == 1 or len(ids) < 2:
        yield from map(work, ids)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        yield from pool.map(work, ids)


def cores() -> int:
    """How many processes may run at once here."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


__all__ = ["DoesNotApply", "Outcome", "Plan", "cores", "hunt", "hunt_all", "in_processes"]
