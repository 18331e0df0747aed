"""What the vectors are made of: every scenario, and the walks that cover the tiny worlds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

from kvspec.prove.worlds import WORLDS
from kvspec.scenarios import SCENARIOS, Play, Scenario
from kvspec.session import Session
from kvspec.spec import events as ev
from kvspec.spec.case import Ledger
from kvspec.spec.types import Config
from kvspec.targets import find_factory

from .model import Case, Invalid, Source
from .record import record
from .walks import walks

WITHOUT: Mapping[str, str] = {
    "D8": "it compares what two processes call a prefix, and a vector is played in one",
}
"""Scenarios of which no vector is made, and why."""

INVALID: tuple[Invalid, ...] = ()
"""Cases of this version that were found wrong: what `invalidated.json` is written with."""


@cache
def vectors() -> tuple[Case, ...]:
    """All cases, always the same and in the same order."""
    return (*_of_scenarios(), *_of_walks())


class _Taped(Play):
    """A play that keeps the sessions of all the caches that it starts."""

    def __init__(self) -> None:
        super().__init__("reference", find_factory("reference"), None, Ledger())
        self.sessions: list[Session] = []

    def start(self, config: Config) -> None:
        """Begin with an empty cache; no bytes are moved."""
        name, factory = self.target, find_factory(self.target)
        self.session = Session(name, factory, config, moves_bytes=False)
        self.sessions.append(self.session)


def _tapes(scenario: Scenario) -> list[tuple[ev.Event, ...]]:
    """The events of a scenario, the configuration first, for each cache that it starts."""
    taped = _Taped()
    scenario.run(taped)
    return [(s.config, *s.events) for s in taped.sessions if s.events]


def _of_scenarios() -> Iterator[Case]:
    for scenario in SCENARIOS.values():
        if scenario.id in WITHOUT:
            continue
        worked = scenario.id.startswith("S")
        source = Source("scenario" if worked else "atlas", scenario.id)
        place = f"small/{'worked' if worked else 'atlas'}/{scenario.id}"
        tapes = _tapes(scenario)
        for number, events in enumerate(tapes, start=1):
            id = f"{place}-{number}" if len(tapes) > 1 else place
            yield record(id, scenario.title, source, events)


def _of_walks() -> Iterator[Case]:
    for world, kept in walks().items():
        for number, events in enumerate(kept, start=1):
            title = f"{WORLDS[world].title}: walk {number}"
            yield record(f"tiny/{world}/{number:02}", title, Source("graph", world), events)
