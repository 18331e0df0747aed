"""Tables and capacity (design 4.3, 4.4): what a grant counts, takes, keeps, reads and writes."""

from __future__ import annotations

from collections.abc import Sequence

from kvspec.spec.digests import make_prefix
from kvspec.spec.state import Forward, Work, read_slots, touched_blocks, written_slots
from kvspec.spec.tables import (
    Fresh,
    Kept,
    Private,
    Slots,
    Span,
    first_full,
    first_recurrent,
    given_back,
    moved_tail,
    next_full,
    next_recurrent,
    num_fresh,
)
from kvspec.spec.types import (
    NULL_BLOCK,
    BlockId,
    Config,
    Group,
    GroupId,
    GroupKind,
    Identity,
    RequestId,
    Step,
    Table,
    Token,
    ceil_div,
)

from .model import about

FULL, STATE = Group(GroupKind.FULL, 2), Group(GroupKind.MAMBA_ALIGN, 2)
CACHE = Config(99, 1, (FULL, STATE), 8)
SHORT = "blocks of 2 tokens, up to 8 tokens in all"
HIT = f"{SHORT}, a hit of up to 4"


def spans(local: int, external: int, new: int) -> bool:
    """Whether a first grant may be of such a span, within `HIT`."""
    return (
        0 <= local <= 4
        and (external == 0 or (0 < external <= 2 and local % 2 == 0))
        and (new >= 1 or external >= 1)
        and new >= 0
        and local + external + new <= 8
    )


def hit_of(local: int) -> Table:
    """A full group's hit: blocks 1, 2, ..."""
    return tuple(BlockId(1 + slot) for slot in range(ceil_div(local, 2)))


def state_hit_of(local: int) -> Table:
    """A recurrent group's hit: null blocks, then the state in block 9."""
    slots = ceil_div(local, 2)
    return (NULL_BLOCK,) * (slots - 1) + (BlockId(9),) if slots else ()


def first_tables(local: int, external: int, new: int) -> tuple[Slots, Slots]:
    """Both groups' tables at a first grant."""
    span = Span(local, external, new)
    return (
        first_full(CACHE, FULL, hit_of(local), span),
        first_recurrent(STATE, state_hit_of(local), local > 0, span),
    )


def running_tables(start: int) -> tuple[Table, Table]:
    """Both groups' tables of a request that has computed so much, as grants left them."""
    states = (NULL_BLOCK,) * (ceil_div(start, 2) - 1) + (BlockId(9),)
    return hit_of(start), states


def next_tables(start: int, new: int) -> tuple[Slots, Slots]:
    """Both groups' tables at a later grant."""
    full, states = running_tables(start)
    span = Span(start, 0, new)
    return next_full(CACHE, FULL, full, span), next_recurrent(STATE, states, span)


def filled(tables: Sequence[Slots]) -> tuple[Table, ...]:
    """The tables with a block of its own from the pool (20, 21, ...) wherever one is taken."""
    taken, found = 20, []
    for slots in tables:
        table: list[BlockId] = []
        for slot in slots:
            if slot.block is None:
                table.append(BlockId(taken))
                taken += 1
            else:
                table.append(slot.block)
        found.append(tuple(table))
    return tuple(found)


def taken_from_pool(tables: Sequence[Table], *held: Table) -> int:
    """How many blocks stand in the tables that were not held before."""
    before = {NULL_BLOCK}.union(*held)
    return len({block for table in tables for block in table} - before)


@about("ALLOC.CAPACITY", bound=HIT)
def first_grant_takes_what_it_counts(local: int, external: int, new: int) -> bool:
    """The blocks that a first grant counts are those that its tables then take from the pool.

    pre: spans(local, external, new)
    post: _
    """
    slots = first_tables(local, external, new)
    held = hit_of(local), state_hit_of(local)
    return num_fresh(slots) == taken_from_pool(filled(slots), *held)


