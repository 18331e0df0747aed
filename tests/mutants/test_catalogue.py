"""The catalogue is whole: every patch applies, every clause and atlas row has its mutants."""

from __future__ import annotations

import ast
import inspect
from dataclasses import replace

import pytest

from kvspec.mutants.catalogue import MUTANTS
from kvspec.mutants.load import DoesNotApply, Edit, patched, sources
from kvspec.mutants.model import OPTIMIZED, Mutant
from kvspec.optimized.pool import Pool
from kvspec.spec.clauses import CLAUSES
from kvspec.targets import find_factory

ATLAS = {
    *("A1", "A2", "A3", "A4", "A5", "A8", "A9", "A11", "B1", "B3", "B4", "B5"),
    *("C1", "C2", "C4", "C5", "C7", "C8", "C9", "C11", "C12", "D1", "D3", "D4", "D5", "D8"),
    *("E1", "F2", "F5", "F7", "G1", "G2", "G4", "H1", "H2", "H3", "H4", "H5"),
}
"""The rows of the atlas, all of which are in scope."""


@pytest.mark.parametrize("id", list(MUTANTS))
def test_the_patch_applies_and_what_it_makes_is_python(id: str) -> None:
    mutant = MUTANTS[id]
    texts, before = mutant.text(), sources(mutant.package)
    changed = [name for name, text in texts.items() if text != before[name]]
    assert changed
    for name in changed:
        ast.parse(texts[name])


def test_every_clause_and_every_row_has_a_mutant() -> None:
    filed = {mutant.clause for mutant in MUTANTS.values()}
    assert filed <= set(CLAUSES)
    assert all(CLAUSES[id].follows_from for id in CLAUSES if id not in filed)
    assert {row for mutant in MUTANTS.values() for row in mutant.atlas} == ATLAS


def test_the_public_survivors_are_there() -> None:
    assert MUTANTS["hash-last-token"].title == "the digest ignores the last token of a unit"
    assert MUTANTS["evict-stale-key"].title.startswith("a stale key is never dropped")


def test_a_copy_leaves_the_original_alone() -> None:
    manager = MUTANTS["evict-stale-key"].manager()
    assert manager.__module__ == "_kvspec_mutant_evict_stale_key.manager"
    assert manager.__name__ == "Manager"
    assert "unpublish_many(keyed)" in inspect.getsource(Pool)
    loaded = MUTANTS["hit-takes"].load()
    assert loaded.pool.Pool is not Pool


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        (Edit("pool", "no such text", ""), "0 times, not once"),
        (Edit("pool", "self", "cls"), "times, not once"),
        (Edit("pools", "self", "cls"), "has no module pools"),
    ],
)
def test_a_patch_whose_text_moved_is_an_error(edit: Edit, told: str) -> None:
    with pytest.raises(DoesNotApply, match=told):
        patched(OPTIMIZED, [edit], "moved")


def test_a_mutant_is_found_as_a_target() -> None:
    factory = find_factory("kvspec.mutants.targets:hash_no_salt")
    assert factory.__module__ == "_kvspec_mutant_hash_no_salt.manager"


def test_hidden_books_are_hidden() -> None:
    mutant: Mutant = replace(MUTANTS["hash-no-salt"], hidden=True)
    text = mutant.text()["manager"]
    assert "SHOWABLE" not in text
