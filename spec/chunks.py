"""Where a prefill chunk may end (design 4.10): pure arithmetic, all lengths in tokens."""

from __future__ import annotations

from .events import Chunk
from .types import align_down


def free_from(chunk: Chunk) -> int:
    """From this start on nothing is clipped: the prompt is done, or one token is left."""
    return max(chunk.num_prompt_tokens, chunk.num_tokens - 1)


def block_fits_no_step(chunk: Chunk) -> bool:
    """Whether a whole block is more than any step may compute."""
    return chunk.block_size > chunk.budget or 0 < chunk.cap < chunk.block_size


def last_cacheable_end(chunk: Chunk) -> int:
    """The last block end that can be cached; one block earlier with eagle."""
    end = align_down(chunk.num_tokens, chunk.block_size)
    return max(end - chunk.block_size, 0) if chunk.eagle else end


def stops(chunk: Chunk) -> list[int]:
    """Every place where a chunk that starts here should stop, in no order."""
    size, found = chunk.block_size, [last_cacheable_end(chunk)]
    if chunk.start % size:
        found.append(align_down(chunk.start, size) + size)
    tail = align_down(chunk.num_prompt_tokens, chunk.hash_unit)
    if chunk.fine and last_cacheable_end(chunk) < tail < chunk.num_prompt_tokens:
        found.append(tail)
    found.append(align_down(chunk.boundary, size))
    return found


def aligned_end(chunk: Chunk) -> int:
    """The chunk's end before stops: on the block grid unless it reaches the end or cannot be."""
    end = chunk.start + chunk.wanted
    if end >= free_from(chunk):
        return end
    aligned = align_down(end, chunk.block_size)
    if aligned <= chunk.start and block_fits_no_step(chunk):
        return end
    return max(aligned, chunk.start)


def chunk_length(chunk: Chunk) -> int:
    """How many tokens the chunk computes. 0: wait for a step that has room for a block.

    The worked rows of the table in design 4.10:

    >>> chunk_length(Chunk(0, 8192, 10000, 10000, 512, 32, 8192, fine=True))
    8192
    >>> chunk_length(Chunk(9728, 272, 10000, 10000, 512, 32, 8192, fine=True))
    256
    >>> chunk_length(Chunk(0, 8192, 30000, 30000, 11392, 32, 11392))
    0
    """
    if chunk.start >= free_from(chunk):
        return chunk.wanted
    end = aligned_end(chunk)
    inside = [stop for stop in stops(chunk) if chunk.start < stop < end]
    return min(inside, default=end) - chunk.start
