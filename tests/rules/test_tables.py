"""Block tables after a grant, slot by slot, against worked values."""

from __future__ import annotations

import pytest

from kvspec.spec.tables import (
    NULL,
    Fresh,
    Kept,
    Null,
    Private,
    Span,
    first_full,
    first_recurrent,
    full_slots,
    given_back,
    moved_tail,
    next_full,
    next_recurrent,
    num_fresh,
    state_slot,
)
from kvspec.spec.types import NULL_BLOCK, BlockId, Config, Group, GroupKind, Table

FULL, STATES = Group(GroupKind.FULL, 4), Group(GroupKind.MAMBA_ALIGN, 4)
CONFIG = Config(99, 2, (FULL, STATES), 30)
NEW, LOADED = Fresh(), Fresh(external=True)


def blocks(*ids: int) -> Table:
    return tuple(BlockId(n) for n in ids)


def kept(n: int, optional: bool = False) -> Kept:
    return Kept(BlockId(n), optional)


def test_a_span_is_hit_external_and_new_in_a_row() -> None:
    assert (Span(4, 3, 2, 7).start, Span(4, 3, 2, 7).end) == (7, 9)


def test_what_stands_in_a_slot() -> None:
    assert (Null().block, kept(3).block) == (NULL_BLOCK, 3)
    assert NEW.block is None
    assert Private(BlockId(3)).block is None
    assert not kept(3).optional
    assert not NEW.external
    assert Span(0, 0, 1).lookahead == 0


@pytest.mark.parametrize(
    ("span", "slots"),
    [
        (Span(0, 0, 1), 1), (Span(0, 0, 4), 1), (Span(0, 0, 5), 2), (Span(4, 4, 4), 3),
        (Span(0, 0, 4, 1), 2), (Span(0, 0, 28, 9), 8),
    ],
)  # fmt: skip
def test_attention_needs_a_slot_for_each_block_begun(span: Span, slots: int) -> None:
    assert full_slots(CONFIG, FULL, span) == slots


def test_a_state_stands_in_the_slot_of_its_last_token() -> None:
    assert [state_slot(STATES, n) for n in (1, 4, 5, 8, 9)] == [0, 0, 1, 1, 2]


@pytest.mark.parametrize(
    ("hit", "span", "slots"),
    [
        (blocks(), Span(0, 0, 5), (NEW, NEW)),
        (blocks(7), Span(4, 0, 5), (kept(7), NEW, NEW)),
        (blocks(7, 8), Span(6, 0, 3), (kept(7), Private(BlockId(8)), NEW)),
        (blocks(7), Span(4, 3, 6), (kept(7), LOADED, NEW, NEW)),
        (blocks(), Span(0, 5, 1), (LOADED, LOADED)),
        (blocks(7, 8), Span(8, 0, 0), (kept(7), kept(8))),
    ],
)
def test_attention_s_first_table(hit: Table, span: Span, slots: tuple[object, ...]) -> None:
    assert first_full(CONFIG, FULL, hit, span) == slots


@pytest.mark.parametrize(
    ("hit", "has_state", "span", "slots"),
    [
        (blocks(), False, Span(0, 0, 9), (NULL, NULL, NEW)),
        (blocks(7), True, Span(4, 0, 1), (kept(7), NEW)),
        (blocks(0, 7), True, Span(8, 0, 9), (NULL, kept(7), NULL, NULL, NEW)),
        (blocks(0, 7), True, Span(6, 0, 1), (NULL, Private(BlockId(7)))),
        (blocks(0, 7), True, Span(6, 0, 3), (NULL, Private(BlockId(7)), NEW)),
        (blocks(7), True, Span(4, 4, 0), (kept(7, True), LOADED)),
        (blocks(7), True, Span(4, 4, 2), (kept(7, True), LOADED, NEW)),
        (blocks(7), False, Span(4, 5, 3), (NULL, NULL, LOADED)),
        (blocks(), False, Span(0, 6, 0), (NULL, LOADED)),
        (blocks(0, 7), False, Span(4, 1, 0), (NULL, LOADED)),
    ],
)
def test_a_recurrent_group_s_first_table(
    hit: Table, has_state: bool, span: Span, slots: tuple[object, ...]
) -> None:
    assert first_recurrent(STATES, hit, has_state, span) == slots


def test_attention_s_next_table_has_what_it_had_and_more() -> None:
    assert next_full(CONFIG, FULL, blocks(7, 8), Span(6, 0, 3)) == (kept(7), kept(8), NEW)
    assert next_full(CONFIG, FULL, blocks(7, 8), Span(6, 0, 2)) == (kept(7), kept(8))


@pytest.mark.parametrize(
    ("table", "span", "slots"),
    [
        (blocks(7), Span(4, 0, 1), (kept(7), NEW)),
        (blocks(7), Span(3, 0, 1), (kept(7),)),
        (blocks(7, 8), Span(8, 0, 5), (NULL, kept(8), NULL, NEW)),
        (blocks(7, 0, 8), Span(9, 0, 1), (NULL, NULL, kept(8))),
        (blocks(7, 8), Span(5, 0, 1), (NULL, kept(8))),
        (blocks(7, 0), Span(4, 0, 4), (kept(7), NEW)),
    ],
)
def test_a_recurrent_group_s_next_table(
    table: Table, span: Span, slots: tuple[object, ...]
) -> None:
    assert next_recurrent(STATES, table, span) == slots


def test_states_before_the_one_that_is_needed_go_back() -> None:
    table = blocks(7, 0, 8, 9)
    assert given_back(STATES, table, 0) == ()
    assert given_back(STATES, table, 4) == ()
    assert given_back(STATES, table, 5) == (0,)
    assert given_back(STATES, table, 13) == (0, 2)
    assert given_back(STATES, table, 99) == (0, 2, 3)
    assert given_back(FULL, table, 13) == ()


def test_the_tail_that_a_chunk_would_write_over() -> None:
    table = blocks(7, 8)
    assert moved_tail(STATES, table, Span(5, 0, 1)) == 8
    assert moved_tail(STATES, table, Span(5, 0, 3)) == 8
    assert moved_tail(STATES, table, Span(5, 0, 4)) is None
    assert moved_tail(STATES, table, Span(4, 0, 1)) is None
    assert moved_tail(STATES, table, Span(1, 0, 1)) == 7
    assert moved_tail(STATES, table, Span(0, 0, 1)) is None
    assert moved_tail(STATES, table, Span(5, 0, 0)) is None
    assert moved_tail(STATES, table, Span(9, 0, 1)) is None
    assert moved_tail(FULL, table, Span(5, 0, 1)) is None


def test_what_tables_take_from_the_pool() -> None:
    assert num_fresh([(NULL, kept(7), NEW), (LOADED, Private(BlockId(8)))]) == 3
    assert num_fresh([(), (NULL,)]) == 0
