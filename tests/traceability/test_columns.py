"""Each clause has something in every column of the traceability table, or a reason why not."""

from __future__ import annotations

import pytest

from kvspec.scenarios import SCENARIOS
from kvspec.spec.clauses import CLAUSES
from kvspec.trace_reasons import REASONS, holes
from kvspec.traceability import COLUMNS, table

Table = dict[str, dict[str, list[str]]]


@pytest.fixture(scope="module")
def rows() -> Table:
    return table()


def test_no_column_is_empty_without_a_reason_and_no_reason_is_stale(rows: Table) -> None:
    assert holes(rows) == []


def test_every_clause_has_a_row_and_every_scenario_stands_somewhere(rows: Table) -> None:
    assert list(rows) == list(CLAUSES)
    named = {id for row in rows.values() for id in row["scenarios"]}
    assert named == set(SCENARIOS)


def test_reasons_are_of_clauses_and_columns_that_exist() -> None:
    assert REASONS.keys() <= COLUMNS.keys()
    assert {id for column in REASONS.values() for id in column} <= CLAUSES.keys()


def test_a_hole_is_told(rows: Table) -> None:
    empty = {"HASH.STABLE": {**rows["HASH.STABLE"], "mutants": []}}
    assert holes(empty) == [
        "HASH.STABLE has no mutants, and kvspec/trace_reasons.py says no reason"
    ]
    full = {"STEP.NUMBER": {**rows["STEP.NUMBER"], "atlas": ["A1"]}}
    assert holes(full) == ["STEP.NUMBER has atlas; kvspec/trace_reasons.py says why it has none"]
