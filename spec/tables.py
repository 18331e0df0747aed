"""What a block table must look like after a grant (design 4.3, 4.4), slot by slot.

The target chooses the blocks; a `Slot` says what kind of block has to stand there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .types import NULL_BLOCK, BlockId, Config, Group, Table, ceil_div


@dataclass(frozen=True, slots=True)
class Null:
    """The null block: the position is not needed."""

    @property
    def block(self) -> BlockId:
        """The null block."""
        return NULL_BLOCK


@dataclass(frozen=True, slots=True)
class Kept:
    """This very block; with `optional`, or null."""

    block: BlockId
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Fresh:
    """A block taken from the pool; `external` when a connector will write it."""

    external: bool = False

    @property
    def block(self) -> None:
        """The target chooses."""


@dataclass(frozen=True, slots=True)
class Private:
    """A block taken from the pool, into which `source` is copied (copy-on-write by the hitter)."""

    source: BlockId

    @property
    def block(self) -> None:
        """The target chooses."""


Slot = Null | Kept | Fresh | Private
NULL = Null()
Slots = tuple[Slot, ...]


@dataclass(frozen=True, slots=True)
class Span:
    """The tokens a grant is about: [local hit | external | new | lookahead)."""

    local: int
    external: int
    new: int
    lookahead: int = 0

    @property
    def start(self) -> int:
        """Where computing starts: the request's computed tokens."""
        return self.local + self.external

    @property
    def end(self) -> int:
        """Where computing ends."""
        return self.start + self.new


def full_slots(config: Config, group: Group, span: Span) -> int:
    """How many slots a full group needs; lookahead is reserved but never past the model length."""
    return ceil_div(min(span.end + span.lookahead, config.max_model_len), group.block_size)


def state_slot(group: Group, length: int) -> int:
    """The slot that holds the state after `length` tokens: that of the last of them."""
    return (length - 1) // group.block_size


def first_full(config: Config, group: Group, hit: Table, span: Span) -> Slots:
    """A full group's table at a request's first grant."""
    size = group.block_size
    slots: list[Slot] = [Kept(block) for block in hit]
    if span.local % size:
        slots[-1] = Private(hit[-1])
    while len(slots) < full_slots(config, group, span):
        slots.append(Fresh(external=len(slots) * size < span.start))
    return tuple(slots)


def first_recurrent(group: Group, hit: Table, has_state: bool, span: Span) -> Slots:
    """A recurrent group's table at a request's first grant.

    Only the state the chunk starts from and the one it ends with have blocks. With external tokens
    the local state is not needed either, unless the load fails: it may stay.
    """
    slots: list[Slot] = [NULL] * max(ceil_div(span.end, group.block_size), len(hit))
    if has_state and span.external:
        slots[len(hit) - 1] = Kept(hit[-1], optional=True)
    elif has_state:
        partial = span.local % group.block_size
        slots[len(hit) - 1] = Private(hit[-1]) if partial else Kept(hit[-1])
    if span.external:
        slots[state_slot(group, span.start)] = Fresh(external=True)
    if span.new and slots[last := state_slot(group, span.end)] == NULL:
        slots[last] = Fresh()
    return tuple(slots)


def next_full(config: Config, group: Group, table: Table, span: Span) -> Slots:
    """A full group's table at a later grant: what it has, and as many more as it needs."""
    more = full_slots(config, group, span) - len(table)
    return (*map(Kept, table), *([Fresh()] * more))


def next_recurrent(group: Group, table: Table, span: Span) -> Slots:
    """A recurrent group's table at a later grant: states before the one it starts from go back."""
    last, gone = state_slot(group, span.end), given_back(group, table, span.start)
    slots: list[Slot] = [
        NULL if block == NULL_BLOCK or i in gone else Kept(block) for i, block in enumerate(table)
    ]
    slots += [NULL] * (last + 1 - len(slots))
    if slots[last] == NULL:
        slots[last] = Fresh()
    return tuple(slots)


def given_back(group: Group, table: Table, computed: int) -> tuple[int, ...]:
    """The slots whose blocks a running request no longer needs, given its computed tokens."""
    if not group.recurrent or computed == 0:
        return ()
    needed = state_slot(group, computed)
    return tuple(i for i in range(min(needed, len(table))) if table[i] != NULL_BLOCK)


def moved_tail(group: Group, table: Table, span: Span) -> BlockId | None:
    """The block in which a chunk would overwrite the state it starts from, if it does.

    When that block is keyed, its entry has to move first (copy-on-write by the owner).
    """
    if not group.recurrent or span.start == 0 or span.new == 0:
        return None
    slot = state_slot(group, span.start)
    if slot != state_slot(group, span.end) or slot >= len(table):
        return None
    return table[slot]


def num_fresh(slots: Sequence[Slots]) -> int:
    """How many blocks these tables take from the pool, hits aside."""
    return sum(slot.block is None for group in slots for slot in group)
