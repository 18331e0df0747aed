"""The example engine in C++ conforms over the wire; copies with planted faults do not."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.cli.run import run

from .engine import FAULTS, build


def test_the_engine_conforms_choice_by_choice(tmp_path: Path) -> None:
    target, report = f"cmd:--strict {build()}", tmp_path / "report.json"
    places = ("--json", report, "--failures", tmp_path / "failures")
    ran = run("check", "--target", target, "--profile", "exact", "--examples", "40", *places)
    assert ran.status == 0, ran.stdout[-2000:]
    found = json.loads(report.read_text())
    assert sum(clause["exercised"] > 0 for clause in found["clauses"]) >= 60
    assert sum(scenario["passed"] for scenario in found["scenarios"]) >= 40


def test_it_is_wired_right() -> None:
    ran = run("smoke", "--target", f"cmd:{build()}")
    assert ran.status == 0, ran.stderr
    assert "lacks media" in ran.stdout


@pytest.mark.parametrize("clauses", [*[(clause,) for clause in FAULTS], tuple(FAULTS)])
def test_each_planted_fault_breaks_its_clause(clauses: tuple[str, ...], tmp_path: Path) -> None:
    """One alone, and all of them in one copy."""
    target, report = f"cmd:{build(*clauses)}", tmp_path / "report.json"
    places = ("--json", report, "--failures", tmp_path / "failures")
    ran = run("check", "--target", target, "--examples", "1", *places)
    assert ran.status == 1, ran.stdout[-2000:]
    assert set(clauses) <= {v["clause"] for v in json.loads(report.read_text())["violations"]}


def test_it_answers_whatever_it_is_asked() -> None:
    asked = (
        "",
        "no JSON",
        "[" * 1000,
        '{"event":"lookup","event":"stop"}',
        '{"event":"lookup","request":"a"}',
        '{"event":"configure","num_blocks":1,"hash_unit":0,"groups":[],"max_model_len":1}',
        '{"event":"configure","num_blocks":4,"hash_unit":1.5,"groups":[],"max_model_len":1}',
        '{"event":"dance"}',
        '{"event":"stop"}',
    )
    lines = "\n".join(asked)
    done = subprocess.run([build()], input=lines, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [next(iter(answer)) for answer in answers] == [*["error"] * 7, "unsupported", "result"]
    assert "each key once" in answers[3]["error"]
