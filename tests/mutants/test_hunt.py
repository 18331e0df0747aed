"""A hunt: what it says of mutants that are seen, that are not, and that cannot be made."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kvspec.mutants import hunt as hunting
from kvspec.mutants.catalogue import MUTANTS
from kvspec.mutants.hunt import Plan, hunt
from kvspec.mutants.load import Edit
from kvspec.mutants.model import Mutant
from kvspec.scenarios import SCENARIOS
from tests.cli.run import run

QUICK = Plan(drivers=("scenarios",), shrinks=False)


@pytest.mark.parametrize(
    "id",
    [
        "hash-last-token",
        "evict-stale-key",
        "step-no-deferral",
        "bytes-copy-shifted",
        "kernel-copy-short",
    ],
)
def test_a_mutant_is_seen_by_a_scenario(id: str) -> None:
    outcome = hunt(id, QUICK)
    assert outcome.killer == "scenarios"
    assert outcome.kill is not None
    assert outcome.kill.scenario in SCENARIOS
    assert 0 < (outcome.events or 0) < 5000


def test_what_changes_nothing_survives(monkeypatch: pytest.MonkeyPatch) -> None:
    same = Edit(
        "pool", "if keyed:\n            self.index", "if len(keyed):\n            self.index"
    )
    harmless = Mutant("harmless", "EVICT.TAKEN", "the same in other words", (same,))
    monkeypatch.setattr(hunting, "MUTANTS", {"harmless": harmless})
    outcome = hunt("harmless", QUICK)
    assert outcome.kills == {"scenarios": None}
    assert (outcome.kill, outcome.killer, outcome.shrunk) == (None, None, None)


def test_the_command_writes_the_matrix(tmp_path: Path) -> None:
    data, page = tmp_path / "m.json", tmp_path / "m.md"
    ran = run("mutants", "hit-takes", "step-number", "--json", data, "--markdown", page)
    assert ran.status == 0, ran
    assert ran.verdict.startswith("2 of 2 mutants killed, median ")
    matrix = json.loads(data.read_text())["matrix"]
    assert [row["id"] for row in matrix] == ["hit-takes", "step-number"]
    assert [row["drivers"]["scenarios"]["clause"] for row in matrix] == ["HIT.PURE", "STEP.NUMBER"]
    assert matrix[0]["shrunk"] <= 5
    assert "| **hit-takes**: a lookup holds what it finds |" in page.read_text()


def test_a_walk_of_the_small_worlds_sees_a_mutant() -> None:
    outcome = hunt("hit-no-boundary", Plan(drivers=("walk",), shrinks=False))
    assert outcome.killer == "walk"
    assert outcome.kill is not None
    assert (outcome.kill.clause, outcome.kill.scenario) == ("HIT.BOUNDARY", "alone")


def test_an_unknown_driver_is_bad_input() -> None:
    ran = run("mutants", "hit-takes", "--driver", "luck")
    assert ran.is_refused()
    assert ran.verdict.startswith("unusable: --driver luck: there is none; use scenarios, ")


def test_an_unknown_mutant_is_bad_input() -> None:
    ran = run("mutants", "nonesuch")
    assert ran.is_refused()
    assert ran.verdict == "unusable: there is no mutant nonesuch; kvspec mutants --list names all"


def test_the_catalogue_is_listed() -> None:
    ran = run("mutants", "--list")
    assert ran.status == 0
    assert len(ran.stdout.splitlines()) == len(MUTANTS)
