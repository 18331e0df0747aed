"""The free list: a doubly linked list in two flat lists of ints.

Block 0 is the null block, which is never free; its two links are the ends of the list. So nothing
is special about an empty list or its ends, and no object is made per block.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

OUT: Final = -1
"""The link of a block that is not in the list."""


class FreeList:
    """Blocks that nobody holds, next to be taken first.

    Take:  `take_many`
    Add:   `push_front_many`, `push_back_many`
    Leave: `remove_many`
    Ask:   `count`, `in`, iteration
    Prove: `check`
    """

    __slots__ = ("after", "before", "count")

    def __init__(self, num_blocks: int) -> None:
        """All blocks but the null block, in order. O(num_blocks).

        >>> list(FreeList(4))
        [1, 2, 3]
        """
        self.after: list[int] = [*range(1, num_blocks), 0]
        self.before: list[int] = [num_blocks - 1, *range(num_blocks - 1)]
        self.count: int = num_blocks - 1

    def take_many(self, count: int) -> list[int]:
        """Take the first `count` blocks. O(count).

        >>> free = FreeList(4)
        >>> free.take_many(2), list(free)
        ([1, 2], [3])
        """
        assert 0 <= count <= self.count, f"{count} wanted, {self.count} free"
        after, before = self.after, self.before
        taken: list[int] = []
        block = after[0]
        for _ in range(count):
            taken.append(block)
            following = after[block]
            after[block] = before[block] = OUT
            block = following
        after[0] = block
        before[block] = 0
        self.count -= count
        assert (block == 0) == (self.count == 0)
        return taken

    def push_front_many(self, blocks: list[int]) -> None:
        """Put blocks at the front one by one: the last is taken next. O(len(blocks)).

        >>> free = FreeList(4)
        >>> free.push_front_many(free.take_many(2))
        >>> list(free)
        [2, 1, 3]
        """
        after, before = self.after, self.before
        first = after[0]
        for block in blocks:
            assert after[block] == OUT, f"block {block} is free already, or null"
            after[block] = first
            before[first] = block
            first = block
        after[0] = first
        before[first] = 0
        self.count += len(blocks)

    def push_back_many(self, blocks: list[int]) -> None:
        """Put blocks at the back one by one: the last is taken last. O(len(blocks)).

        >>> free = FreeList(4)
        >>> free.push_back_many(free.take_many(2))
        >>> list(free)
        [3, 1, 2]
        """
        after, before = self.after, self.before
        last = before[0]
        for block in blocks:
            assert after[block] == OUT, f"block {block} is free already, or null"
            before[block] = last
            after[last] = block
            # Linked on as we go, so that a block named twice is caught above.
            after[block] = 0
            last = block
        before[0] = last
        self.count += len(blocks)

    def remove_many(self, blocks: list[int]) -> None:
        """Take blocks out, wherever they stand. O(len(blocks)).

        >>> free = FreeList(5)
        >>> free.remove_many([3, 2])
        >>> list(free)
        [1, 4]
        """
        after, before = self.after, self.before
        for block in blocks:
            following, preceding = after[block], before[block]
            assert block > 0, "the null block is never free"
            assert following != OUT, f"block {block} is not free"
            after[preceding] = following
            before[following] = preceding
            after[block] = before[block] = OUT
        self.count -= len(blocks)
        assert self.count >= 0

    def __contains__(self, block: int) -> bool:
        """Whether a block is free. O(1)."""
        return block != 0 and self.after[block] != OUT

    def __iter__(self) -> Iterator[int]:
        """The free blocks, next to be taken first. O(count)."""
        block = self.after[0]
        while block:
            yield block
            block = self.after[block]

    def check(self) -> None:
        """Raise AssertionError, with every field, unless the representation is sound."""
        try:
            self._check()
        except (AssertionError, IndexError) as error:
            fields = f"after={self.after} before={self.before} count={self.count}"
            raise AssertionError(f"free list: {error}; {fields}") from error

    def _check(self) -> None:
        # One link each way per block. O(1)
        assert len(self.after) == len(self.before), "the links differ in number"
        # Walking forward meets `count` different blocks and ends at the sentinel. O(count)
        seen: list[int] = []
        block = self.after[0]
        while block:
            assert block != OUT, f"{seen[-1:]} is followed by a block that is out"
            seen.append(block)
            assert len(seen) < len(self.after), "the list goes round in circles"
            block = self.after[block]
        assert len(seen) == self.count, f"{len(seen)} blocks are linked"
        # Each block's back link is the block before it, the sentinel's the last. O(count)
        for preceding, current in zip([0, *seen], [*seen, 0], strict=True):
            assert self.before[current] == preceding, f"the back link of block {current}"
        # Whatever was not met is marked as out in both links. O(num_blocks)
        for block in set(range(1, len(self.after))) - set(seen):
            assert self.after[block] == self.before[block] == OUT, f"block {block} is half out"
