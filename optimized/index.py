"""The prefix cache's index: which block is found under a digest, and each block's own key.

Several blocks may have the same key, since equal prompts may be computed side by side. They form a
ring in two flat lists, oldest first; a dict leads to the oldest. Nearly every ring has one member,
so a copy costs no object and any of them leaves in O(1).
"""

from __future__ import annotations

from typing import Final

from kvspec.spec.types import Digest

NO_DIGEST: Final = Digest(b"")


class Index:
    """Keys of blocks. A block has at most one; its key's group and digest lead to it.

    Find:   `oldest` (a dict per group; `get(digest)` is the whole lookup), `copies`
    Add:    `publish`, `publish_run`
    Drop:   `unpublish`, `clear`
    Ask:    `length_of` (0: no key), `group_of`, `digest_of`
    Prove:  `check`
    """

    __slots__ = ("digest_of", "group_of", "length_of", "newer", "older", "oldest")

    def __init__(self, num_blocks: int, num_groups: int) -> None:
        """No keys. O(num_blocks)."""
        self.oldest: list[dict[Digest, int]] = [{} for _ in range(num_groups)]
        self.digest_of: list[Digest] = [NO_DIGEST] * num_blocks
        self.group_of: list[int] = [0] * num_blocks
        self.length_of: list[int] = [0] * num_blocks
        self.newer: list[int] = [0] * num_blocks
        self.older: list[int] = [0] * num_blocks

    def publish(self, block: int, group: int, digest: Digest, length: int) -> None:
        """Key a block at `length` tokens, as the newest copy; a key it had gives way. O(1).

        >>> index = Index(4, 1)
        >>> for block in (3, 1, 3): index.publish(block, 0, Digest(b"x"), 8)
        >>> index.copies(0, Digest(b"x")), index.length_of[3]
        ([1, 3], 8)
        """
        assert block > 0, "the null block is never keyed"
        assert length > 0, "nothing is keyed before the first token"
        if self.length_of[block]:
            self.unpublish(block)
        found = self.oldest[group]
        head = found.setdefault(digest, block)
        if head == block:
            self.newer[block] = self.older[block] = block
        else:
            tail = self.older[head]
            self.newer[tail] = self.older[head] = block
            self.older[block], self.newer[block] = tail, head
        self.digest_of[block] = digest
        self.group_of[block] = group
        self.length_of[block] = length

    def publish_run(
        self, blocks: list[int], group: int, digests: list[Digest], length: int, size: int
    ) -> None:
        """Key blocks one after another: the first at `length` tokens, each next `size` more. O(n).

        >>> index = Index(4, 1)
        >>> index.publish_run([2, 3], 0, [Digest(b"x"), Digest(b"y")], 8, 4)
        >>> index.oldest[0], index.length_of
        ({b'x': 2, b'y': 3}, [0, 0, 8, 12])
        """
        assert len(blocks) == len(digests)
        for block, digest in zip(blocks, digests, strict=True):
            self.publish(block, group, digest, length)
            length += size

    def unpublish(self, block: int) -> None:
        """Drop a block's key, if it has one. O(1).

        >>> index = Index(4, 1)
        >>> for block in (3, 1): index.publish(block, 0, Digest(b"x"), 8)
        >>> index.unpublish(3)
        >>> index.oldest[0], index.length_of[3]
        ({b'x': 1}, 0)
        """
        if not self.length_of[block]:
            return
        digest, found = self.digest_of[block], self.oldest[self.group_of[block]]
        following = self.newer[block]
        if following == block:
            assert found[digest] == block
            del found[digest]
        else:
            preceding = self.older[block]
            self.newer[preceding] = following
            self.older[following] = preceding
            if found[digest] == block:
                found[digest] = following
        self.length_of[block] = self.newer[block] = self.older[block] = 0
        self.digest_of[block] = NO_DIGEST

    def clear(self) -> None:
        """Drop every key. O(number of keys).

        >>> index = Index(4, 1)
        >>> index.publish(3, 0, Digest(b"x"), 8)
        >>> index.clear()
        >>> index.oldest, index.length_of
        ([{}], [0, 0, 0, 0])
        """
        for found in self.oldest:
            for block in list(found.values()):
                while self.length_of[block]:
                    following = self.newer[block]
                    self.unpublish(block)
                    block = following
            assert not found

    def copies(self, group: int, digest: Digest) -> list[int]:
        """The blocks of one key, the one keyed longest first. O(copies)."""
        head = self.oldest[group].get(digest, 0)
        found = [head] if head else []
        block = self.newer[head]
        while block != head:
            found.append(block)
            block = self.newer[block]
        return found

    def check(self) -> None:
        """Raise AssertionError, with every field, unless the representation is sound."""
        try:
            self._check()
        except (AssertionError, KeyError) as error:
            fields = " ".join(f"{name}={getattr(self, name)!r}" for name in sorted(Index.__slots__))
            raise AssertionError(f"index: {error!r}; {fields}") from error

    def _check(self) -> None:
        keyed: set[int] = set()
        for group, found in enumerate(self.oldest):
            for digest in found:
                ring = self.copies(group, digest)
                for block, following in zip(ring, [*ring[1:], ring[0]], strict=True):
                    # A member of a ring has the ring's key. O(keys)
                    assert self.digest_of[block] == digest, f"block {block} has another digest"
                    assert self.group_of[block] == group, f"block {block} is of another group"
                    assert self.length_of[block] > 0, f"block {block} has no length"
                    # The ring closes both ways. O(keys)
                    assert self.older[following] == block, f"block {following} looks elsewhere"
                    # No block is in two rings, nor twice in one. O(keys)
                    assert block not in keyed, f"block {block} is in two places"
                    keyed.add(block)
        # The null block has no key, and a block in no ring says that it has none. O(num_blocks)
        assert 0 not in keyed, "the null block is keyed"
        for block in set(range(len(self.length_of))) - keyed:
            assert self.length_of[block] == 0, f"block {block} is keyed but not found"
            assert self.digest_of[block] == NO_DIGEST, f"block {block} keeps a digest"
            assert self.newer[block] == self.older[block] == 0, f"block {block} keeps links"
