"""What a block holds, symbolically (design 4.11).

A position written for a request holds the tag of the request's prefix up to it. One `Run` says so
for a stretch of positions at once, since the tag of a prefix decides the tags of all shorter ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from .digests import Prefix


class Base(Enum):
    """What lies where nothing was written since the block changed owner."""

    POISON = "poison"
    ZERO = "zero"


@dataclass(frozen=True, slots=True)
class Run:
    """Positions [start, end) hold `prefix`; None where drafts were written, known to nobody."""

    start: int
    end: int
    prefix: Prefix | None


@dataclass(frozen=True, slots=True)
class Rows:
    """A block of a full-attention group, or a block that holds nothing yet."""

    base: Base
    runs: tuple[Run, ...] = ()


@dataclass(frozen=True, slots=True)
class RecurrentState:
    """A recurrent block: the state after exactly `length` tokens of `prefix`."""

    prefix: Prefix
    length: int


Content = Rows | RecurrentState

POISON = Rows(Base.POISON)
ZERO = Rows(Base.ZERO)


def write_rows(content: Content, start: int, end: int, prefix: Prefix | None) -> Rows:
    """The block after positions [start, end) were written for `prefix`."""
    rows = content if isinstance(content, Rows) else POISON
    before = [r for r in (_clip(run, 0, start) for run in rows.runs) if r.start < r.end]
    after = [r for r in (_clip(run, end, run.end) for run in rows.runs) if r.start < r.end]
    if before and before[-1].end == start and _continues(before[-1].prefix, prefix, start):
        start = before.pop().start
    return Rows(rows.base, (*before, Run(start, end, prefix), *after))


def _clip(run: Run, start: int, end: int) -> Run:
    return Run(max(run.start, start), min(run.end, end), run.prefix)


def _continues(old: Prefix | None, new: Prefix | None, length: int) -> bool:
    return old is not None and new is not None and new.agrees(old, length)


def first_foreign(content: Content, prefix: Prefix, start: int, end: int) -> int | None:
    """The first of the positions [start, end) that does not hold its tag of `prefix`, if any."""
    if start >= end:
        return None
    if not isinstance(content, Rows):
        return start
    for run in content.runs:
        if run.end <= start:
            continue
        if run.start > start:
            return start
        reach = min(run.end, end)
        if run.prefix is None or not prefix.agrees(run.prefix, reach):
            return start
        start = reach
        if start == end:
            return None
    return start


def holds_state(content: Content, prefix: Prefix, length: int) -> bool:
    """Whether the block holds the recurrent state after exactly `length` tokens of `prefix`."""
    if not isinstance(content, RecurrentState) or content.length != length:
        return False
    return prefix.agrees(content.prefix, length)


def describe(content: Content) -> str:
    """The block's content in words, for a report."""
    if isinstance(content, RecurrentState):
        return f"the state after {_show(content.prefix, content.length)}"
    if not content.runs:
        return content.base.value
    runs = (f"positions {r.start}..{r.end - 1} of {_show(r.prefix, r.end)}" for r in content.runs)
    return ", ".join(runs)


def _show(prefix: Prefix | None, length: int) -> str:
    if prefix is None:
        return "drafts"
    tokens = prefix.tokens[:length]
    if len(tokens) <= 12:
        return str(list(tokens))
    return f"{length} tokens ending in {list(tokens[-4:])}"
