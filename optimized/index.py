"""The prefix cache's index: which block is found under a digest, and each block's own key.

Several blocks may have the same key, since equal prompts may be computed side by side. They form a
ring in two flat lists, oldest first; a dict leads to the oldest. Nearly every key has one block,
which has no links, so that a copy costs no object and any of them leaves in O(1).
"""

from __future__ import annotations

from typing import Final

from kvspec.spec.types import Digest

NO_DIGEST: Final = Digest(b"")
FIELDS: Final = ("digest_of", "group_of", "length_of", "newer", "older", "oldest")


class Index:
    """Keys of blocks. A block has at most one; its key's group and digest lead to it.

    Find:   `oldest` (a dict per group; `get(digest)` is the whole lookup), `copies`
    Add:    `publish`, `publish_run`
    Drop:   `unpublish_many`, `clear`
    Ask:    `length_of` (0: no key), `group_of`, `digest_of` (of keyed blocks)
    Prove:  `check`
    """

    __slots__ = FIELDS

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
        self.publish_run([block], group, [digest], length, 0)

    def publish_run(
        self, blocks: list[int], group: int, digests: list[Digest], length: int, size: int
    ) -> None:
        """Key blocks one after another: the first at `length` tokens, each next `size` more. O(n).

        >>> index = Index(4, 1)
        >>> index.publish_run([2, 3], 0, [Digest(b"x"), Digest(b"y")], 8, 4)
        >>> index.oldest[0], index.length_of
        ({b'x': 2, b'y': 3}, [0, 0, 8, 12])
        """
        assert length > 0, "nothing is keyed before the first token"
        found, length_of = self.oldest[group], self.length_of
        digest_of, group_of = self.digest_of, self.group_of
        for block, digest in zip(blocks, digests, strict=True):
            assert block > 0, "the null block is never keyed"
            if length_of[block]:
                self.unpublish_many([block])
            head = found.setdefault(digest, block)
            if head != block:
                self._append_copy(head, block)
            digest_of[block] = digest
            group_of[block] = group
            length_of[block] = length
            length += size

    def _append_copy(self, head: int, block: int) -> None:
        """Link a block behind the newest copy of a key."""
        assert not self.newer[block]
        tail = self.older[head] or head
        self.newer[tail] = self.older[head] = block
        self.older[block], self.newer[block] = tail, head

    def unpublish_many(self, blocks: list[int]) -> None:
        """Drop the keys of blocks, if they have any. O(len(blocks)).

        >>> index = Index(4, 1)
        >>> for block in (3, 1): index.publish(block, 0, Digest(b"x"), 8)
        >>> index.unpublish_many([3, 2])
        >>> index.oldest[0], index.length_of
        ({b'x': 1}, [0, 8, 0, 0])
        """
        length_of, newer = self.length_of, self.newer
        for block in blocks:
            if length_of[block]:
                length_of[block] = 0
                found = self.oldest[self.group_of[block]]
                if newer[block]:
                    self._remove_copy(found, block)
                else:
                    assert found[self.digest_of[block]] == block
                    del found[self.digest_of[block]]

    def _remove_copy(self, found: dict[Digest, int], block: int) -> None:
        """Unlink one of several copies of a key; the last one left has no links."""
        following, preceding = self.newer[block], self.older[block]
        self.newer[block] = self.older[block] = 0
        if following == preceding:
            self.newer[following] = self.older[following] = 0
        else:
            self.newer[preceding] = following
            self.older[following] = preceding
        digest = self.digest_of[block]
        if found[digest] == block:
            found[digest] = following

    def clear(self) -> None:
        """Drop every key. O(num_blocks).

        >>> index = Index(4, 1)
        >>> index.publish(3, 0, Digest(b"x"), 8)
        >>> index.clear()
        >>> index.oldest, index.length_of
        ([{}], [0, 0, 0, 0])
        """
        self.unpublish_many([block for block, length in enumerate(self.length_of) if length])
        assert not any(self.oldest)

    def copies(self, group: int, digest: Digest) -> list[int]:
        """The blocks of one key, the one keyed longest first. O(copies)."""
        head = self.oldest[group].get(digest, 0)
        found = [head] if head else []
        block = self.newer[head]
        while block not in (head, 0):
            found.append(block)
            block = self.newer[block]
        return found

    def check(self) -> None:
        """Raise AssertionError, with every field, unless the representation is sound."""
        try:
            self._check()
        except (AssertionError, KeyError) as error:
            fields = " ".join(f"{name}={getattr(self, name)!r}" for name in FIELDS)
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
                    # The ring closes both ways; a ring of one has no links. O(keys)
                    alone = len(ring) == 1
                    assert self.newer[block] == (0 if alone else following), f"after {block}"
                    assert self.older[following] == (0 if alone else block), f"before {following}"
                    # No block is in two rings, nor twice in one. O(keys)
                    assert block not in keyed, f"block {block} is in two places"
                    keyed.add(block)
        # The null block has no key, and a block in no ring says that it has none. O(num_blocks)
        assert 0 not in keyed, "the null block is keyed"
        for block in set(range(len(self.length_of))) - keyed:
            assert self.length_of[block] == 0, f"block {block} is keyed but not found"
            assert self.newer[block] == self.older[block] == 0, f"block {block} keeps links"
