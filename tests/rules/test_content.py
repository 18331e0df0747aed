"""Symbolic content against one dictionary entry per position."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kvspec.spec.content import (
    POISON,
    Content,
    RecurrentState,
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
