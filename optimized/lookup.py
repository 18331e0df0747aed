"""Finding cached prefixes (design 4.2): each group walks its digests once."""

from __future__ import annotations

from kvspec.spec.types import Digest

from .index import Index
from .layout import Layout


class Found:
    """A hit: slots by group, its length, the length of each recurrent group's own state.

    `states` has an entry for full groups too, which nobody reads. A view knows the `whole` that it
    was cut from.
    """

    __slots__ = ("blocks", "boundary", "diverged", "num_tokens", "states", "whole")

    def __init__(
        self,
        blocks: list[tuple[int, ...]],
        num_tokens: int,
        states: list[int],
        boundary: int = 0,
        diverged: bool = False,
        whole: Found | None = None,
    ) -> None:
        self.whole: Found | None = whole
        self.blocks = blocks
        self.num_tokens: int = num_tokens
        self.states = states
        self.boundary: int = boundary
        self.diverged: bool = diverged

    @classmethod
    def nothing(cls, num_groups: int) -> Found:
        """The hit of a request that was not looked up."""
        return cls([()] * num_groups, 0, [0] * num_groups)


class Search:
    """One request's prefix, looked up in every group; the index does not change meanwhile.

    Ask: `joint`, `for_connector`
    """

    __slots__ = ("digests", "index", "layout", "lengths", "limit", "longest", "runs")

    def __init__(
        self, layout: Layout, index: Index, digests: list[Digest], num_tokens: int
    ) -> None:
        """Look each group up on its own; the last token is never reused. O(num_tokens / unit)."""
        self.layout = layout
        self.index = index
        self.digests = digests
        self.limit: int = num_tokens - 1
        self.lengths: list[int] = [0] * layout.num_groups
        self.runs: list[list[int]] = [[] for _ in range(layout.num_groups)]
        for g in layout.full_ids:
            self._find_full(g)
        for g in layout.recurrent_ids:
            self._find_state(g, self.limit)
        self.longest: int = max(self.lengths)

    def _find_full(self, g: int) -> None:
        """The longest run of keyed blocks, then the longest keyed boundary in the next one."""
        layout = self.layout
        units, size = layout.units[g], layout.sizes[g]
        last = self.limit // layout.hash_unit
        found, run = self.index.oldest[g], self.runs[g]
        for digest in self.digests[units : last + 1 : units]:
            block = found.get(digest)
            if not block:
                break
            run.append(block)
        length = len(run) * size
        if layout.fine:
            complete = len(run) * units
            for at in range(min(complete + units - 1, last), complete, -1):
                block = found.get(self.digests[at])
                if block:
                    run.append(block)
                    length = at * layout.hash_unit
                    break
        if length:
            length -= layout.eagle_drop[g]
        self.lengths[g] = length - length % layout.alignment

    def _find_state(self, g: int, limit: int) -> None:
        """The longest boundary within `limit` at which a state is keyed."""
        layout = self.layout
        found, unit = self.index.oldest[g], layout.hash_unit
        step = layout.alignment // unit
        at = limit // layout.alignment * step
        self.runs[g] = []
        while at > 0:
            block = found.get(self.digests[at])
            if block:
                self.runs[g] = [block]
                break
            at -= step
        self.lengths[g] = at * unit

    def _attention(self) -> int:
        """How far all full groups reach."""
        return min([self.lengths[g] for g in self.layout.full_ids])

    def joint(self) -> Found:
        """Attention first; then states shorten the length until every group has one there.

        O(num_tokens / unit) in all: a search for a state goes on below where the last one ended.
        """
        length = self._attention()
        recurrent_ids = self.layout.recurrent_ids
        agreed = False
        while not agreed:
            agreed = True
            for g in recurrent_ids:
                if self.lengths[g] > length:
                    self._find_state(g, length)
                if self.lengths[g] < length:
                    length = self.lengths[g]
                    agreed = False
        assert all(self.lengths[g] == length for g in recurrent_ids)
        return self._result(length, [length] * self.layout.num_groups, False)

    def for_connector(self) -> Found:
        """Each group on its own where the connector supports that, else the joint hit."""
        local = self._attention()
        states = [self.lengths[g] for g in self.layout.recurrent_ids]
        if not self.layout.diverging or max(states, default=0) > local:
            return self.joint()
        return self._result(local, self.lengths, min(states, default=local) < local)

    def _result(self, length: int, states: list[int], diverged: bool) -> Found:
        layout = self.layout
        blocks: list[tuple[int, ...]] = []
        for g in range(layout.num_groups):
            size, run = layout.sizes[g], self.runs[g]
            if not layout.recurrent[g]:
                blocks.append(tuple(run[: -(-length // size)]))
            elif run:
                blocks.append((0,) * (-(-self.lengths[g] // size) - 1) + (run[0],))
            else:
                blocks.append(())
        boundary = self.longest if self.longest > length else 0
        return Found(blocks, length, states, boundary, diverged)


def truncated(layout: Layout, found: Found, num_tokens: int) -> Found | str:
    """The hit cut at a length that ends a block in every group, or why it cannot be. O(blocks).

    A recurrent group may be shorter, since an external source can bring its state.
    """
    found = found.whole or found
    if num_tokens > found.num_tokens:
        return f"the hit ends at {found.num_tokens} tokens"
    blocks: list[tuple[int, ...]] = []
    for g in range(layout.num_groups):
        size = layout.sizes[g]
        if num_tokens % size:
            return f"{num_tokens} tokens end inside a block of group {g}"
        slots = num_tokens // size
        blocks.append(found.blocks[g][:slots])
    return Found(blocks, num_tokens, found.states, whole=found)