@about("ALLOC.CAPACITY", bound=SHORT)
def next_grant_takes_what_it_counts(start: int, new: int) -> bool:
    """The blocks that a later grant counts are those that its tables then take from the pool.

    pre: start >= 1 and new >= 1 and start + new <= 8
    post: _
    """
    slots = next_tables(start, new)
    return num_fresh(slots) == taken_from_pool(filled(slots), *running_tables(start))


@about("ALLOC.CAPACITY", bound=SHORT)
def one_grant_takes_what_two_do(first: int, second: int) -> bool:
    """In a full group a request takes as many blocks in one grant as in two.

    pre: first >= 1 and second >= 1 and first + second <= 8
    post: _
    """
    once = first_full(CACHE, FULL, (), Span(0, 0, first + second))
    one = first_full(CACHE, FULL, (), Span(0, 0, first))
    two = next_full(CACHE, FULL, hit_of(first), Span(first, 0, second))
    return num_fresh([once]) == num_fresh([one]) + num_fresh([two])


@about("TABLE.SHAPE", bound=HIT)
def first_tables_reach_the_end(local: int, external: int, new: int) -> bool:
    """A first grant's tables reach the chunk's end and no further.

    pre: spans(local, external, new)
    post: _
    """
    slots, end = ceil_div(local + external + new, 2), first_tables(local, external, new)
    return [len(table) for table in end] == [slots, slots]


@about("TABLE.SHAPE", bound=SHORT)
def next_tables_keep_what_they_had(start: int, new: int) -> bool:
    """A later grant keeps every block of a full group in its slot, and the state it starts from.

    pre: start >= 1 and new >= 1 and start + new <= 8
    post: _
    """
    full, states = next_tables(start, new)
    had = running_tables(start)
    last = len(had[0]) - 1
    return tuple(slot.block for slot in full[: last + 1]) == had[0] and states[last] == Kept(
        had[1][last]
    )


@about("TABLE.SHAPE", bound="blocks of 2 tokens, a model length of 8")
def lookahead_stays_within_the_model(start: int, new: int, lookahead: int) -> int:
    """Slots for drafts are reserved, but none past the model's length.

    pre: start >= 1 and new >= 1 and start + new <= 8 and lookahead >= 0
    post: _ <= 4
    post: _ * 2 >= min(start + new + lookahead, 8)
    """
    return len(next_full(CACHE, FULL, hit_of(start), Span(start, 0, new, lookahead)))


PREFIX = make_prefix(Identity(), tuple(map(Token, range(8))), 1)


def chunk_through(tables: tuple[Table, ...], start: int, end: int) -> Forward:
    """A chunk computed through these tables."""
    return Forward(RequestId("r"), PREFIX, start, end, tables)


@about("DATA.NULL", "TABLE.SHAPE", bound=HIT)
def first_chunk_meets_no_null(local: int, new: int) -> bool:
    """Every slot that a first chunk reads or writes has a block.

    pre: new >= 1 and spans(local, 0, new)
    post: _
    """
    tables = filled(first_tables(local, 0, new))
    return meets_no_null(chunk_through(tables, local, local + new))


@about("DATA.NULL", "TABLE.SHAPE", bound=SHORT)
def next_chunk_meets_no_null(start: int, new: int) -> bool:
    """Every slot that a later chunk reads or writes has a block.

    pre: start >= 1 and new >= 1 and start + new <= 8
    post: _
    """
    return meets_no_null(chunk_through(filled(next_tables(start, new)), start, start + new))


def meets_no_null(forward: Forward) -> bool:
    """Whether a chunk reads and writes blocks only."""
    slots = [(g, slot) for g, slot, _ in written_slots(CACHE, forward)]
    slots += read_slots(CACHE, forward)
    return all(forward.tables[g][slot] != NULL_BLOCK for g, slot in slots)


