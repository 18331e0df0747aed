"""What `kvspec vectors run` says, in words and as JSON, and what the mutants' driver sees."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kvspec.mutants.hunt import Plan, hunt
from kvspec.vectors.folder import write_folder
from kvspec.vectors.sources import vectors
from tests.cli.run import run

SOME = ("small/worked/S12", "small/atlas/A8", "small/atlas/D3", "tiny/connector/03")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("of vectors") / "vectors"
    write_folder(place, [case for case in vectors() if case.id in SOME])
    return place


def test_a_conforming_target(folder: Path, tmp_path: Path) -> None:
    ran = run("vectors", "run", folder, "--json", tmp_path / "r.json")
    assert ran.status == 0
    assert ran.verdict.startswith("optimized conforms (accounting): 4 of 4 vectors passed")
    report = json.loads((tmp_path / "r.json").read_text())
    assert (report["verdict"], report["target"], report["format"]) == (
        "conforms",
        "optimized",
        "kvspec-vectors/1",
    )
    assert [case["id"] for case in report["cases"]] == list(SOME)
    assert {case["result"] for case in report["cases"]} == {"passed"}


def test_a_broken_one(folder: Path, tmp_path: Path) -> None:
    target = "kvspec.targets:canary"
    ran = run("vectors", "run", folder, "--target", target, "--json", tmp_path / "r.json")
    assert ran.status == 1
    assert "small/atlas/A8 fails at step 16, allocate: EVICT.TAKEN\n" in ran.stdout
    assert "  allowed   []\n" in ran.stdout
    assert f"{folder}/small/atlas/A8.json" in ran.stdout
    assert ran.verdict.startswith(f"{target} is broken: 1 vectors failed, 3 of 4 vectors passed")
    (failed,) = (
        case
        for case in json.loads((tmp_path / "r.json").read_text())["cases"]
        if case["result"] == "failed"
    )
    assert (failed["clause"], failed["event"], failed["field"]) == (
        "EVICT.TAKEN",
        "allocate",
        "keys",
    )


def test_what_a_target_lacks_is_passed_over(folder: Path) -> None:
    target = "tests.vectors.choosy:Lacking"
    ran = run("vectors", "run", folder, "--target", target)
    assert ran.status == 0
    assert "the target lacks salt" in ran.stdout
    assert "it declines the configuration" in ran.stdout
    assert "1 of 4 vectors passed, 3 passed over" in ran.verdict


def test_a_target_that_can_play_none_is_unusable(folder: Path) -> None:
    ran = run("vectors", "run", folder, "--target", "tests.vectors.choosy:Declining")
    assert ran.is_refused()
    assert "no vector of" in ran.stderr


@pytest.mark.parametrize("target", ["tests.cli.broken_targets:WrongShape", "nope"])
def test_a_target_that_is_unusable(folder: Path, target: str) -> None:
    assert run("vectors", "run", folder, "--target", target).is_refused()


@pytest.mark.parametrize("id", ["hash-last-token", "evict-stale-key", "step-no-deferral"])
def test_vectors_see_mutants(id: str) -> None:
    outcome = hunt(id, Plan(drivers=("vectors",), shrinks=True))
    assert outcome.kill is not None
    assert outcome.kill.scenario in {case.id for case in vectors()}
    assert 0 < (outcome.shrunk or 0) < 100


def test_what_no_vector_is_about_is_not_seen() -> None:
    for id in ("bytes-copy-shifted", "exact-newest-copy"):
        assert hunt(id, Plan(drivers=("vectors",), shrinks=False)).kills == {"vectors": None}
