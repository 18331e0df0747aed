"""Where a prefill chunk may end (design 4.10), as plain arithmetic on ints. All in tokens."""

from __future__ import annotations


def chunk_end(start: int, wanted: int, settled: int, size: int, largest: int) -> int:
    """Where the chunk ends before any stop is looked at. O(1).

    From `settled` on nothing is clipped. Before it the end goes down to the block grid, unless a
    block is more than the `largest` step and that would stand still.

    >>> chunk_end(0, 10, 100, 8, 10), chunk_end(0, 6, 100, 8, 10), chunk_end(0, 6, 100, 8, 6)
    (8, 0, 6)
    """
    end = start + wanted
    if end >= settled:
        return end
    aligned = end // size * size
    if aligned > start:
        return aligned
    return end if size > largest else start


def stop_at(stop: int, start: int, end: int) -> int:
    """The chunk's end with one more stop: it counts only strictly inside. O(1).

    >>> stop_at(8, 0, 10), stop_at(0, 0, 10), stop_at(10, 0, 10), stop_at(12, 0, 10)
    (8, 10, 10, 10)
    """
    return stop if start < stop < end else end


def chunk_tokens(
    start: int,
    wanted: int,
    num_prompt_tokens: int,
    num_tokens: int,
    block_size: int,
    hash_unit: int,
    budget: int,
    cap: int,
    fine: bool,
    eagle: bool,
    boundary: int,
) -> int:
    """How many tokens the chunk computes; 0 waits for a step with room for a block. O(1).

    >>> chunk_tokens(8192, 1808, 10000, 10000, 512, 32, 8192, 0, True, False, 0)
    1536
    >>> chunk_tokens(9984, 1000, 12000, 12000, 512, 32, 8192, 0, True, False, 0)
    256
    """
    settled = max(num_prompt_tokens, num_tokens - 1)
    if start >= settled:
        return wanted
    largest = min(budget, cap) if cap else budget
    end = chunk_end(start, wanted, settled, block_size, largest)
    cacheable = num_tokens // block_size * block_size - (block_size if eagle else 0)
    tail = num_prompt_tokens // hash_unit * hash_unit
    end = stop_at(cacheable, start, end)
    if start % block_size:
        end = stop_at((start // block_size + 1) * block_size, start, end)
    if fine and cacheable < tail < num_prompt_tokens:
        end = stop_at(tail, start, end)
    end = stop_at(boundary // block_size * block_size, start, end)
    assert start <= end <= start + wanted
    return end - start
