"""Which blocks a grant keys, and which keys go when a chunk never runs (design 4.3)."""

from __future__ import annotations

from .index import Index
from .layout import Layout
from .requests import Request


def register(layout: Layout, index: Index, r: Request, start: int, end: int) -> None:
    """Key what a chunk [start, end) completes, known tokens only. O(groups + blocks keyed).

    Every length that can be keyed is a multiple of the hash unit: a chunk that passes none leaves
    at once.
    """
    end = min(end, r.chain.count)
    done = r.registered
    assert done < end, "a chunk completes what no chunk before it did"
    r.registered = end
    unit = layout.hash_unit
    if done // unit == end // unit:
        return
    for g in range(layout.num_groups):
        if layout.recurrent[g]:
            _register_states(layout, index, r, g, done, start, end)
        else:
            _register_full(layout, index, r, g, done, end)


def _register_full(layout: Layout, index: Index, r: Request, g: int, done: int, end: int) -> None:
    """Complete blocks, then the prompt's last hash boundary where the tokens end in its block."""
    size, units, digests = layout.sizes[g], layout.units[g], r.chain.digests
    first, last = done // size, end // size
    table = r.tables[g]
    if last > first:
        run = digests[(first + 1) * units : last * units + 1 : units]
        index.publish_run(table[first:last], g, run, (first + 1) * size, size)
    tail = r.tail
    if done < tail <= end and tail % size and tail // size == last:
        index.publish(table[last], g, digests[tail // layout.hash_unit], tail)


def _register_states(
    layout: Layout, index: Index, r: Request, g: int, done: int, start: int, end: int
) -> None:
    """There are states where the chunk starts and where it ends, and nowhere between."""
    size = layout.sizes[g]
    if done < start and start % size == 0:
        _publish_state(layout, index, r, g, start)
    if end % size == 0 or end == r.tail:
        _publish_state(layout, index, r, g, end)


def _publish_state(layout: Layout, index: Index, r: Request, g: int, length: int) -> None:
    block = r.tables[g][(length - 1) // layout.sizes[g]]
    index.publish(block, g, r.chain.digests[length // layout.hash_unit], length)


def retract(layout: Layout, index: Index, r: Request) -> None:
    """The chunk granted last will not run: no key may promise what it would write. O(chunk).

    A key of a block in slot i promises at most (i + 1) blocks, so the slots before the one that
    holds the last computed token need not be looked at.
    """
    for g, table in enumerate(r.tables):
        beyond = table[r.computed // layout.sizes[g] :]
        index.unpublish_many([block for block in beyond if index.length_of[block] > r.computed])
