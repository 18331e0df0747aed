"""`kvspec check`: verdicts, reports, failures that repeat."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from kvspec.codec import read_trace
from kvspec.scenarios import SCENARIOS
from kvspec.spec.clauses import CLAUSES

from .broken_targets import NAME
from .run import Ran, run, start

CANARY = "kvspec.targets:canary"


@pytest.fixture(scope="module")
def canary(tmp_path_factory: pytest.TempPathFactory) -> tuple[Ran, dict[str, Any], Path]:
    """A check of the canary: the run, its report, and the folder it wrote to."""
    folder = tmp_path_factory.mktemp("canary")
    files = ("--json", folder / "c.json", "--junit", folder / "c.xml", "--failures", folder / "f")
    ran = run("check", "--target", CANARY, "--examples", "20", *files)
    return ran, json.loads((folder / "c.json").read_text()), folder


def test_a_conforming_target_ends_with_0_and_says_how_much_was_exercised(tmp_path: Path) -> None:
    ran = run("check", "--target", "reference", "--examples", "5", "--failures", tmp_path / "f")
    assert ran.status == 0
    assert re.fullmatch(
        r"reference conforms \(exact\): \d+ of \d+ clauses exercised, "
        rf"{len(SCENARIOS)} scenarios, [\d,]+ events, seed 0",
        ran.verdict,
    )
    assert all(clause in ran.stdout for clause in CLAUSES)
    assert not (tmp_path / "f").exists()


def test_a_target_that_shows_little_is_held_to_what_it_shows() -> None:
    ran = run("check", "--target", NAME("ShowsNothing"), "--examples", "5")
    assert ran.status == 0, ran.stdout
    assert "conforms (soundness)" in ran.verdict
    assert "S1 skipped: the target does not take lookup_for_connector" in ran.stdout
    assert re.search(r"REF.COUNT +0 +not exercised needs the accounting profile", ran.stdout)


def test_a_target_without_lookup_is_held_to_the_rest(tmp_path: Path) -> None:
    ran = run("check", "--target", NAME("LacksLookup"), "--examples", "5")
    assert ran.status == 0, ran.stdout
    assert "conforms (accounting)" in ran.verdict
    assert "replay: skipped: the target does not take lookup" in ran.stdout


def test_without_the_public_trace_a_generated_workload_is_replayed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = run("check", "--target", "reference", "--examples", "1")
    assert ran.status == 0
    assert re.search(r"replay: \d+ generated requests", ran.stdout)


def test_a_trace_that_was_named_and_is_not_there_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KVSPEC_TRACE", "no/such/trace.jsonl")
    ran = run("check", "--target", "reference", "--examples", "1")
    assert ran.is_refused()
    assert "no/such/trace.jsonl: cannot be read" in ran.stderr


def test_the_same_seed_gives_the_same_report(tmp_path: Path) -> None:
    reports = []
    for name in ("a", "b"):
        run("check", "--target", "reference", "--examples", "5", "--json", tmp_path / name)
        reports.append({**json.loads((tmp_path / name).read_text()), "seconds": 0})
    assert reports[0] == reports[1]


def test_a_time_limit_bounds_the_whole() -> None:
    ran = run("check", "--target", "reference", "--examples", "100000", "--max-seconds", "2")
    assert ran.status == 0, ran
    assert "conforms" in ran.verdict
    assert ran.verdict.endswith("seed 0, cut short by the time limit")


# --- a broken clause ------------------------------------------------------------------------------


def test_the_canary_is_broken(canary: tuple[Ran, dict[str, Any], Path]) -> None:
    ran, _, _ = canary
    assert ran.status == 1
    assert ran.verdict == f"{CANARY} is broken: EVICT.TAKEN"
    assert ran.stderr == ""
    statement = CLAUSES["EVICT.TAKEN"].statement
    for part in (statement, "observed ", "allowed ", "step ", "pytest ", "vector ", "command "):
        assert part in ran.stdout


def test_the_canary_s_trace_is_short_and_can_be_read(
    canary: tuple[Ran, dict[str, Any], Path],
) -> None:
    [violation] = canary[1]["violations"]
    events = read_trace(violation["trace"])
    assert len(events) <= 12
    assert violation["step"] == len(events) - 1


def test_the_kept_test_fails_in_the_same_way(canary: tuple[Ran, dict[str, Any], Path]) -> None:
    [violation] = canary[1]["violations"]
    ran = start("-q", "-p", "no:cacheprovider", violation["test"], module="pytest")
    assert ran.status == 1
    assert "ClauseBroken: EVICT.TAKEN" in ran.stdout


def test_the_command_shown_breaks_the_same_clause(
    canary: tuple[Ran, dict[str, Any], Path],
) -> None:
    [violation] = canary[1]["violations"]
    program, *arguments = shlex.split(violation["replay"])
    assert program == "kvspec"
    ran = start(*arguments, "--failures", canary[2] / "again")
    assert ran.status == 1, ran
    assert ran.verdict == f"{CANARY} is broken: EVICT.TAKEN"


def test_the_json_report_has_the_form_of_the_design(
    canary: tuple[Ran, dict[str, Any], Path],
) -> None:
    report = canary[1]
    assert list(report)[:6] == ["kvspec", "target", "profile", "seed", "verdict", "scenarios"]
    assert {"clauses", "witnesses", "events", "seconds", "violations"} <= set(report)
    assert report["verdict"] == "broken"
    assert {"id", "passed"} <= set(report["scenarios"][0])
    assert {"id", "exercised", "broken"} <= set(report["clauses"][0])
    assert {"id", "seen"} <= set(report["witnesses"][0])
    violation = {"clause", "statement", "step", "observed", "allowed", "trace", "replay"}
    assert violation <= set(report["violations"][0])
    assert [c["id"] for c in report["clauses"] if c["broken"]] == ["EVICT.TAKEN"]


def test_the_junit_report_has_a_case_for_each_scenario_and_clause(
    canary: tuple[Ran, dict[str, Any], Path],
) -> None:
    suite = ET.parse(canary[2] / "c.xml").getroot()[0]
    cases = {f"{case.get('classname')} {case.get('name')}": case for case in suite}
    assert len(cases) == len(SCENARIOS) + len(CLAUSES)
    failure = cases["kvspec.clauses EVICT.TAKEN"].find("failure")
    assert failure is not None
    assert "vector" in (failure.text or "")
    skipped = cases["kvspec.clauses LIVE.EXACT"].find("skipped")
    assert skipped is not None
    assert "never exercised: needs the exact profile" in (skipped.get("message") or "")
    assert suite.get("failures") == str(len(list(suite.iter("failure"))))


def test_a_second_check_keeps_what_the_first_one_kept(
    canary: tuple[Ran, dict[str, Any], Path],
) -> None:
    folder = canary[2] / "f"
    kept = sorted(folder.iterdir())
    before = {path: path.stat().st_mtime_ns for path in folder.glob("*/*")}
    run("check", "--target", CANARY, "--examples", "20", "--failures", folder)
    assert sorted(folder.iterdir()) == kept
    assert {path: path.stat().st_mtime_ns for path in folder.glob("*/*")} == before


@pytest.mark.parametrize(
    ("target", "says"),
    [("Asserts", "AssertionError: free list lost block 3"), ("Exits", "SystemExit: 0")],
)
def test_what_a_target_raises_breaks_a_clause(tmp_path: Path, target: str, says: str) -> None:
    ran = run("check", "--target", NAME(target), "--examples", "2", "--failures", tmp_path)
    assert ran.status == 1
    assert "LIVE.ANSWER" in ran.verdict
    assert re.search(rf"observed +{re.escape(says)}", ran.stdout)


def test_a_failure_that_does_not_repeat_says_so(tmp_path: Path) -> None:
    ran = run("check", "--target", NAME("Moody"), "--examples", "2", "--failures", tmp_path)
    assert ran.status == 1
    assert "RuntimeError: not today" in ran.stdout


def test_an_unusable_target_is_reported_as_such(tmp_path: Path) -> None:
    files = ("--json", tmp_path / "r.json", "--junit", tmp_path / "r.xml")
    assert run("check", "--target", NAME("raises"), *files).is_refused()
    report = json.loads((tmp_path / "r.json").read_text())
    assert (report["verdict"], report["clauses"]) == ("unusable", [])
    assert "no device found" in report["reason"]
    assert ET.parse(tmp_path / "r.xml").getroot()[0].get("errors") == "1"
