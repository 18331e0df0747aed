"""Names for what an engine chooses freely: blocks, and what it calls a digest."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from kvspec.spec.state import Key, State, touched_blocks
from kvspec.spec.types import NULL_BLOCK, BlockId, Connector, Digest, GroupId, Tables


class Unnamed(Exception):
    """A block that has no name cannot be told from the others that have none."""


@dataclass(slots=True)
class Naming:
    """Names as they are given; a block has one for as long as it differs from others."""

    blocks: dict[BlockId, str] = field(default_factory=dict)
    digests: dict[Key, str] = field(default_factory=dict)
    given: int = 0

    def new(self) -> str:
        """A name that was not used before."""
        self.given += 1
        return f"${self.given}"

    def bind(self, block: BlockId) -> str:
        """Give a block a name."""
        assert block not in self.blocks
        self.blocks[block] = self.new()
        return self.blocks[block]

    def of(self, block: BlockId) -> Any:
        """A block's name, or 0 for the null block. Raises `Unnamed`."""
        if block == NULL_BLOCK:
            return 0
        if block not in self.blocks:
            raise Unnamed(f"block {block}")
        return self.blocks[block]

    def all(self, blocks: Iterable[BlockId]) -> tuple[Any, ...]:
        """The names of blocks, in their order."""
        return tuple(map(self.of, blocks))

    def tables(self, tables: Tables) -> tuple[Any, ...]:
        """The names in a table for each group."""
        return tuple(map(self.all, tables))

    def digest(self, group: GroupId, digest: Digest) -> str:
        """The name of what an engine calls a digest."""
        return self.digests.setdefault((group, digest), f"d{len(self.digests) + 1}")

    def forget(self, state: State) -> tuple[str, ...]:
        """Take the names of blocks that are like any other from now on."""
        told = told_apart(state)
        assert told <= self.blocks.keys(), "a block came to something without being named"
        gone = [block for block in self.blocks if block not in told]
        return tuple(self.blocks.pop(block) for block in gone)


def told_apart(state: State) -> set[BlockId]:
    """Every block that is not like all others: all that follows is the same if those change places.

    They are held, keyed, offered, on the zeroing list, or may not be loaded into.
    """
    told = {*state.refs, *state.keys, *state.zero_allowed}
    told |= {offer.block for offers in state.offers.values() for offer in offers}
    if state.config.connector is not Connector.NONE:
        told |= {block for work in state.in_flight for block in touched_blocks(state.config, work)}
    return told - {NULL_BLOCK}
