"""Faults of targets that show no books: only what is read and written tells (soundness).

Most are faults of the other families once more. A target without books is not held to those
clauses, so that here it must be the data clauses, and the clauses of order, that see them.
"""

from __future__ import annotations

from kvspec.mutants.load import Edit
from kvspec.mutants.model import Mutant

from . import blocks, copies, hits, keys, registration, waiting

AS_SEEN_BY_DATA = {
    "hit-whole-prompt": "HIT.LIMIT",
    "hash-last-token": "DATA.READ",
    "hash-no-parent": "DATA.READ",
    "hash-no-salt": "DATA.READ",
    "hit-state-no-veto": "HIT.SHAPE",
    "hit-shared-groups": "DATA.READ",
    "evict-stale-key": "DATA.READ",
    "reg-state-anywhere": "DATA.STATE",
    "reg-state-passed": "DATA.STATE",
    "reg-withdrawn": "DATA.READ",
    "reg-withdrawn-state": "DATA.STATE",
    "reg-lost": "DATA.READ",
    "reg-loading": "DATA.READ",
    "cow-key-doubled": "DATA.STATE",
    "cow-key-stays": "DATA.STATE",
    "pin-not-held": "ALLOC.FREE",
    "copy-not-retained": "ALLOC.FREE",
    "step-no-deferral": "STEP.DEFER",
}
"""Mutants of other families, with the clause that sees them when the books are hidden."""


def _hide(mutant: Mutant, clause: str) -> Mutant:
    title = f"{mutant.title}, books unseen"
    return Mutant(f"unseen-{mutant.id}", clause, title, mutant.edits, mutant.atlas, hidden=True)


_ALL = {
    mutant.id: mutant
    for module in (keys, hits, blocks, registration, copies, waiting)
    for mutant in module.MUTANTS
}

MUTANTS = [_hide(_ALL[id], clause) for id, clause in AS_SEEN_BY_DATA.items()] + [
    Mutant(
        "data-null-state",
        "DATA.NULL",
        "a recurrent table shows null where the state to start from stands, to the worker alone",
        (
            Edit(
                "grants",
                "            return tuple(grown)\n",
                "            return (*([0] * (len(grown) + 1)),)[: len(grown)]\n",
            ),
        ),
        ("F5",),
        hidden=True,
    ),
]
