"""The runner that does without kvspec: it says of each engine what `kvspec vectors run` says."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kvspec.targets import find_factory
from kvspec.vectors.folder import INVALIDATED, write_folder
from kvspec.vectors.play import play
from kvspec.vectors.sources import vectors
from tests.cli.run import ROOT, run

from .engine import FAULTS, build

RUNNER = ROOT / "examples" / "vector_runner.py"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("of vectors") / "vectors"
    write_folder(place, vectors())
    return place


def runner(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """It runs isolated: without the packages of this environment and without our variables."""
    command = [sys.executable, "-I", "-S", RUNNER, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_it_needs_the_standard_library_only() -> None:
    tree = ast.parse(RUNNER.read_text())
    found = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    named = (node.names for node in ast.walk(tree) if isinstance(node, ast.Import))
    found |= {name.name for names in named for name in names}
    assert {name.partition(".")[0] for name in found if name} <= sys.stdlib_module_names


def test_the_engine_passes_all_that_it_supports(folder: Path) -> None:
    done = runner(folder, build())
    told = re.fullmatch(r"(\d+) passed, (\d+) passed over\n", done.stdout)
    assert (done.returncode, done.stderr, bool(told)) == (0, "", True), done
    assert told is not None
    passed, over = map(int, told.groups())
    assert (passed + over, passed > over) == (len(vectors()), True)
    ran = run("vectors", "run", folder, "--target", f"cmd:--strict {build()}")
    assert ran.status == 0
    assert f"{passed} of {len(vectors())} vectors passed, {over} passed over" in ran.verdict


@pytest.mark.parametrize("clause", FAULTS)
def test_each_planted_fault_fails(folder: Path, tmp_path: Path, clause: str) -> None:
    engine = build(clause)
    done = runner(folder, engine)
    assert done.returncode == 1
    told = {line.partition(":")[0] for line in done.stdout.splitlines()[:-1]}
    report = tmp_path / "report.json"
    ran = run("vectors", "run", folder, "--target", f"cmd:{engine}", "--json", report)
    assert ran.status == 1
    failed = [c for c in json.loads(report.read_text())["cases"] if c["result"] == "failed"]
    assert told == {case["id"] for case in failed}
    assert clause in {case["clause"] for case in failed}
    assert all(f": {case['clause']}: " in done.stdout for case in failed)


@pytest.mark.parametrize(
    "target",
    [
        "reference",
        "tests.machine.test_other_choices:OtherChoices",
        "tests.machine.test_other_choices:Modest",
    ],
)
def test_both_runners_say_the_same(folder: Path, target: str) -> None:
    done = runner(folder, sys.executable, "-m", "kvspec.wire.serve", target)
    ends = [bool(play(case, target, find_factory(target)).why) for case in vectors()]
    early, whole = sum(ends), len(ends) - sum(ends)
    told = f"{whole} passed, {early} passed early" if early else f"{whole} passed"
    assert (done.returncode, done.stdout) == (0, f"{told}\n"), done.stderr


def test_what_it_cannot_use(folder: Path, tmp_path: Path) -> None:
    few = tmp_path / "vectors"
    two = [case for case in vectors() if case.id in ("small/worked/S6", "small/worked/S7")]
    write_folder(few, two)
    assert runner(few, build()).returncode == 0
    assert runner(few).returncode == 2
    assert runner(tmp_path, build()).returncode == 2
    assert runner(few, "/bin/false").returncode == 2
    first = two[0].id
    why = {"format": "kvspec-vectors/1", "invalidated": [{"id": first, "why": "wrong"}]}
    (few / INVALIDATED).write_text(json.dumps(why))
    assert runner(few, build()).stdout == "1 passed, 1 passed over\n"
    (few / f"{first}.json").write_text("{}")
    done = runner(few, build())
    assert done.returncode == 2
    assert "not as the manifest has it" in done.stderr
    assert "Traceback" not in done.stderr
