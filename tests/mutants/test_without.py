"""Each clause can be taken away from the judge, and then lets a fault pass that it alone sees."""

from __future__ import annotations

import json
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from kvspec.errors import ClauseBroken
from kvspec.mutants.catalogue import MUTANTS
from kvspec.mutants.liar import LIAR, Liar
from kvspec.mutants.without import clauses_of_books, faults_of, lose, without
from kvspec.optimized.manager import Manager
from kvspec.scenarios import SCENARIOS, Unsupported, run_scenario
from kvspec.spec.clauses import CLAUSES
from tests.cli.run import run


def test_a_clause_that_follows_from_others_follows_from_some_that_do_not() -> None:
    graph = {id: clause.follows_from for id, clause in CLAUSES.items()}
    assert {id for ids in graph.values() for id in ids} <= set(CLAUSES)
    TopologicalSorter(graph).prepare()  # raises where some follow from each other


def test_there_is_a_fault_to_try_or_a_clause_it_follows_from() -> None:
    for clause in CLAUSES.values():
        assert faults_of(clause) or clause.follows_from, clause.id


@pytest.mark.parametrize(
    ("clause", "fault"),
    [
        ("EVICT.TAKEN", LIAR),
        ("FENCE.HELD", LIAR),
        ("COW.HITTER", "cow-untold"),
        ("CHUNK.ADVANCE", "chunk-stands-still"),
        ("HIT.LIMIT", "unseen-hit-whole-prompt"),
    ],
)
def test_without_a_clause_its_fault_passes(clause: str, fault: str) -> None:
    loss = lose(clause, examples=5)
    assert (loss.passes, loss.explained) == (fault, True), loss


def test_what_others_see_does_not_pass() -> None:
    loss = lose("COPY.CONFLICT", examples=5)
    assert loss.passes == ""
    assert loss.seen == {"copy-conflict": "COW.HITTER", "copy-chained": "STEP.DEFER"}
    assert loss.explained


def test_the_judge_is_whole_again_afterwards() -> None:
    clause = CLAUSES["EVICT.TAKEN"]
    with without(clause):
        run_scenario(SCENARIOS["A8"], LIAR, lambda: Liar(clause))
    with pytest.raises(ClauseBroken, match=r"EVICT\.TAKEN"):
        run_scenario(SCENARIOS["A8"], LIAR, lambda: Liar(clause))


@pytest.mark.parametrize("id", ["REG.WITHDRAWN", "COW.MOVED", "PIN.HELD"])
def test_a_liar_lies_about_its_clause_alone(id: str) -> None:
    assert id in clauses_of_books()
    seen = set()
    for scenario in SCENARIOS.values():
        try:
            run_scenario(scenario, LIAR, lambda: Liar(CLAUSES[id]))
        except ClauseBroken as broken:
            seen.add(broken.violation.clause.id)
        except Unsupported:
            continue
    assert seen == {id}


def test_without_what_no_clause_is_about_nothing_changes() -> None:
    with without(CLAUSES["STEP.NUMBER"]):
        for scenario in SCENARIOS.values():
            run_scenario(scenario, "optimized", Manager)


def test_the_command_writes_what_passes(tmp_path: Path) -> None:
    data, page = tmp_path / "w.json", tmp_path / "w.md"
    ran = run("mutants", "DATA.ZEROED", "--without", "--json", data, "--markdown", page)
    assert ran.status == 0, ran
    assert ran.verdict == (
        "0 of 1 clauses let a fault pass when they are taken away, 1 follow from others"
    )
    assert json.loads(data.read_text())["clauses"][0]["follows_from"] == ["ALLOC.ZEROED"]
    assert "| DATA.ZEROED | nothing: it follows from ALLOC.ZEROED |" in page.read_text()


def test_an_unknown_clause_is_bad_input() -> None:
    ran = run("mutants", "NO.CLAUSE", "--without")
    assert ran.is_refused()
    assert "there is no clause NO.CLAUSE" in ran.verdict


def test_every_mutant_is_of_a_clause() -> None:
    assert {mutant.clause for mutant in MUTANTS.values()} <= set(CLAUSES)
