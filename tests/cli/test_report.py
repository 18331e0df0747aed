"""Reports: the verdict line, JSON and JUnit."""

from __future__ import annotations

import json
from dataclasses import replace
from xml.etree import ElementTree as ET

from kvspec import report as rep

CONFORMS = rep.Report(
    target="mine",
    profile="soundness",
    seed=3,
    verdict="conforms",
    scenarios=(
        rep.ScenarioResult("S1", "one", passed=True),
        rep.ScenarioResult("S2", "two", passed=False, skipped="it lacks lookup"),
    ),
    clauses=(
        rep.ClauseResult("HIT.LIMIT", 7, False),
        rep.ClauseResult("DATA.READ", 0, False, "nobody came by"),
        rep.ClauseResult("REF.COUNT", 0, False, "needs the accounting profile"),
    ),
    events=31204,
)
BROKEN = replace(
    CONFORMS,
    verdict="broken",
    scenarios=(rep.ScenarioResult("S1", "one", passed=False, problem="odd \x00\ud800 <&>"),),
    clauses=(rep.ClauseResult("HIT.LIMIT", 7, True),),
    violations=(
        rep.ViolationResult("HIT.LIMIT", "A hit.", 3, "4", "3", "trace", "kvspec", "t", "a\x1b[b"),
    ),
)


def test_a_conforming_target_is_told_with_what_was_exercised() -> None:
    assert rep.verdict_line(CONFORMS) == (
        "mine conforms (soundness): 1 of 2 clauses exercised, 1 of 2 scenarios, 31,204 events, "
        "seed 3"
    )


def test_a_broken_target_is_told_by_its_clauses_else_by_its_scenarios() -> None:
    assert rep.verdict_line(BROKEN) == "mine is broken: HIT.LIMIT"
    assert rep.verdict_line(replace(BROKEN, violations=())) == "mine is broken: scenario S1"


def test_an_unusable_target_is_told_with_the_reason() -> None:
    unusable = replace(CONFORMS, verdict="unusable", reason="it hangs")
    assert rep.verdict_line(unusable) == "unusable: it hangs"


def test_statuses_are_those_of_the_design() -> None:
    assert rep.EXIT == {"conforms": 0, "broken": 1, "unusable": 2}


def test_json_begins_with_our_version_and_can_be_read() -> None:
    data = json.loads(rep.as_json(CONFORMS))
    assert list(data)[:5] == ["kvspec", "target", "profile", "seed", "verdict"]
    assert data["scenarios"][1]["skipped"] == "it lacks lookup"


def test_junit_holds_what_xml_cannot() -> None:
    suite = ET.fromstring(rep.as_junit(BROKEN))[0]
    assert suite.get("failures") == "2"
    failures = [failure.get("message") for failure in suite.iter("failure")]
    assert failures[0] == "odd ?? <&>"


def test_junit_tells_broken_skipped_and_never_exercised_apart() -> None:
    suite = ET.fromstring(rep.as_junit(CONFORMS))[0]
    skipped = {
        str(case.get("name")): str(found.get("message"))
        for case in suite
        if (found := case.find("skipped")) is not None
    }
    assert skipped == {
        "S2 two": "it lacks lookup",
        "DATA.READ": "never exercised: nobody came by",
        "REF.COUNT": "never exercised: needs the accounting profile",
    }


def test_junit_counts_an_unusable_target_as_an_error() -> None:
    report = rep.Report("mine", "", 0, "unusable", reason="it hangs")
    suite = ET.fromstring(rep.as_junit(report))[0]
    assert (suite.get("errors"), suite.get("tests")) == ("1", "1")
