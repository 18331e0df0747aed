"""Every mutant, by the families of the clauses they break."""

from __future__ import annotations

from collections.abc import Mapping

from kvspec.mutants.model import Mutant

from . import (
    answers,
    blocks,
    chunks,
    copies,
    hidden,
    hits,
    kernels,
    keys,
    memory,
    registration,
    waiting,
)

__all__ = ["MUTANTS"]

_MODULES = (
    keys, hits, blocks, registration, copies, waiting, chunks, answers, hidden, memory,
    kernels,
)  # fmt: skip

_ALL = [mutant for module in _MODULES for mutant in module.MUTANTS]

MUTANTS: Mapping[str, Mutant] = {mutant.id: mutant for mutant in _ALL}
"""All mutants by id."""

assert len(MUTANTS) == len(_ALL), "two mutants have one id"
