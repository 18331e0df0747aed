"""Finding cached prefixes (design 4.2)."""

from __future__ import annotations

from dataclasses import dataclass

from kvspec.spec.digests import Prefix
from kvspec.spec.types import NULL_BLOCK, BlockId, Config, Connector, GroupId, ceil_div

from .pool import Pool


@dataclass(slots=True)
class Found:
    """What one group found on its own: its slots, and the length they serve."""

    blocks: list[BlockId]
    length: int

    def trimmed(self, length: int, block_size: int) -> list[BlockId]:
        """The slots that a shorter length needs."""
        return self.blocks[: ceil_div(length, block_size)]


def find_full(config: Config, g: int, pool: Pool, prefix: Prefix, limit: int) -> Found:
    """The longest run of keyed blocks, then the longest keyed boundary inside the next one."""
    group, group_id = config.groups[g], GroupId(g)
    size, found = group.block_size, Found([], 0)
    while found.length + size <= limit:
        block = pool.find((group_id, prefix.digest_at(found.length + size)))
        if block is None:
            break
        found = Found([*found.blocks, block], found.length + size)
    if config.fine:
        found = _find_inside(config, group_id, pool, prefix, found, limit)
    length = found.length
    if group.eagle and length:
        length -= config.hash_unit if config.fine else size
    length -= length % config.alignment
    return Found(found.trimmed(length, size), length)


def _find_inside(
    config: Config, group_id: GroupId, pool: Pool, prefix: Prefix, run: Found, limit: int
) -> Found:
    size, unit = config.groups[group_id].block_size, config.hash_unit
    boundary = run.length + size - unit
    while boundary > run.length:
        if boundary <= limit:
            block = pool.find((group_id, prefix.digest_at(boundary)))
            if block is not None:
                return Found([*run.blocks, block], boundary)
        boundary -= unit
    return run


def find_state(config: Config, g: int, pool: Pool, prefix: Prefix, limit: int) -> Found:
    """The longest boundary within the limit at which a state is keyed: nulls, then its block."""
    step, size = config.alignment, config.groups[g].block_size
    length = limit - limit % step
    while length > 0:
        block = pool.find((GroupId(g), prefix.digest_at(length)))
        if block is not None:
            return Found([NULL_BLOCK] * (ceil_div(length, size) - 1) + [block], length)
        length -= step
    return Found([], 0)


@dataclass(slots=True)
class Result:
    """A hit: slots per group, its length, the length of each group's own state, and the rest.

    A view of it knows the `whole` that it was cut from.
    """

    blocks: list[list[BlockId]]
    num_tokens: int
    states: list[int]
    shared_prefix_boundary: int = 0
    diverged: bool = False
    whole: Result | None = None


class Finder:
    """Looks one request's prefix up in all groups."""

    def __init__(self, config: Config, pool: Pool, prefix: Prefix) -> None:
        self.config, self.pool, self.prefix = config, pool, prefix
        self.limit = len(prefix) - 1 if config.caching else 0
        self.own = [self.find(g, self.limit) for g in config.ids()]
        self.recurrent = [g for g in config.ids() if config.groups[g].recurrent]

    def find(self, g: int, limit: int) -> Found:
        """What one group finds within a limit."""
        search = find_state if self.config.groups[g].recurrent else find_full
        return search(self.config, g, self.pool, self.prefix, limit)

    @property
    def attention(self) -> int:
        """How far all full groups reach."""
        full = [self.own[g].length for g in self.config.ids() if g not in self.recurrent]
        return min(full) - min(full) % self.config.alignment

    def joint(self) -> Result:
        """Attention first; then states shorten the length until every group has one there."""
        length, agreed = self.attention, -1
        while length != agreed:
            agreed = length
            for g in self.recurrent:
                length = min(length, self.find(g, length).length)
        blocks = [
            (self.find(g, length) if g in self.recurrent else self.own[g]).trimmed(
                length, self.config.groups[g].block_size
            )
            for g in self.config.ids()
        ]
        return self._result(blocks, length, [length] * len(blocks), False)

    def for_connector(self) -> Result:
        """Each group on its own where the connector supports that, else the joint hit."""
        local = self.attention
        states = [self.own[g].length for g in self.recurrent]
        if self.config.connector is not Connector.DIVERGING or max(states, default=0) > local:
            return self.joint()
        blocks = [
            found.trimmed(local, group.block_size)
            for found, group in zip(self.own, self.config.groups, strict=True)
        ]
        lengths = [found.length for found in self.own]
        return self._result(blocks, local, lengths, any(s < local for s in states))

    def _result(
        self, blocks: list[list[BlockId]], length: int, states: list[int], diverged: bool
    ) -> Result:
        longest = max(found.length for found in self.own)
        boundary = longest if longest > length else 0
        return Result(blocks, length, states, boundary, diverged)
