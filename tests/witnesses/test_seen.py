"""Every rare state is reached by some scenario, whatever the random runs happen to see."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from kvspec.report import Witness
from kvspec.scenarios import SCENARIOS, run_scenario
from kvspec.spec.case import Ledger
from kvspec.spec.clauses import CLAUSES
from kvspec.spec.marks import MARKS
from kvspec.targets import find_factory
from tests.cli.run import run


@pytest.fixture(scope="module")
def seen() -> Counter[str]:
    ledger = Ledger()
    for scenario in SCENARIOS.values():
        run_scenario(scenario, "reference", find_factory("reference"), ledger=ledger)
    return ledger.marks


@pytest.mark.parametrize("mark", list(MARKS))
def test_a_scenario_sees_it(mark: str, seen: Counter[str]) -> None:
    assert seen[mark]


def test_nothing_else_is_noted(seen: Counter[str]) -> None:
    assert seen.keys() <= MARKS.keys()


def test_marks_name_clauses_that_exist() -> None:
    assert {clause for mark in MARKS.values() for clause in mark.clauses} <= CLAUSES.keys()


def test_a_run_counts_once_what_it_saw_often() -> None:
    ledger = Ledger(marks=Counter({"grant": 3, "reset": 1}))
    assert ledger.end_run(Counter({"reset": 1})) == ["grant"]
    assert (ledger.runs, ledger.seen) == (1, Counter({"grant": 1}))


def test_a_check_reports_every_state_and_warns_of_those_it_saw_too_seldom(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    ran = run("check", "--target", "reference", "--examples", "3", "--json", path)
    report = json.loads(path.read_text())
    assert [witness["id"] for witness in report["witnesses"]] == list(MARKS)
    assert all(witness["seen"] for witness in report["witnesses"])
    seldom = [w["id"] for w in report["witnesses"] if not w["runs"]]
    assert seldom
    for mark in seldom:
        assert f"warning: {mark!r} was seen in 0 of {report['runs']} runs" in ran.stdout


@pytest.mark.parametrize(("seen_in", "rare"), [(0, True), (1, True), (2, False), (3, False)])
def test_seldom_is_less_than_one_run_in_a_thousand(seen_in: int, rare: bool) -> None:
    assert Witness("grant", 9, seen_in).is_rare(2000) is rare
