"""Breadth-first over every state of a world: the same result whatever the number of processes.

States are expanded in the order in which they were found. Worker processes expand runs of them and
hand back what they found; this process takes the runs in order, so that the first way to a state,
a shortest one, is the same in every search. What is remembered of a state is a hash and how it was
first reached.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from kvspec.errors import TargetUnusable
from kvspec.failure import Subject
from kvspec.spec import events as ev
from kvspec.spec.case import Violation
from kvspec.spec.state import State
from kvspec.targets import time_limits

from .node import Cover, Walker, pack
from .worlds import World

RUN = 32
"""States that a worker expands at a time."""

MOST_STATES = 2**63 - 1
MOVE_BITS = 16
"""An event is remembered by its place among those of its state."""

LEAST_FREE = 0.1
"""A search stops when less than this part of the machine's memory is free."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When to give up. `seconds` and memory are looked at between runs of states."""

    states: int = MOST_STATES
    seconds: float | None = None


NO_LIMITS = Limits()


@dataclass(slots=True)
class Expanded:
    """What one run of states led to: entries are (index in the run, index of the event)."""

    transitions: int = 0
    found: list[tuple[int, int, bytes, bytes]] = field(default_factory=list)
    covers: list[tuple[int, int, Cover]] = field(default_factory=list)
    broken: tuple[int, int, Violation] | None = None


@dataclass
class Explored:
    """How far a search came. `levels` has the number of states first reached at each depth.

    `stopped` says why the world was not exhausted. `broken` is a violation with a shortest path.
    """

    world: World
    levels: list[int] = field(default_factory=list)
    transitions: int = 0
    stopped: str = ""
    broken: tuple[Violation, tuple[ev.Event, ...]] | None = None
    covers: dict[Cover, Walk] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def states(self) -> int:
        """Different states."""
        return sum(self.levels)

    @property
    def depth(self) -> int:
        """Events on the longest of the shortest paths."""
        return max(len(self.levels) - 1, 0)

    @property
    def exhausted(self) -> bool:
        """Whether every state was expanded and no clause broken."""
        return not self.stopped and self.broken is None


class Expander:
    """Expands states in one process; remembers what it handed back already."""

    def __init__(self, world: World, subject: Subject, plain: bool) -> None:
        self.walker = Walker(world, subject, plain)
        self.sent: set[bytes] = set()
        self.covered: set[Cover] = set()

    def expand(self, run: list[bytes]) -> Expanded:
        """Every transition out of these states, up to the first violation."""
        done = Expanded()
        with time_limits():
            for at, packed in enumerate(run):
                self._expand_one(at, packed, done)
                if done.broken:
                    break
        return done

    def _expand_one(self, at: int, packed: bytes, done: Expanded) -> None:
        state, managers = self.walker.unpack(packed)
        for move, event in enumerate(self.walker.events(state)):
            done.transitions += 1
            found = self.walker.take(state, managers, event)
            if isinstance(found, Violation):
                done.broken = at, move, found
                return
            if not self.covered >= found.covered:
                done.covers += [(at, move, c) for c in sorted(found.covered - self.covered)]
                self.covered |= found.covered
            if found.key not in self.sent:
                self.sent.add(found.key)
                done.found.append((at, move, found.key, pack(found)))


_expander: list[Expander] = []


def _begin(world: World, subject: Subject, plain: bool) -> None:
    _expander[:] = [Expander(world, subject, plain)]


def _expand(run: list[bytes]) -> Expanded:
    return _expander[0].expand(run)


Expand = Callable[[Iterable[list[bytes]]], Iterator[Expanded]]


@contextmanager
def expanding(world: World, subject: Subject, plain: bool, workers: int) -> Iterator[Expand]:
    """How to expand runs of states, in order, by so many processes; by this one where it is one."""
    if workers == 1:
        expander = Expander(world, subject, plain)
        yield lambda runs: map(expander.expand, runs)
        return
    context = multiprocessing.get_context("fork")  # a target need not be one that can be pickled
    with context.Pool(workers, _begin, (world, subject, plain)) as pool:
        yield lambda runs: pool.imap(_expand, runs)


def explore(
    world: World,
    subject: Subject,
    *,
    plain: bool = False,
    workers: int = 1,
    limits: Limits = NO_LIMITS,
    log: Callable[[str], None] = lambda _: None,
) -> Explored:
    """Walk a world. Raises `TargetUnusable`, `TargetHung`."""
    began = time.monotonic()
    search = _Search(world, subject, plain, limits, log)
    with expanding(world, subject, plain, workers) as expand:
        search.run(expand)
    explored = search.result()
    explored.seconds = time.monotonic() - began
    return explored


