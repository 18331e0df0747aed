"""Symbolic content against one dictionary entry per position."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kvspec.spec.content import (
    POISON,
    ZERO,
    Base,
    Content,
    RecurrentState,
    Rows,
    Run,
    describe,
    first_foreign,
    holds_state,
    write_rows,
)
from kvspec.spec.digests import Prefix, make_prefix
from kvspec.spec.types import Identity, Token

PREFIXES = st.lists(st.integers(0, 1).map(Token), min_size=8, max_size=8).map(
    lambda tokens: make_prefix(Identity(), tuple(tokens), 2)
)
WRITES = st.lists(st.tuples(st.integers(0, 7), st.integers(1, 8), st.none() | PREFIXES), max_size=8)


@given(WRITES, PREFIXES, st.integers(0, 8), st.integers(0, 8))
def test_reads_find_what_was_written(
    writes: list[tuple[int, int, Prefix | None]], reader: Prefix, start: int, end: int
) -> None:
    content: Content = POISON
    plain: dict[int, object] = {}
    for first, count, prefix in writes:
        last = min(first + count, 8)
        content = write_rows(content, first, last, prefix)
        for position in range(first, last):
            plain[position] = prefix.tag(position + 1) if prefix else "draft"
    foreign = [p for p in range(start, end) if plain.get(p) != reader.tag(p + 1)]
    found = first_foreign(content, reader, start, end)
    assert (found is None) == (not foreign)
    if found is not None:
        assert found <= foreign[0]


@given(PREFIXES, PREFIXES, st.integers(1, 8), st.integers(1, 8))
def test_a_state_is_at_exactly_one_length(
    writer: Prefix, reader: Prefix, written: int, read: int
) -> None:
    same = written == read and writer.tokens[:written] == reader.tokens[:read]
    assert holds_state(RecurrentState(writer, written), reader, read) == same
    assert first_foreign(RecurrentState(writer, written), reader, 0, 1) == 0
    assert not holds_state(POISON, reader, read)


# --- worked values --------------------------------------------------------------------------------

MINE = make_prefix(Identity(), tuple(Token(n) for n in range(8)), 2)
ALIKE = make_prefix(Identity(), (*MINE.tokens[:4], Token(9)), 2)
OTHER = make_prefix(Identity(salt="s"), MINE.tokens, 2)


def test_poison_and_zeroes_lie_where_nothing_was_written() -> None:
    assert (Rows(Base.POISON), Rows(Base.ZERO)) == (POISON, ZERO)
    assert (describe(POISON), describe(ZERO)) == ("poison", "zero")
    assert write_rows(ZERO, 1, 3, MINE) == Rows(Base.ZERO, (Run(1, 3, MINE),))
    state = RecurrentState(MINE, 4)
    assert write_rows(state, 1, 3, MINE) == Rows(Base.POISON, (Run(1, 3, MINE),))


def test_what_was_written_before_is_cut_and_goes_on_where_it_agrees() -> None:
    rows = write_rows(POISON, 0, 8, OTHER)
    rows = write_rows(rows, 2, 5, MINE)
    assert rows.runs == (Run(0, 2, OTHER), Run(2, 5, MINE), Run(5, 8, OTHER))
    assert write_rows(rows, 5, 8, MINE).runs == (Run(0, 2, OTHER), Run(2, 8, MINE))
    assert write_rows(rows, 0, 8, None).runs == (Run(0, 8, None),)
    rows = write_rows(write_rows(POISON, 0, 4, ALIKE), 4, 6, MINE)
    assert rows.runs == (Run(0, 6, MINE),)
    rows = write_rows(write_rows(POISON, 0, 5, ALIKE), 5, 6, MINE)
    assert rows.runs == (Run(0, 5, ALIKE), Run(5, 6, MINE))
    rows = write_rows(write_rows(POISON, 0, 3, MINE), 4, 6, MINE)
    assert rows.runs == (Run(0, 3, MINE), Run(4, 6, MINE))
    rows = write_rows(write_rows(POISON, 0, 3, None), 3, 6, None)
    assert rows.runs == (Run(0, 3, None), Run(3, 6, None))


def test_the_first_position_that_is_another_s() -> None:
    rows = Rows(Base.ZERO, (Run(1, 3, MINE), Run(3, 4, None), Run(4, 5, ALIKE), Run(6, 8, OTHER)))
    for start, end, found in (
        (1, 3, None), (2, 3, None), (0, 2, 0), (1, 4, 3), (3, 4, 3), (4, 5, 4), (5, 6, 5),
        (6, 7, 6), (8, 9, 8), (3, 3, None), (4, 2, None),
    ):  # fmt: skip
        assert first_foreign(rows, MINE, start, end) == found
    rows = Rows(Base.POISON, (Run(0, 2, MINE), Run(2, 4, ALIKE)))
    assert first_foreign(rows, MINE, 0, 4) is None
    assert first_foreign(rows, MINE, 0, 5) == 4
    rows = Rows(Base.POISON, (Run(0, 2, OTHER), Run(2, 4, MINE)))
    assert first_foreign(rows, MINE, 2, 4) is None
    assert first_foreign(RecurrentState(MINE, 4), MINE, 2, 4) == 2
    assert first_foreign(RecurrentState(MINE, 4), MINE, 2, 2) is None


def test_a_state_is_its_prefix_s_at_its_length() -> None:
    state = RecurrentState(MINE, 4)
    assert holds_state(state, ALIKE, 4)
    assert not holds_state(state, OTHER, 4)
    assert not holds_state(state, MINE, 5)
    assert not holds_state(Rows(Base.ZERO, (Run(0, 4, MINE),)), MINE, 4)
