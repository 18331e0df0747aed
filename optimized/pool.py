"""The block pool: how many hold each block, over the free list and the index."""

from __future__ import annotations

from .free_list import FreeList
from .index import Index


class Pool:
    """Blocks 1..num_blocks-1 and their holders.

    Take:  `take_many`
    Hold:  `hold_many`
    Drop:  `drop_many`
    Ask:   `refs`, `free`, `index`, `unheld`, `idle`
    Prove: `check`
    """

    __slots__ = ("free", "index", "refs")

    def __init__(self, num_blocks: int, num_groups: int) -> None:
        """Nothing held, nothing keyed. O(num_blocks)."""
        self.refs: list[int] = [0] * num_blocks
        self.free = FreeList(num_blocks)
        self.index = Index(num_blocks, num_groups)

    @property
    def idle(self) -> bool:
        """Whether nobody holds any block. O(1)."""
        return self.free.count == len(self.refs) - 1

    def take_many(self, count: int) -> list[int]:
        """Take the next free blocks; they lose their keys and have one holder. O(count).

        >>> pool = Pool(4, 1)
        >>> pool.take_many(2), pool.refs
        ([1, 2], [0, 1, 1, 0])
        """
        blocks = self.free.take_many(count)
        refs, length_of = self.refs, self.index.length_of
        keyed: list[int] = []
        for block in blocks:
            assert refs[block] == 0, f"free block {block} is held"
            refs[block] = 1
            if length_of[block]:
                keyed.append(block)
        if keyed:
            self.index.unpublish_many(keyed)
        return blocks

    def hold_many(self, blocks: list[int]) -> None:
        """Add a holder to each; a block without one leaves the free list. O(len(blocks)).

        No block may stand there twice, and null blocks are passed over.

        >>> pool = Pool(4, 1)
        >>> pool.hold_many([2]); pool.hold_many([3, 2])
        >>> pool.refs, list(pool.free)
        ([0, 0, 2, 1], [1])
        """
        self.free.remove_many(self.unheld(blocks))
        refs = self.refs
        for block in blocks:
            if block:
                refs[block] += 1

    def drop_many(self, blocks: list[int]) -> None:
        """Remove one holder of each, in this order. O(len(blocks)).

        A block without holders is free again: at the back when it is keyed, since it may be hit
        again, else at the front. The two ends do not disturb each other.

        >>> pool = Pool(4, 1)
        >>> pool.drop_many(pool.take_many(2))
        >>> pool.refs, list(pool.free)
        ([0, 0, 0, 0], [2, 1, 3])
        """
        refs, length_of = self.refs, self.index.length_of
        keyed: list[int] = []
        bare: list[int] = []
        for block in blocks:
            left = refs[block] - 1
            refs[block] = left
            if left:
                assert left > 0, f"block {block} has no holder to lose"
            elif length_of[block]:
                keyed.append(block)
            else:
                bare.append(block)
        if bare:
            self.free.push_front_many(bare)
        if keyed:
            self.free.push_back_many(keyed)

    def unheld(self, blocks: list[int]) -> list[int]:
        """Those of the blocks that are free; null blocks are passed over. O(len(blocks)).

        >>> pool = Pool(4, 1)
        >>> pool.hold_many([1])
        >>> pool.unheld([0, 1, 3])
        [3]
        """
        refs = self.refs
        return [block for block in blocks if block and not refs[block]]

    def check(self) -> None:
        """Raise AssertionError, with every field, unless the representation is sound."""
        self.free.check()
        self.index.check()
        for block, count in enumerate(self.refs):
            # A block is free if and only if nobody holds it and it is not null. O(num_blocks)
            free = block in self.free
            sound = count >= 0 and free == (count == 0 and block != 0)
            assert sound, f"pool: block {block}; refs={self.refs} free={list(self.free)}"
        # The null block has no holder. O(1)
        assert self.refs[0] == 0, f"pool: the null block is held; refs={self.refs}"
