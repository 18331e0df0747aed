"""Each mutant as a target, by its id: `kvspec check --target kvspec.mutants.targets:hash_no_salt`.

Mutants of the worker and of the kernels are no targets, since a target does not bring its own.
"""

from __future__ import annotations

from typing import Any

from .catalogue import MUTANTS


def __getattr__(name: str) -> Any:
    """The class of a faulty manager."""
    mutant = MUTANTS.get(name.replace("_", "-"))
    if mutant is None or not mutant.is_target:
        raise AttributeError(name)
    return mutant.manager()
