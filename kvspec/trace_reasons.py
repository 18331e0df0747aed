"""Why a column of the traceability table is empty for a clause, where it is."""

from __future__ import annotations

from collections.abc import Mapping

from kvspec.spec.clauses import CLAUSES

EVERY_GRANT = "bites at every grant: no rare state is needed"
EVERY_LOOKUP = "bites at every lookup: no rare state is needed"
EVERY_STEP = "bites in every step: no rare state is needed"
OF_ONE_CONFIG = "bites in every step of a group that asks for zeroing"
NOT_REPORTED = "no public report of it was found"
NO_WORKER = "a runner of vectors moves no data: what would be read wrongly shows as {}"
ALREADY = "a vector says which blocks and lengths are right: another one shows as {}"
OF_EVENTS = "about a sequence of events, not a function: kvspec prove walks them"
OF_CHOICE = "about blocks that a target chose, not a function: kvspec prove walks the choices"
OF_MANY_EVENTS = "about a sequence of events, not a function: kvspec check draws them at random"

REASONS: Mapping[str, Mapping[str, str]] = {
    "rare states": {
        "HASH.INJECTIVE": "bites whenever two prefixes are keyed",
        "HASH.STABLE": "bites whenever a prefix is keyed twice",
        "HIT.LIMIT": EVERY_LOOKUP,
        "HIT.ALIGNED": EVERY_LOOKUP,
        "HIT.FOUND": EVERY_LOOKUP,
        "HIT.PURE": EVERY_LOOKUP,
        "ALLOC.RANGE": EVERY_GRANT,
        "ALLOC.FREE": EVERY_GRANT,
        "ALLOC.NOTHING": "bites whenever nothing is asked for",
        "ALLOC.ZEROED": OF_ONE_CONFIG,
        "ALLOC.ZEROED_ONLY": OF_ONE_CONFIG,
        "REG.COMPLETE": EVERY_GRANT,
        "REG.ONLY": "bites at every snapshot: no rare state is needed",
        "TABLE.NEW": EVERY_GRANT,
        "TABLE.SHOWN": "bites at every snapshot: no rare state is needed",
        "STEP.NUMBER": EVERY_STEP,
        "DATA.NULL": EVERY_STEP,
        "DATA.ZEROED": OF_ONE_CONFIG,
        "DATA.BYTES": EVERY_STEP,
        "DATA.KERNEL": EVERY_STEP,
        "LIVE.EXACT": "bites at every event: no rare state is needed",
    },
    "atlas": {
        "HIT.ALIGNED": NOT_REPORTED,
        "REG.COMPLETE": NOT_REPORTED,
        "REG.DRAFT": NOT_REPORTED,
        "COW.KEPT": NOT_REPORTED,
        "COW.UNKEYED": NOT_REPORTED,
        "STEP.NUMBER": "a convention of the event language",
        "FREE.TAIL": NOT_REPORTED,
        "LIVE.EXACT": "a promise of our own managers to each other",
    },
    "vectors": {
        "HIT.ALIGNED": ALREADY.format("HIT.LENGTH"),
        "ALLOC.RANGE": ALREADY.format("ALLOC.FREE or HIT.FOUND"),
        "ALLOC.HITS": ALREADY.format("ALLOC.FREE"),
        "COW.WRITE": ALREADY.format("COW.HITTER, COW.OWNER or ALLOC.FREE"),
        "COPY.SOURCE": ALREADY.format("COW.HITTER or COW.OWNER"),
        "COPY.CONFLICT": ALREADY.format("COW.HITTER or ALLOC.FREE"),
        "FENCE.EXTERNAL": ALREADY.format("ALLOC.FREE"),
        "PIN.CONTENT": ALREADY.format("ALLOC.FREE or PIN.HANDOFF"),
        "DATA.READ": NO_WORKER.format("HIT.LENGTH, HIT.FOUND or TABLE.SHAPE"),
        "DATA.STATE": NO_WORKER.format("HIT.LENGTH, REG.EXACT or TABLE.SHAPE"),
        "DATA.NULL": NO_WORKER.format("TABLE.SHAPE"),
        "DATA.KEY": NO_WORKER.format("the REG clause that gave the key"),
        "DATA.ZEROED": NO_WORKER.format("ALLOC.ZEROED"),
        "DATA.OFFLOAD": NO_WORKER.format("PIN.HANDOFF"),
        "DATA.BYTES": "about the worker, which no vector has",
        "DATA.KERNEL": "about the kernels, which no vector has",
        "LIVE.EXACT": "a vector allows every choice that the rules allow",
    },
    "symbolic": {
        "HIT.PURE": OF_EVENTS,
        "ALLOC.RANGE": OF_CHOICE,
        "ALLOC.FREE": OF_CHOICE,
        "ALLOC.HITS": OF_CHOICE,
        "ALLOC.NOTHING": "about an answer to one event: no arithmetic",
        "ALLOC.ZEROED": OF_MANY_EVENTS,
        "REG.LOST": OF_EVENTS,
        "TABLE.NEW": OF_CHOICE,
        "TABLE.WORKER": OF_EVENTS,
        "TABLE.SHOWN": OF_EVENTS,
        "COW.MOVED": OF_EVENTS,
        "COW.KEPT": OF_EVENTS,
        "COW.UNKEYED": OF_MANY_EVENTS,
        "COPY.QUEUED": OF_EVENTS,
        "COPY.SOURCE": OF_CHOICE,
        "COPY.CONFLICT": OF_CHOICE,
        "COPY.RETAINED": OF_EVENTS,
        "STEP.NUMBER": OF_EVENTS,
        "FENCE.HELD": OF_EVENTS,
        "FENCE.REACHED": OF_EVENTS,
        "FENCE.RETAINED": OF_EVENTS,
        "PIN.HANDOFF": OF_MANY_EVENTS,
        "PIN.DIES": OF_MANY_EVENTS,
        "PIN.HELD": OF_MANY_EVENTS,
        "PIN.DROPPED": OF_MANY_EVENTS,
        "PIN.CONTENT": OF_MANY_EVENTS,
        "REF.DETACHED": OF_MANY_EVENTS,
        "REF.PINS": OF_MANY_EVENTS,
        "FREE.ONCE": OF_EVENTS,
        "FREE.TAIL": OF_EVENTS,
        "EVICT.RESET": OF_EVENTS,
        "EVICT.CLEARED": OF_EVENTS,
        "DATA.BYTES": "about memory, not a function: kvspec check compares it after every step",
        "LIVE.ALONE": OF_EVENTS,
        "LIVE.ANSWER": OF_EVENTS,
    },
}
"""By column and clause."""


def reason_for(id: str, column: str) -> str | None:
    """Why there is nothing in a clause's column, where something says so."""
    follows = CLAUSES[id].follows_from
    if column == "mutants" and follows:
        return f"whatever breaks it breaks {' or '.join(follows)} first"
    return REASONS.get(column, {}).get(id)


def holes(table: Mapping[str, Mapping[str, list[str]]]) -> list[str]:
    """Empty cells without a reason, and reasons for cells that are not empty, in words."""
    found: list[str] = []
    for id, row in table.items():
        for column, cell in row.items():
            if not cell and reason_for(id, column) is None:
                found.append(f"{id} has no {column}, and kvspec/trace_reasons.py says no reason")
            if cell and id in REASONS.get(column, {}):
                found.append(f"{id} has {column}; kvspec/trace_reasons.py says why it has none")
    return found
