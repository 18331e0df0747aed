"""The chunk rule: what must hold of every chunk."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

from kvspec.generators import chunk_questions
from kvspec.spec.chunks import (
    aligned_end,
    block_fits_no_step,
    chunk_length,
    free_from,
    last_cacheable_end,
    stops,
)
from kvspec.spec.events import Chunk


@given(chunk_questions())
def test_never_more_than_wanted(chunk: Chunk) -> None:
    assert 0 <= chunk_length(chunk) <= chunk.wanted


@pytest.mark.clause("CHUNK.ADVANCE")
@given(chunk_questions())
def test_waits_only_for_a_step_with_room(chunk: Chunk) -> None:
    """No tokens only where a block would fit a fresh step but not what is left of this one."""
    if chunk_length(chunk) == 0:
        assert not block_fits_no_step(chunk)
        assert chunk.start < free_from(chunk)
        to_next_end = chunk.block_size - chunk.start % chunk.block_size
        assert chunk.wanted < to_next_end


@pytest.mark.clause("CHUNK.END")
@given(chunk_questions())
def test_ends_where_a_state_can_be_named(chunk: Chunk) -> None:
    length = chunk_length(chunk)
    end = chunk.start + length
    if not length or chunk.start >= free_from(chunk) or end >= free_from(chunk):
        return
    tail = chunk.num_prompt_tokens - chunk.num_prompt_tokens % chunk.hash_unit
    on_grid = end % chunk.block_size == 0
    assert on_grid or (chunk.fine and end == tail) or block_fits_no_step(chunk)


@given(chunk_questions())
def test_does_not_run_past_the_last_cacheable_end(chunk: Chunk) -> None:
    last = last_cacheable_end(chunk)
    if chunk.start < last and chunk.start < free_from(chunk):
        assert chunk.start + chunk_length(chunk) <= last


@given(chunk_questions())
def test_a_chunk_from_inside_a_block_ends_with_it_at_the_latest(chunk: Chunk) -> None:
    if chunk.start % chunk.block_size and chunk.start < free_from(chunk):
        next_end = chunk.start - chunk.start % chunk.block_size + chunk.block_size
        assert chunk.start + chunk_length(chunk) <= next_end


def test_nothing_is_clipped_behind_the_prompt_nor_before_the_last_token() -> None:
    assert free_from(Chunk(0, 1, 10, 10, 4, 2, 99)) == 10
    assert free_from(Chunk(0, 1, 10, 12, 4, 2, 99)) == 11


@pytest.mark.parametrize(
    ("budget", "cap", "fits_none"),
    [(8, 0, False), (7, 0, True), (8, 7, True), (8, 8, False), (8, 1, True), (7, 8, True)],
)
def test_a_block_of_8_fits_a_step_or_none(budget: int, cap: int, fits_none: bool) -> None:
    assert block_fits_no_step(Chunk(0, 1, 99, 99, 8, 2, budget, cap)) == fits_none


def test_the_last_end_that_can_be_cached() -> None:
    for tokens, end, eagle_end in ((11, 8, 4), (8, 8, 4), (3, 0, 0)):
        chunk = Chunk(0, 1, tokens, tokens, 4, 2, 99)
        assert last_cacheable_end(chunk) == end
        assert last_cacheable_end(replace(chunk, eagle=True)) == eagle_end


@pytest.mark.parametrize(
    ("chunk", "found"),
    [
        (Chunk(4, 1, 11, 11, 4, 2, 99), [8, 0]),
        (Chunk(5, 1, 11, 11, 4, 2, 99), [8, 8, 0]),
        (Chunk(4, 1, 11, 11, 4, 2, 99, fine=True), [8, 10, 0]),
        (Chunk(4, 1, 10, 10, 4, 2, 99, fine=True), [8, 0]),
        (Chunk(4, 1, 9, 13, 4, 2, 99, fine=True), [12, 0]),
        (Chunk(4, 1, 9, 9, 4, 2, 99, fine=True), [8, 0]),
        (Chunk(4, 1, 11, 11, 4, 2, 99, boundary=10), [8, 8]),
    ],
)
def test_where_a_chunk_should_stop(chunk: Chunk, found: list[int]) -> None:
    assert stops(chunk) == found


@pytest.mark.parametrize(
    ("chunk", "end"),
    [
        (Chunk(0, 7, 20, 20, 4, 2, 99), 4),
        (Chunk(0, 8, 20, 20, 4, 2, 99), 8),
        (Chunk(4, 3, 20, 20, 4, 2, 99), 4),
        (Chunk(4, 3, 20, 20, 4, 2, 3), 7),
        (Chunk(4, 5, 20, 20, 4, 2, 3), 8),
        (Chunk(5, 2, 20, 20, 4, 2, 99), 5),
        (Chunk(13, 7, 20, 20, 4, 2, 99), 20),
        (Chunk(13, 6, 20, 20, 4, 2, 99), 16),
        (Chunk(13, 6, 18, 20, 4, 2, 99), 19),
        (Chunk(13, 5, 18, 18, 4, 2, 99), 18),
    ],
)
def test_where_a_chunk_ends_before_stops(chunk: Chunk, end: int) -> None:
    assert aligned_end(chunk) == end


@pytest.mark.parametrize(
    ("chunk", "length"),
    [
        (Chunk(4, 16, 30, 30, 4, 2, 99, boundary=8), 4),
        (Chunk(4, 16, 30, 30, 4, 2, 99, boundary=4), 16),
        (Chunk(4, 16, 30, 30, 4, 2, 99, boundary=20), 16),
        (Chunk(4, 16, 30, 30, 4, 2, 99, boundary=24), 16),
        (Chunk(10, 1, 10, 11, 4, 2, 99), 1),
        (Chunk(4, 2, 30, 30, 4, 2, 99), 0),
    ],
)
def test_a_chunk_stops_at_the_first_place_strictly_inside(chunk: Chunk, length: int) -> None:
    assert chunk_length(chunk) == length
