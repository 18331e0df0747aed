"""The block pool: reference counts, the free list and the prefix cache's index."""

from __future__ import annotations

from collections.abc import Iterable

from kvspec.spec.types import NULL_BLOCK, BlockId, Digest, GroupId

Key = tuple[GroupId, Digest]


class Pool:
    """Blocks 1..num_blocks-1. The free list is taken from the front.

    A freed block goes to the back when it is keyed (it may be hit again), else to the front.
    """

    def __init__(self, num_blocks: int) -> None:
        self.free_list = [BlockId(block) for block in range(1, num_blocks)]
        self.refs = [0] * num_blocks
        self.keys: dict[BlockId, tuple[Key, int]] = {}
        self.index: dict[Key, list[BlockId]] = {}

    def take(self) -> BlockId:
        """Take the next free block; it loses its key and has one holder."""
        block = self.free_list.pop(0)
        assert self.refs[block] == 0, f"free block {block} is held"
        self.unpublish(block)
        self.refs[block] = 1
        return block

    def hold(self, block: BlockId) -> None:
        """Add a holder; a block without one leaves the free list."""
        assert block != NULL_BLOCK
        if self.refs[block] == 0:
            self.free_list.remove(block)
        self.refs[block] += 1

    def drop(self, blocks: Iterable[BlockId]) -> None:
        """Remove one holder of each, in this order; null blocks are passed over."""
        for block in blocks:
            if block == NULL_BLOCK:
                continue
            assert self.refs[block] > 0, f"block {block} has no holder to lose"
            self.refs[block] -= 1
            if self.refs[block] == 0:
                if block in self.keys:
                    self.free_list.append(block)
                else:
                    self.free_list.insert(0, block)

    def find(self, key: Key) -> BlockId | None:
        """The block that has been keyed longest under a key."""
        return self.index[key][0] if key in self.index else None

    def publish(self, block: BlockId, key: Key, length: int) -> None:
        """Key a block at `length` tokens; a key that it had gives way."""
        assert block != NULL_BLOCK
        self.unpublish(block)
        self.keys[block] = key, length
        self.index.setdefault(key, []).append(block)

    def unpublish(self, block: BlockId) -> None:
        """Drop a block's key, if it has one."""
        if block in self.keys:
            key, _ = self.keys.pop(block)
            self.index[key].remove(block)
            if not self.index[key]:
                del self.index[key]
