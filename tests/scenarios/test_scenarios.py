"""Each scenario shows its values, on both managers; the events it sends are a trace."""

from __future__ import annotations

import pytest

from kvspec.scenarios import SCENARIOS, run_scenario
from kvspec.spec.clauses import Profile
from kvspec.targets import BUILT_IN, find_factory


@pytest.mark.parametrize("target", sorted(BUILT_IN))
@pytest.mark.parametrize("scenario_id", list(SCENARIOS))
def test_scenario(scenario_id: str, target: str) -> None:
    run_scenario(SCENARIOS[scenario_id], target, find_factory(target), profile=Profile.EXACT)


def test_all_rows_that_were_asked_for_are_there_in_order() -> None:
    rows = [f"S{n}" for n in range(1, 23)]
    atlas = ["A1", "A2", "A3", "A5", "A8", "B3", "C1", "C4", "C5", "C11", "F5", "F7", "G1", "G4"]
    assert [s for s in SCENARIOS if s in {*rows, *atlas}] == rows + atlas
