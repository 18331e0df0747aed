"""Why a column of the traceability table is empty for a clause, where it is."""

from __future__ import annotations

from collections.abc import Mapping

EVERY_GRANT = "bites at every grant: no rare state is needed"
EVERY_LOOKUP = "bites at every lookup: no rare state is needed"
EVERY_STEP = "bites in every step: no rare state is needed"
OF_ONE_CONFIG = "bites in every step of a group that asks for zeroing"
NOT_REPORTED = "no public report of it was found"
CAUGHT_BEFORE = "a fault that breaks it breaks {} some events earlier; it says what that one is for"

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
    "mutants": {
        "COW.WRITE": CAUGHT_BEFORE.format("COW.HITTER, COW.OWNER or ALLOC.FREE"),
        "DATA.KEY": CAUGHT_BEFORE.format("the REG clause that gave the key"),
        "DATA.ZEROED": CAUGHT_BEFORE.format("ALLOC.ZEROED"),
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
}
"""By column and clause."""


def holes(table: Mapping[str, Mapping[str, list[str]]]) -> list[str]:
    """Empty cells without a reason, and reasons for cells that are not empty, in words."""
    found: list[str] = []
    for id, row in table.items():
        for column, cell in row.items():
            reason = REASONS.get(column, {}).get(id)
            if not cell and reason is None:
                found.append(f"{id} has no {column}, and kvspec/trace_reasons.py says no reason")
            if cell and reason is not None:
                found.append(f"{id} has {column}; kvspec/trace_reasons.py says why it has none")
    return found
