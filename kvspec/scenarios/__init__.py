"""Scenarios: worked examples with the values they must show, runnable against any target."""

from __future__ import annotations

from collections.abc import Mapping

from kvspec.errors import ScenarioFailed
from kvspec.memory import StoreKind
from kvspec.spec.case import Ledger
from kvspec.spec.clauses import Profile
from kvspec.targets import Factory

from . import atlas, chunks, connector, copies, departures, hits, identity, memory, readers
from .play import Play, Scenario, Unsupported

__all__ = ["SCENARIOS", "Play", "Scenario", "Unsupported", "run_scenario"]


_ALL = [
    *chunks.SCENARIOS,
    *hits.SCENARIOS,
    *copies.SCENARIOS,
    *connector.SCENARIOS,
    *departures.SCENARIOS,
    *identity.SCENARIOS,
    *memory.SCENARIOS,
    *readers.SCENARIOS,
    *atlas.SCENARIOS,
]


def _place(scenario: Scenario) -> tuple[bool, str, int, str]:
    """The worked examples first, then the atlas: A2 before A2.order before A10."""
    row, _, aspect = scenario.id.partition(".")
    return row[0] != "S", row[0], int(row[1:]), aspect


SCENARIOS: Mapping[str, Scenario] = {s.id: s for s in sorted(_ALL, key=_place)}
"""All scenarios by id: the worked examples S1, S2, ..., then the rows of the atlas."""

assert len(SCENARIOS) == len(_ALL), "two scenarios share an id"


def run_scenario(
    scenario: Scenario,
    name: str,
    factory: Factory,
    *,
    profile: Profile | None = None,
    ledger: Ledger | None = None,
    store: StoreKind = StoreKind.AUTO,
) -> Play:
    """Run one scenario. Raises `ClauseBroken`, `ScenarioFailed` or `Unsupported`.

    A scenario's values are those of the rules about keys and hits, which the soundness profile
    leaves open: there another value ends the scenario without a verdict.
    """
    play = Play(name, factory, profile, ledger or Ledger(), store)
    try:
        scenario.run(play)
    except ScenarioFailed as failed:
        if play.accounting:
            raise
        raise Unsupported(f"soundness leaves it open: {failed}") from failed
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        if play.accounting:
            raise
        raise Unsupported(
            "soundness leaves it open: an answer that it cannot go on from"
        ) from error
    return play
