"""The chunk rule: what must hold of every chunk."""

from __future__ import annotations

import pytest
from hypothesis import given

from kvspec.generators import chunk_questions
from kvspec.spec.chunks import block_fits_no_step, chunk_length, free_from, last_cacheable_end
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
