"""Conditions on the pure functions: what must hold of them for all arguments, within bounds.

`model` says what a condition is, `confirm` how CrossHair confirms one; each other module holds the
conditions about the noun that it is named after. `CONDITIONS` has all of them.
"""

from . import arithmetic, books, chunks, content, digests, grants, hits, kernels, keys
from .model import CONDITIONS, Condition

__all__ = [
    "CONDITIONS",
    "Condition",
    "arithmetic",
    "books",
    "chunks",
    "content",
    "digests",
    "grants",
    "hits",
    "kernels",
    "keys",
]
