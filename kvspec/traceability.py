"""What stands behind each clause: who shows it, who sees it broken, where it was met in public.

A column that is empty for a clause carries a reason (`trace_reasons`), or the tests fail: a rule
that nothing shows, or that no fault breaks, is a rule nobody has tried.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache

from kvspec.spec.case import Ledger
from kvspec.spec.clauses import CLAUSES, Clause, Profile
from kvspec.spec.marks import MARKS

from .conditions import CONDITIONS
from .mutants.catalogue import MUTANTS
from .scenarios import SCENARIOS, run_scenario
from .targets import find_factory
from .vectors.sources import vectors

Column = Callable[[Clause], Iterable[str]]


@cache
def _exercised() -> Mapping[str, frozenset[str]]:
    """The clauses that each scenario exercises, on the reference in the exact profile."""
    found: dict[str, frozenset[str]] = {}
    for scenario in SCENARIOS.values():
        ledger = Ledger()
        run_scenario(
            scenario, "reference", find_factory("reference"), profile=Profile.EXACT, ledger=ledger
        )
        found[scenario.id] = frozenset(id for id, count in ledger.exercised.items() if count)
    return found


def scenarios(clause: Clause) -> list[str]:
    """The scenarios that reach a state in which the clause could fail."""
    return [id for id, clauses in _exercised().items() if clause.id in clauses]


def rare_states(clause: Clause) -> list[str]:
    """The rare states in which it bites only, or harder."""
    return [mark.id for mark in MARKS.values() if clause.id in mark.clauses]


def mutants(clause: Clause) -> list[str]:
    """The faults that are filed under it."""
    return [mutant.id for mutant in MUTANTS.values() if mutant.clause == clause.id]


def atlas_rows(clause: Clause) -> list[str]:
    """The rows of the atlas of public faults that it is about."""
    return re.findall(r"^atlas ([A-Z]\d+):", "\n".join(clause.reports), flags=re.MULTILINE)


def conformance_vectors(clause: Clause) -> list[str]:
    """The vectors that can name it."""
    return [case.id for case in vectors() if clause.id in case.clauses]


def conditions(clause: Clause) -> list[str]:
    """The conditions about it that CrossHair confirms."""
    return [condition.id for condition in CONDITIONS.values() if clause.id in condition.clauses]


COLUMNS: Mapping[str, Column] = {
    "scenarios": scenarios,
    "rare states": rare_states,
    "mutants": mutants,
    "atlas": atlas_rows,
    "vectors": conformance_vectors,
    "symbolic": conditions,
}


def table() -> dict[str, dict[str, list[str]]]:
    """By clause and column, what stands there."""
    return {
        clause.id: {name: list(column(clause)) for name, column in COLUMNS.items()}
        for clause in CLAUSES.values()
    }
