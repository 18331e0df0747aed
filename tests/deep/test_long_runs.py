"""Long searches: `make deep`."""

from __future__ import annotations

import pytest

from kvspec.machine import run_machine
from kvspec.spec.clauses import Profile
from kvspec.targets import BUILT_IN, find_factory

EVENTS = 200_000
SEEDS = range(100)


@pytest.mark.deep
@pytest.mark.parametrize("target", sorted(BUILT_IN))
def test_200_000_random_events(target: str) -> None:
    """No violation, and every observation equal to the reference's."""
    events = 0
    for seed in SEEDS:
        run = run_machine(
            target, find_factory(target), profile=Profile.EXACT, examples=500, seed=1000 + seed
        )
        events += run.events
        if events >= EVENTS:
            break
    print(f"{target}: {events:,} events in the exact profile, no violation")
    assert events >= EVENTS
