"""Scenarios: worked examples with the values they must show, runnable against any target."""

from __future__ import annotations

from collections.abc import Mapping

from kvspec.spec.case import Ledger
from kvspec.spec.clauses import Profile
from kvspec.targets import Factory

from . import atlas, chunks, connector, copies, hits
from .play import Play, Scenario, Unsupported

__all__ = ["SCENARIOS", "Play", "Scenario", "Unsupported", "run_scenario"]

_ALL = [*chunks.SCENARIOS, *hits.SCENARIOS, *copies.SCENARIOS, *connector.SCENARIOS]

SCENARIOS: Mapping[str, Scenario] = {
    s.id: s for s in [*sorted(_ALL, key=lambda s: int(s.id[1:])), *atlas.SCENARIOS]
}
"""All scenarios by id: S1 to S22, then the atlas rows."""


def run_scenario(
    scenario: Scenario,
    name: str,
    factory: Factory,
    *,
    profile: Profile | None = None,
    ledger: Ledger | None = None,
) -> Play:
    """Run one scenario. Raises `ClauseBroken`, `ScenarioFailed` or `Unsupported`."""
    play = Play(name, factory, profile, ledger or Ledger())
    scenario.run(play)
    return play