class _Search:
    """A search under way: `rows` by key, and of each row how it was first reached."""

    def __init__(
        self,
        world: World,
        subject: Subject,
        plain: bool,
        limits: Limits,
        log: Callable[[str], None],
    ) -> None:
        self.world, self.subject, self.plain = world, subject, plain
        self.limits, self.log = limits, log
        self.began = time.monotonic()
        self.rows: dict[bytes, int] = {}
        self.reached = array("Q")
        self.explored = Explored(world)
        self.broken: tuple[int, int, Violation] | None = None
        self.covers: dict[Cover, tuple[int, int]] = {}

    def run(self, expand: Expand) -> None:
        """Level by level until nothing new is found, or something ends it."""
        walker = Walker(self.world, self.subject, self.plain)
        frontier = [self._add(walker.root_key, 0, 0, walker.root)]
        first = 0
        while frontier and not self.explored.stopped and self.broken is None:
            self.explored.levels.append(len(frontier))
            following = self._level(expand, frontier, first)
            first += len(frontier)
            frontier = following
            told = f"depth {self.explored.depth}: {len(self.rows):,} states"
            self.log(f"{self.world.id}, {told}, {self.explored.transitions:,} transitions")

    def _level(self, expand: Expand, frontier: list[bytes], first: int) -> list[bytes]:
        """Expand a level; the states that it adds, in the order of their finding."""
        following: list[bytes] = []
        starts = range(0, len(frontier), RUN)
        for start, done in zip(starts, expand(frontier[s : s + RUN] for s in starts), strict=True):
            base = first + start
            self.explored.transitions += done.transitions
            for at, move, cover in done.covers:
                self.covers.setdefault(cover, (base + at, move))
            for at, move, key, packed in done.found:
                if key not in self.rows:
                    following.append(self._add(key, base + at, move, packed))
            if done.broken is not None:
                at, move, violation = done.broken
                self.broken = base + at, move, violation
                return []
            if stopped := self._stop():
                self.explored.stopped = stopped
                return []
        return following

    def _add(self, key: bytes, parent: int, move: int, packed: bytes) -> bytes:
        assert move < 1 << MOVE_BITS
        self.rows[key] = len(self.reached)
        self.reached.append(parent << MOVE_BITS | move)
        return packed

    def _stop(self) -> str:
        """Why to give up, if so."""
        if len(self.rows) > self.limits.states:
            return f"it has more than {self.limits.states:,} states"
        seconds = self.limits.seconds
        if seconds is not None and time.monotonic() - self.began > seconds:
            return f"{seconds:g} seconds were not enough"
        if free_memory() < LEAST_FREE:
            return "the machine's memory is used up"
        return ""

    def result(self) -> Explored:
        """What is known now, with the events that lead to what was seen."""
        back = _WaysBack(Walker(self.world, self.subject, self.plain), self.reached)
        if self.broken is not None:
            row, move, violation = self.broken
            self.explored.broken = violation, back.events(row, move)
        self.explored.covers = {
            cover: back.walk(row, move) for cover, (row, move) in self.covers.items()
        }
        return self.explored


@dataclass(frozen=True, slots=True)
class Walk:
    """Events from the configured cache on, and all that they show."""

    events: tuple[ev.Event, ...]
    covered: frozenset[Cover]


class _WaysBack:
    """The first way to each row, found by taking its events again."""

    def __init__(self, walker: Walker, reached: array[int]) -> None:
        self.walker, self.reached = walker, reached
        nothing = Walk((), frozenset())
        self.known: dict[int, tuple[bytes, Walk]] = {0: (walker.root, nothing)}

    def events(self, row: int, move: int) -> tuple[ev.Event, ...]:
        """The events to a row and one more, which need not lead anywhere."""
        packed, walk = self._to(row)
        state, _ = self.walker.unpack(packed)
        return (*walk.events, self._event(state, move))

    def walk(self, row: int, move: int) -> Walk:
        """The walk to a row and one event more."""
        return self._take(row, move)[1]

    def _to(self, row: int) -> tuple[bytes, Walk]:
        missing = []
        while row not in self.known:
            missing.append(row)
            row = self.reached[row] >> MOVE_BITS
        for child in reversed(missing):
            self.known[child] = self._take(row, self.reached[child] & (1 << MOVE_BITS) - 1)
            row = child
        return self.known[row]

    def _take(self, row: int, move: int) -> tuple[bytes, Walk]:
        packed, walk = self._to(row)
        state, managers = self.walker.unpack(packed)
        event = self._event(state, move)
        found = self.walker.take(state, managers, event)
        if isinstance(found, Violation):
            raise TargetUnusable(
                f"target {self.walker.subject.target}: it answers the same events differently; "
                "prove needs a target that depends on events alone"
            )
        return pack(found), Walk((*walk.events, event), walk.covered | found.covered)

    def _event(self, state: State, move: int) -> ev.Event:
        return next(event for n, event in enumerate(self.walker.events(state)) if n == move)


def free_memory() -> float:
    """The part of the machine's memory that is free or can be freed; 1 where nobody tells."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            told = dict(line.split(":") for line in file)
        total, left = (int(told[name].split()[0]) for name in ("MemTotal", "MemAvailable"))
    except (OSError, KeyError, ValueError):
        return 1.0
    return left / total


def cores() -> int:
    """How many processes can run at once."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
