"""Scenarios: worked examples with the values they must show, runnable against any target."""

from __future__ import annotations

from collections.abc import Mapping

from kvspec.errors import ScenarioFailed
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
    """Run one scenario. Raises `ClauseBroken`, `ScenarioFailed` or `Unsupported`.

    A scenario's values are those of the rules about keys and hits, which the soundness profile
    leaves open: there another value ends the scenario without a verdict.
    """
    play = Play(name, factory, profile, ledger or Ledger())
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