@about("COW.WRITE", "COW.HITTER", bound=HIT)
def first_chunk_writes_no_hit_block(local: int, new: int) -> bool:
    """What a first chunk writes was taken from the pool: never a block that the hit shares.

    pre: new >= 1 and spans(local, 0, new)
    post: _
    """
    tables = first_tables(local, 0, new)
    written = written_slots(CACHE, chunk_through((), local, local + new))
    return all(isinstance(tables[g][slot], Fresh | Private) for g, slot, _ in written)


@about("COW.HITTER", bound=HIT)
def partial_hit_becomes_private(local: int, new: int) -> bool:
    """The hit's last block is copied in each group where the hit ends inside a block, and no
    other block is.

    pre: new >= 1 and spans(local, 0, new)
    post: _
    """
    expected = [Private(hit[-1]) for hit in (hit_of(local), state_hit_of(local)) if local % 2]
    tables = first_tables(local, 0, new)
    return [slot for table in tables for slot in table if isinstance(slot, Private)] == expected


@about("COW.OWNER", bound=SHORT)
def tail_moves_where_it_is_overwritten(start: int, new: int) -> bool:
    """The state that a chunk starts from has to move exactly where the chunk ends in its block.

    pre: start >= 1 and new >= 1 and start + new <= 8
    post: _
    """
    table = running_tables(start)[1]
    within = start % 2 == 1 and new == 1
    return moved_tail(STATE, table, Span(start, 0, new)) == (BlockId(9) if within else None)


@about("ALLOC.REFUSAL", "DATA.STATE", bound="tables of 4 slots in blocks of 2 tokens")
def only_older_states_go_back(one: bool, two: bool, three: bool, computed: int) -> bool:
    """The states given back lie before the one that the request goes on from: all of those.

    pre: 1 <= computed <= 8
    post: _
    """
    there = (one, two, three, True)
    table = tuple(BlockId(slot + 1) if held else NULL_BLOCK for slot, held in enumerate(there))
    gone = given_back(STATE, table, computed)
    return all((slot in gone) == (slot * 2 + 2 < computed and there[slot]) for slot in range(4))


@about("FENCE.EXTERNAL", "ALLOC.ZEROED_ONLY", bound=HIT)
def connector_writes_its_span_only(local: int, external: int, new: int) -> bool:
    """What a connector will write is taken from the pool, covers the external tokens, and lies
    in no block of the local hit.

    pre: external >= 1 and spans(local, external, new)
    post: _
    """
    full, states = first_tables(local, external, new)
    theirs = [i for i, slot in enumerate(full) if isinstance(slot, Fresh) and slot.external]
    state = [i for i, slot in enumerate(states) if isinstance(slot, Fresh) and slot.external]
    first, last = local // 2, (local + external - 1) // 2
    return theirs == list(range(first, last + 1)) and state == [last]


@about("STEP.DEFER", "COW.WRITE", bound=SHORT)
def writes_are_the_chunk(start: int, new: int) -> bool:
    """In a full group a chunk writes each of its positions, block by block, and none before it; of
    a recurrent group it writes the slot of its last token.

    pre: start >= 0 and new >= 1 and start + new <= 8
    post: _
    """
    end = start + new
    slots = written_slots(CACHE, chunk_through((), start, end))
    full = [(slot, position) for g, slot, position in slots if g == GroupId(0)]
    starts = [(position // 2, position) for position in range(start, end)]
    expected = [one for i, one in enumerate(starts) if i == 0 or one[1] % 2 == 0]
    return full == expected and slots[-1] == (GroupId(1), (end - 1) // 2, 0)


@about("FENCE.EXTERNAL", bound=SHORT, slow=True)
def step_touches_what_it_reads_and_writes(start: int, new: int) -> bool:
    """The blocks that a step touches are those of all positions up to its end, and both states.

    pre: start >= 1 and new >= 1 and start + new <= 8
    post: _
    """
    end = start + new
    full, states = filled(next_tables(start, new))
    work = Work(Step(1), forwards=(chunk_through((full, states), start, end),))
    touched = touched_blocks(CACHE, work)
    return touched == {*full[: ceil_div(end, 2)], states[(start - 1) // 2], states[(end - 1) // 2]}
