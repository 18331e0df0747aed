"""The vocabulary of design section 2, as types."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import NewType

BlockId = NewType("BlockId", int)
GroupId = NewType("GroupId", int)
RequestId = NewType("RequestId", str)
Token = NewType("Token", int)
Step = NewType("Step", int)
Digest = NewType("Digest", bytes)

Table = tuple[BlockId, ...]
Tables = tuple[Table, ...]
"""One block table per group, in group order."""

NULL_BLOCK = BlockId(0)
"""The placeholder: never allocated, freed, keyed, written or counted."""

MAX_TOKEN = 2**31 - 1
MAX_ID_LENGTH = 256


class InvalidInput(ValueError):
    """The input breaks a rule of the event language: the sender is at fault, not the target."""


class GroupKind(Enum):
    """How the layers of a group use their blocks."""

    FULL = "full"
    """Full attention: every position of the prefix is read at every step."""
    MAMBA_ALIGN = "mamba_align"
    """Recurrent state: one state per block, kept where a chunk ends."""


class Connector(Enum):
    """What kind of KV connector is attached."""

    NONE = "none"
    UNIFORM = "uniform"
    """A connector that needs every group to hit the same length."""
    DIVERGING = "diverging"
    """A connector that can bring the recurrent state where only attention hit."""


@dataclass(frozen=True, slots=True)
class Group:
    """Layers that share one block table. `block_size` is in tokens."""

    kind: GroupKind
    block_size: int
    eagle: bool = False
    """The group feeds a draft model: the last matched unit has to be recomputed."""
    zeroed: bool = False
    """Blocks must be zeroed before their first use."""

    @property
    def recurrent(self) -> bool:
        """Whether a block holds one state rather than one entry a position."""
        return self.kind is GroupKind.MAMBA_ALIGN


@dataclass(frozen=True, slots=True)
class Adapter:
    """A LoRA adapter; `version` changes whenever its weights do."""

    name: str
    version: int = 0


@dataclass(frozen=True, slots=True)
class Media:
    """An image or the like whose embedding stands at tokens [start, start + length)."""

    content: str
    start: int
    length: int


@dataclass(frozen=True, slots=True)
class Identity:
    """What besides its tokens decides what a prefix computes to."""

    salt: str | None = None
    adapter: Adapter | None = None
    media: tuple[Media, ...] = ()


@dataclass(frozen=True, slots=True)
class Config:
    """The `configure` event: one cache. Sizes in tokens, `num_blocks` counts the null block.

    `deferral` holds blocks that steps in flight may touch behind a fence (design 4.6).
    `max_in_flight` is how many steps may be dispatched and not yet processed.
    """

    num_blocks: int
    hash_unit: int
    groups: tuple[Group, ...]
    max_model_len: int
    caching: bool = True
    connector: Connector = Connector.NONE
    deferral: bool = False
    max_in_flight: int = 1

    def __post_init__(self) -> None:
        def refuse(field: str, expected: str, got: object) -> None:
            raise InvalidInput(f"configure: {field} must be {expected}, got {got!r}")

        if self.num_blocks < 2:
            refuse("num_blocks", "at least 2 (block 0 is the null block)", self.num_blocks)
        if self.hash_unit < 1:
            refuse("hash_unit", "at least 1", self.hash_unit)
        if not self.groups:
            refuse("groups", "a list of at least one group", [])
        if all(group.recurrent for group in self.groups):
            refuse("groups", "a list with at least one full group", "only recurrent groups")
        for group in self.groups:
            if group.block_size < 1 or group.block_size % self.hash_unit:
                refuse("block_size", f"a multiple of hash_unit {self.hash_unit}", group.block_size)
        if self.max_model_len < 1:
            refuse("max_model_len", "at least 1", self.max_model_len)
        if self.max_in_flight < 1:
            refuse("max_in_flight", "at least 1", self.max_in_flight)

    @property
    def scheduler_block(self) -> int:
        """The least common multiple of the groups' block sizes."""
        return math.lcm(*(group.block_size for group in self.groups))

    @property
    def fine(self) -> bool:
        """Fine mode: partial hits are possible (design 4.2)."""
        return any(g.recurrent and g.block_size > self.hash_unit for g in self.groups)

    @property
    def alignment(self) -> int:
        """Every hit length is a multiple of this."""
        return self.hash_unit if self.fine else self.scheduler_block

    def eagle_unit(self, group: Group) -> int:
        """What an eagle group gives up of a match."""
        return self.hash_unit if self.fine else group.block_size

    def ids(self) -> range:
        """The group ids, in order."""
        return range(len(self.groups))


def ceil_div(amount: int, size: int) -> int:
    """How many pieces of `size` cover `amount`."""
    return -(-amount // size)


def align_down(amount: int, size: int) -> int:
    """The largest multiple of `size` that is not above `amount`."""
    return amount - amount % size
