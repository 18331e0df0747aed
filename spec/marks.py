"""Rare states that a search has to reach, in domain words: what a run did not see it did not test.

The functions of the judge note each when it happens. Every mark is seen in some scenario, and a
check says in how many of its runs it was (`kvspec/report.py`).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mark:
    """A state worth reaching; `clauses` are those that bite only there, or harder there."""

    id: str
    statement: str
    clauses: tuple[str, ...] = ()


MARKS: dict[str, Mark] = {}
"""All marks by id, in the order of a request's life."""


def _mark(id: str, statement: str, *clauses: str) -> Mark:
    assert id not in MARKS, f"mark {id} is used twice"
    MARKS[id] = Mark(id, statement, clauses)
    return MARKS[id]


# --- lookup -------------------------------------------------------------------------------------

PARTIAL_HIT = _mark(
    "partial hit",
    "A hit ends inside a block of some group.",
    "HIT.SHAPE",
    "COW.HITTER",
)
MOVED_ENTRY_HIT = _mark(
    "hit on a moved entry",
    "A hit leads to the copy that took over an owner's entry.",
    "COW.MOVED",
    "DATA.STATE",
)
EAGLE_FALLS_BACK = _mark(
    "eagle falls back to a block",
    "With eagle, what was found inside a block is given up and the hit ends on a block.",
    "HIT.LENGTH",
)
DIVERGED_HIT = _mark(
    "diverged connector hit",
    "A connector is told attention's length, of which another group falls short.",
    "HIT.CONNECTOR",
    "TRUNC.VIEW",
)
CUT_REFUSED = _mark(
    "truncation refused", "A hit may not be cut at the length asked for.", "TRUNC.ERROR"
)

# --- grants -------------------------------------------------------------------------------------

GRANT = _mark("grant", "A request is granted blocks.")
REFUSAL = _mark(
    "refusal",
    "A request asks for more blocks than are free.",
    "ALLOC.REFUSAL",
    "LIVE.ANSWER",
)
REFUSED_THEN_GRANTED = _mark(
    "refusal then grant",
    "A request that was refused is granted later.",
    "ALLOC.CAPACITY",
    "LIVE.ALONE",
)
DEFERRAL = _mark(
    "deferral", "A hit needs what this same step still writes, and waits.", "STEP.DEFER"
)
HIT_LEAVES_FREE_LIST = _mark(
    "hit leaves the free list",
    "A hit block without a holder is taken up.",
    "ALLOC.HITS",
    "FREE.EXACT",
    "FREE.ONCE",
)
EVICTION = _mark(
    "eviction",
    "A keyed block is taken and loses its key.",
    "EVICT.TAKEN",
    "FREE.TAIL",
)
LOPSIDED_EVICTION = _mark(
    "eviction of what another group still has",
    "A block loses its key while another group stays keyed for the same prefix.",
    "HIT.LENGTH",
    "HIT.BOUNDARY",
)
HITTER_COPIES = _mark(
    "copy-on-write by hitter",
    "A partial hit is copied into a private block.",
    "COW.HITTER",
    "COW.KEPT",
    "COW.UNKEYED",
    "COPY.SOURCE",
)
GROUPS_COPY = _mark(
    "several groups copy at once",
    "One grant queues copies in more than one group.",
    "COPY.QUEUED",
    "COPY.CONFLICT",
    "COPY.RETAINED",
)
OWNER_COPIES = _mark(
    "copy-on-write by owner",
    "An owner goes on in its keyed block: the entry moves.",
    "COW.OWNER",
    "COW.WRITE",
    "TABLE.WORKER",
)
DRAFTS = _mark("drafts are computed", "A chunk reaches beyond the known tokens.", "REG.DRAFT")
OLD_STATES_WAIT = _mark(
    "old states wait behind a fence",
    "A running request gives states back that a step in flight may still read.",
    "FENCE.HELD",
    "TABLE.SHAPE",
)

# --- registration -------------------------------------------------------------------------------

PARTIAL_ENTRY = _mark("partial entry", "A block is keyed at a boundary inside it.", "REG.PARTIAL")
PROMOTION = _mark(
    "promotion",
    "A completed block's full key takes its partial key's place.",
    "REG.PROMOTED",
    "DATA.KEY",
)
WITHDRAWN = _mark(
    "withdrawn chunk",
    "A chunk that was granted will never run.",
    "REG.WITHDRAWN",
    "DATA.KEY",
)

# --- steps, fences ------------------------------------------------------------------------------

FENCE_OUTLIVES = _mark(
    "fence outlives its request",
    "Blocks left their request and wait for a step in flight.",
    "FENCE.HELD",
    "FENCE.EXTERNAL",
)
FENCE_REACHED = _mark(
    "fence reached",
    "The step was processed, they go.",
    "FENCE.REACHED",
    "FENCE.RETAINED",
)

# --- the connector ------------------------------------------------------------------------------

OFFERED = _mark(
    "hand-off offered",
    "A moved entry's block is offered.",
    "PIN.HANDOFF",
    "PIN.CONTENT",
    "DATA.OFFLOAD",
)
DIES_UNDRAINED = _mark(
    "hand-off dies undrained", "Its request, or its block, goes first.", "PIN.DIES"
)
RESCUE = _mark(
    "rescue from the free list",
    "A block is pinned that nobody held any more.",
    "PIN.HELD",
    "PIN.DROPPED",
    "REF.PINS",
    "REF.COUNT",
)
DETACHED_PINS = _mark(
    "pins are detached", "A request is detached while a connector may read.", "REF.DETACHED"
)
LOAD_FAILS = _mark(
    "failed external load",
    "External tokens never arrive.",
    "REG.LOST",
    "REG.DELAYED",
)
STRANDED = _mark(
    "nowhere to resume from",
    "A load fails behind a hit whose state was not there, so that the request starts over.",
    "DATA.READ",
    "DATA.STATE",
)

# --- the whole cache ----------------------------------------------------------------------------

EVICTED_IN_USE = _mark(
    "eviction of a block in use", "A block that is held loses its key on demand.", "EVICT.ASKED"
)
RESET = _mark("reset", "Every key goes at once.", "EVICT.RESET", "EVICT.CLEARED")
RESET_REFUSED = _mark("reset refused", "Something is held, so that no key goes.", "EVICT.RESET")
TAIL_STOP = _mark(
    "chunk stops at the tail",
    "A chunk ends on the prompt's last hash boundary.",
    "CHUNK.END",
    "REG.EXACT",
)
STUCK_CHUNK = _mark(
    "a whole block fits no step", "A chunk ends off the grid so as to advance.", "CHUNK.ADVANCE"
)
