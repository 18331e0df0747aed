"""From a step's lists and a layout to what a launch is given. Pure: nothing here touches memory.

Copies of a step are *simultaneous*: all reads before all writes. A destination may therefore be the
source of another pair (a chain, or a cycle), and is copied as it was before the step: such sources
are first put into a scratch area, a *slot* each. All other pairs need no order, since no
destination occurs twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from .arithmetic import common_width, grid_of, tiles_of
from .layout import MAX_POOL_BYTES, Layout, MoveError

NO_SLOT = 2**64 - 1
MAX_ENTRIES = 2**32
"""The most pairs or blocks of one list: with it the number of tiles stays below 2^64."""

MAX_TILES = 2**62
SLOT_ALIGNMENT = 16

Row = tuple[int, ...]
"""A record of block_moves.h: 64-bit words."""


@dataclass(frozen=True)
class Geometry:
    """What all launches on a layout share."""

    layout: Layout

    @cached_property
    def first_tiles(self) -> tuple[int, ...]:
        """The tiles of an entry before each segment, and, last, all of them."""
        counts = [0]
        for segment in self.layout.segments:
            counts.append(counts[-1] + tiles_of(segment.size))
        return tuple(counts)

    @property
    def tiles_per_entry(self) -> int:
        """The tiles of a block."""
        return self.first_tiles[-1]

    @cached_property
    def staged(self) -> tuple[int, ...]:
        """Where each segment lies in a slot of the scratch area, and, last, a slot's size."""
        offsets = [0]
        for segment in self.layout.segments:
            end = offsets[-1] + segment.size
            offsets.append(-(-end // SLOT_ALIGNMENT) * SLOT_ALIGNMENT)
        return tuple(offsets)

    @property
    def slot_bytes(self) -> int:
        """Bytes of a slot of the scratch area."""
        return self.staged[-1]

    @property
    def width(self) -> int:
        """The widest access that is safe for every pair, by the strides alone.

        The kernel looks at each pair: two blocks an even number of blocks apart may allow more.
        """
        return min((common_width(0, s.stride) for s in self.layout.segments), default=1)

    def scratch_bytes(self, slots: int) -> int:
        """The size of the scratch area. Raises `MoveError`."""
        if slots * self.slot_bytes > MAX_POOL_BYTES:
            raise MoveError(f"pairs: {slots} of them form chains, too many for the scratch area")
        return slots * self.slot_bytes

    def segment_rows(self) -> list[Row]:
        """The records `Segment`."""
        return [
            (self.layout.address(segment, 0), segment.stride, segment.size, first, staged)
            for segment, first, staged in zip(
                self.layout.segments, self.first_tiles, self.staged, strict=False
            )
        ]

    def grid(self, entries: int) -> int:
        """Blocks of threads for a list of so many entries. Raises `MoveError`."""
        tiles = entries * self.tiles_per_entry
        if entries > MAX_ENTRIES or tiles > MAX_TILES:
            raise MoveError(f"the list has {entries} entries: too many for one launch")
        return grid_of(tiles)


@dataclass(frozen=True, slots=True)
class CopyPlan:
    """What a launch copies: (source, destination, slot or NO_SLOT)."""

    pairs: tuple[tuple[int, int, int], ...]
    num_slots: int


def plan_copies(layout: Layout, pairs: Iterable[Sequence[int]]) -> CopyPlan:
    """Order the copies of a step. Copies of a block to itself are left out.

    Raises `MoveError` for an id that is none or is the null block's, and for a destination that
    occurs twice, since no order among its sources is right.
    """
    listed = [_checked_pair(layout, number, pair) for number, pair in enumerate(pairs)]
    where: dict[int, int] = {}
    for number, (_, destination) in enumerate(listed):
        if destination in where:
            raise MoveError(
                f"pairs[{number}]: block {destination} is also the destination of "
                f"pairs[{where[destination]}]"
            )
        where[destination] = number
    moved = [(source, destination) for source, destination in listed if source != destination]
    written = {destination for _, destination in moved}
    planned, slots = [], 0
    for source, destination in moved:
        staged = source in written
        planned.append((source, destination, slots if staged else NO_SLOT))
        slots += staged
    return CopyPlan(tuple(planned), slots)


def plan_fill(layout: Layout, blocks: Iterable[int], value: int) -> tuple[int, ...]:
    """The blocks to fill with a byte, each once. Raises `MoveError`."""
    if not 0 <= value <= 255:
        raise MoveError(f"value: expected a byte, 0..255, got {value}")
    named = (_checked(layout, f"blocks[{n}]", block) for n, block in enumerate(blocks))
    return tuple(dict.fromkeys(named))


def _checked_pair(layout: Layout, number: int, pair: Sequence[int]) -> tuple[int, int]:
    if len(pair) != 2:
        raise MoveError(f"pairs[{number}]: expected (source, destination), got {pair!r}")
    source, destination = pair
    return (
        _checked(layout, f"pairs[{number}] source", source),
        _checked(layout, f"pairs[{number}] destination", destination),
    )


def _checked(layout: Layout, what: str, block: object) -> int:
    if not isinstance(block, int) or isinstance(block, bool):
        raise MoveError(f"{what}: expected a block id, got {block!r}")
    if not 1 <= block < layout.num_blocks:
        raise MoveError(
            f"{what}: expected a block id 1..{layout.num_blocks - 1} (0 is the null block), "
            f"got {block}"
        )
    return block
