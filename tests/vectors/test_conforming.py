"""Whoever conforms passes every vector, whatever it chooses; whoever does not is caught."""

from __future__ import annotations

import pytest

from kvspec.machine import run_machine
from kvspec.spec.clauses import Profile
from kvspec.targets import find_factory
from kvspec.vectors.play import Played, play
from kvspec.vectors.sources import vectors

from .choosy import ByChance

CHOICES = "tests.machine.test_other_choices"


def play_all(target: str) -> list[Played]:
    factory = find_factory(target)
    return [play(case, target, factory) for case in vectors()]


def outcomes(played: list[Played]) -> dict[str, int]:
    found = {"early": sum(1 for one in played if one.result == "passed" and one.why)}
    for one in played:
        found[one.result] = found.get(one.result, 0) + 1
    return found


@pytest.mark.parametrize("target", ["reference", "optimized"])
def test_our_managers_pass_all_to_the_end(target: str) -> None:
    assert outcomes(play_all(target)) == {"passed": len(vectors()), "early": 0}


@pytest.mark.parametrize(
    "target",
    [
        f"{CHOICES}:OtherChoices",
        f"{CHOICES}:LetsGo",
        f"{CHOICES}:Modest",
        "tests.vectors.choosy:ByChance",
        "tests.vectors.choosy:ByChance1",
        "tests.vectors.choosy:ByChance2",
    ],
)
def test_other_choices_pass_but_may_end_early(target: str) -> None:
    found = outcomes(play_all(target))
    assert found["passed"] == len(vectors())
    assert 0 < found["early"] < len(vectors()) / 4


def test_choosing_by_chance_conforms() -> None:
    """Else the test above would say nothing."""
    run = run_machine("by chance", ByChance, profile=Profile.ACCOUNTING, examples=20)
    assert run.events > 1000


def test_a_faulty_manager_fails_with_the_clause() -> None:
    failed = [one for one in play_all("kvspec.targets:canary") if one.result == "failed"]
    assert {one.id for one in failed} >= {"small/atlas/A3", "small/atlas/A8"}
    assert {one.clause for one in failed} == {"EVICT.TAKEN"}
    last = failed[0]
    assert (last.event, last.field, last.allowed) == ("allocate", "keys", "[]")
    assert len(last.trace) == last.steps + 1
