"""Names that do not depend on which block, request or token it happened to be.

Blocks and requests are numbered in the order in which a state is read, and so are the tokens that
continue each prefix. Two states that differ by such a renaming read the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kvspec.spec.digests import Prefix
from kvspec.spec.types import NULL_BLOCK, Digest, RequestId, Token

Code = tuple[Any, ...]
"""Nested tuples of ints, None and bytes: what `marshal` writes in one way only."""

Words = Mapping[Digest, tuple[Token, ...]]
"""The tokens of every prefix of a world by its digest."""


class Naming:
    """Numbers given at first sight, and the states of a world in those numbers.

    With `plain` nothing is renamed, to count what the renaming saves.
    """

    def __init__(self, words: Words, order: Sequence[RequestId], *, plain: bool = False) -> None:
        self.words = words
        self.plain = plain
        self.order = order
        self.blocks: dict[int, int] = {NULL_BLOCK: 0}
        self.requests: dict[RequestId | None, int] = {name: i for i, name in enumerate(order)}
        self.requests[None] = -1
        self.tree: dict[Any, Any] = {}

    def block(self, block: int) -> int:
        """The number of a block."""
        if self.plain:
            return block
        return self.blocks.setdefault(block, len(self.blocks))

    def table(self, blocks: Iterable[int]) -> Code:
        """The numbers of blocks, in order."""
        if self.plain:
            return tuple(blocks)
        known = self.blocks
        return tuple([known.setdefault(block, len(known)) for block in blocks])

    def tables(self, tables: Iterable[Iterable[int]]) -> Code:
        """The numbers of the blocks of each group's table."""
        return tuple([self.table(table) for table in tables])

    def pairs(self, pairs: Iterable[Sequence[int]]) -> Code:
        """The numbers of copies' endpoints."""
        return tuple([self.table(pair) for pair in pairs])

    def bag(self, blocks: Iterable[int]) -> Code:
        """The numbers of blocks whose order says nothing; all of them are known already."""
        return tuple(sorted([self.block(block) for block in blocks]))

    def tokens(self, tokens: Iterable[Token]) -> Code:
        """Tokens, each by how many others had continued the same prefix before it."""
        if self.plain:
            return tuple(tokens)
        node, found = self.tree, []
        for token in tokens:
            following = node.get(token)
            if following is None:
                following = node[token] = {None: len(node) - (None in node)}
            found.append(following[None])
            node = following
        return tuple(found)

    def prefix(self, prefix: Prefix | None, length: int) -> Code | None:
        """The first `length` tokens of a prefix."""
        return None if prefix is None else self.tokens(prefix.tokens[:length])

    def digest(self, digest: Digest) -> Code | bytes:
        """The prefix that a digest stands for; one that stands for none stands for itself."""
        tokens = self.words.get(digest)
        return digest if tokens is None else self.tokens(tokens)
