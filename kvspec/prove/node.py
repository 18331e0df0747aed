"""One state of a world, and what one event makes of it."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from kvspec.errors import TargetUnusable
from kvspec.failure import Subject
from kvspec.spec import events as ev
from kvspec.spec.case import Ledger, Violation
from kvspec.spec.clauses import LIVE_ANSWER, LIVE_EXACT, Profile
from kvspec.spec.judge import initial_state, judge_admitted
from kvspec.spec.state import State, touched_blocks
from kvspec.spec.types import BlockId
from kvspec.targets import Target, TargetFault, find_factory

from .canon import key_of, words_of
from .freeze import freeze, share, thaw
from .menu import Menu
from .worlds import World

SNAPSHOT = ev.Snapshot()


Cover = tuple[str, str, str]
"""What a transition shows: (event, clause exercised, rare branch taken or none)."""


@dataclass(frozen=True, slots=True)
class Found:
    """A state reached by an event; `covered` is what the judge exercised on the way."""

    key: bytes
    state: State
    managers: tuple[Any, ...]
    covered: frozenset[Cover]


@dataclass
class Walker:
    """Takes events in the states of a world, on a target (and on the reference beside it)."""

    world: World
    subject: Subject
    plain: bool = False
    names: dict[Any, Any] = field(default_factory=dict)
    digests: dict[Any, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        share(self.world.config)
        self.words = words_of(self.world)
        self.menu = Menu(self.world, self.plain)
        config = self.world.config
        self.targets = [Target(self.subject.target, self.subject.factory, config)]
        self.profile = self.subject.profile or self.targets[0].profile
        if not self.targets[0].profile.covers(Profile.ACCOUNTING):
            raise TargetUnusable(
                f"target {self.subject.target}: prove needs a target that shows all its books "
                f"({', '.join(ev.SHOWABLE)})"
            )
        if self.targets[0].capabilities.lacks:
            raise TargetUnusable(
                f"target {self.subject.target}: prove needs a target that takes every event; it "
                f"lacks {', '.join(self.targets[0].capabilities.lacks)}"
            )
        if self.profile is Profile.EXACT:
            self.targets.append(Target("reference", find_factory("reference"), config))
        root = self._found(initial_state(config), frozenset())
        self.root_key, self.root = root.key, pack(root)

    def unpack(self, packed: bytes) -> tuple[State, bytes]:
        """A state, and its managers still frozen."""
        state, managers = thaw(zlib.decompress(packed))
        shown = {
            block: ((entry.group, self.digests[entry.key]),)
            for block, entry in state.keys.items()
            if entry.key in self.digests
        }
        return replace(state, names=self.names, digests=self.digests, shown=shown), managers

    def events(self, state: State) -> Iterator[ev.Event]:
        """What may be sent, in order."""
        return self.menu.events(state)

    def take(self, state: State, managers: bytes, event: ev.Event) -> Found | Violation:
        """The state after an event and a snapshot, each answer judged."""
        for target, manager in zip(self.targets, thaw(managers), strict=True):
            target.manager = manager
        ledger = Ledger()
        for sent in (event, SNAPSHOT):
            verdict = self._judge(state, sent, ledger)
            if isinstance(verdict, Violation):
                return verdict
            state = verdict
        self._learn(state)
        return self._found(state, covered(event, ledger))

    def _judge(self, state: State, event: ev.Event, ledger: Ledger) -> State | Violation:
        try:
            answer = self.targets[0].ask(event)
        except TargetFault as fault:
            return Violation(LIVE_ANSWER, str(fault), "an answer")
        verdict = judge_admitted(state, event, answer, self.profile, ledger)
        if isinstance(verdict, Violation) or len(self.targets) == 1:
            return verdict
        expected = self.targets[1].ask(event)
        ledger.exercised[LIVE_EXACT.id] += 1
        rejected = isinstance(answer, ev.Rejection) and isinstance(expected, ev.Rejection)
        if answer != expected and not rejected:
            return Violation(LIVE_EXACT, answer, expected, ev.EVENT_NAMES[type(event)])
        return verdict

    def _learn(self, state: State) -> None:
        """What the target calls a prefix is the same in all sequences, or states could not meet."""
        if state.names is self.names:
            return
        names, digests = {**self.names, **state.names}, {**self.digests, **state.digests}
        if len(names) != len(digests) or any(names[g, n] != d for (g, d), n in digests.items()):
            raise TargetUnusable(
                f"target {self.subject.target}: its snapshots call a prefix differently in "
                "different sequences of events; prove needs names that the prefix alone decides"
            )
        self.names, self.digests = names, digests

    def _found(self, state: State, covered: frozenset[Cover]) -> Found:
        managers = tuple(target.manager for target in self.targets)
        key = key_of(self.words, state, managers, self.plain)
        return Found(key, state, managers, covered)


def pack(found: Found) -> bytes:
    """A state and its managers, to be unpacked again and again."""
    return zlib.compress(freeze((_lean(found.state), freeze(found.managers))), 1)


def covered(event: ev.Event, ledger: Ledger) -> frozenset[Cover]:
    """What a transition shows."""
    name, marks = ev.EVENT_NAMES[type(event)], tuple(ledger.marks) or ("",)
    return frozenset([(name, c, mark) for c in ledger.exercised for mark in marks])


def _lean(state: State) -> State:
    """The state without what is dead, or can be worked out again."""
    alive = {*state.refs, *state.keys}
    for work in state.in_flight:
        if work.number > state.executed:
            alive |= touched_blocks(state.config, work)
    contents = {BlockId(b): c for b, c in state.contents.items() if b in alive}
    return replace(state, contents=contents, names={}, digests={}, shown={}, freed=(), settled=None)
