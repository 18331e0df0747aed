"""Where the blocks of a cache lie in memory, and what is refused about it. Sizes in bytes.

A block is one or more *segments*: a layer's keys, a layer's values, a state. A segment of block b
lies at `storage.base + offset + b * stride`. With that one sentence a layout may be block-major
(one slab, a segment per layer in it), split into keys and values, or shared by groups of several
dtypes; nothing has to be aligned.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

MAX_POOL_BYTES = 2**46
"""The largest storage: up to here the proofs hold (64 TiB, far above any device)."""

MAX_BLOCKS = 2**32
"""The most blocks of a pool."""

MAX_ADDRESS = 2**63
"""Storages end below this address."""


class MoveError(ValueError):
    """What was asked for cannot be moved: one line that names the argument. Nothing was written."""


@dataclass(frozen=True, slots=True)
class Storage:
    """A stretch of memory: address and size."""

    base: int
    size: int


@dataclass(frozen=True, slots=True)
class Segment:
    """Bytes that every block has in a storage: those of block b are at `offset + b * stride`."""

    storage: int
    offset: int
    stride: int
    size: int

    def reach(self, num_blocks: int) -> int:
        """The end of the last block's bytes."""
        return self.offset + (num_blocks - 1) * self.stride + self.size


@dataclass(frozen=True, slots=True)
class Layout:
    """The memory of a pool. `num_blocks` counts the null block, which has room but is never moved.

    Raises `MoveError` when a segment leaves its storage or two of them, or two blocks, overlap.
    Segments of no bytes are left out.
    """

    num_blocks: int
    storages: tuple[Storage, ...]
    segments: tuple[Segment, ...]

    def __post_init__(self) -> None:
        if not 1 <= self.num_blocks <= MAX_BLOCKS:
            raise MoveError(f"num_blocks: expected 1..{MAX_BLOCKS}, got {self.num_blocks}")
        filled = tuple(segment for segment in self.segments if segment.size != 0)
        object.__setattr__(self, "segments", filled)
        self._check_storages()
        for number, segment in enumerate(filled):
            self._check_segment(number, segment)
        self._check_apart()

    @property
    def block_bytes(self) -> int:
        """Bytes of a block over all its segments."""
        return sum(segment.size for segment in self.segments)

    def address(self, segment: Segment, block: int) -> int:
        """Where a segment of a block lies."""
        return self.storages[segment.storage].base + segment.offset + block * segment.stride

    def _check_storages(self) -> None:
        for number, storage in enumerate(self.storages):
            if not 0 <= storage.size <= MAX_POOL_BYTES:
                raise MoveError(
                    f"storages[{number}]: size must be 0..{MAX_POOL_BYTES}, got {storage.size}"
                )
            if not 0 <= storage.base <= MAX_ADDRESS - storage.size:
                raise MoveError(f"storages[{number}]: no such address: {storage.base:#x}")
        order = sorted(range(len(self.storages)), key=lambda n: self.storages[n].base)
        for one, other in pairwise(order):
            first, second = self.storages[one], self.storages[other]
            if second.size and first.base + first.size > second.base:
                raise MoveError(f"storages[{one}] and storages[{other}] overlap in memory")

    def _check_segment(self, number: int, segment: Segment) -> None:
        where = f"segments[{number}]"
        if not 0 <= segment.storage < len(self.storages):
            raise MoveError(f"{where}: there is no storage {segment.storage}")
        if min(segment.offset, segment.stride, segment.size) < 0:
            raise MoveError(f"{where}: offset, stride and size must not be negative: {segment}")
        size = self.storages[segment.storage].size
        if segment.reach(self.num_blocks) > size:
            raise MoveError(
                f"{where}: ends at byte {segment.reach(self.num_blocks)}, beyond its storage of "
                f"{size} bytes"
            )
        if self.num_blocks > 1 and segment.stride < segment.size:
            raise MoveError(
                f"{where}: stride {segment.stride} is less than size {segment.size}: blocks overlap"
            )

    def _check_apart(self) -> None:
        for one, other in self._close_pairs():
            if _meet(self.segments[one], self.segments[other], self.num_blocks):
                raise MoveError(f"segments[{one}] and segments[{other}] overlap")

    def _close_pairs(self) -> Iterator[tuple[int, int]]:
        """The pairs of segments whose extents overlap: in each, the blocks may be interleaved."""
        order = sorted(
            range(len(self.segments)),
            key=lambda n: (self.segments[n].storage, self.segments[n].offset),
        )
        for at, one in enumerate(order):
            first = self.segments[one]
            for other in order[at + 1 :]:
                second = self.segments[other]
                apart = second.offset >= first.reach(self.num_blocks)
                if apart or second.storage != first.storage:
                    break
                yield one, other


def _meet(first: Segment, second: Segment, num_blocks: int) -> bool:
    """Whether some block's bytes of one segment are some block's bytes of the other."""
    if first.stride == second.stride and num_blocks > 1:
        # Only the distance in blocks matters: the two nearest below and above decide.
        gap = second.offset - first.offset
        nearest = range(gap // first.stride, gap // first.stride + 2)
        return any(
            abs(away) < num_blocks and _touch(away * first.stride, first.size, gap, second.size)
            for away in nearest
        )
    if first.stride > second.stride:
        first, second = second, first
    for block in range(num_blocks):  # the fewer blocks of the longer stride lie near each one
        start = first.offset + block * first.stride
        near = (start - second.offset) // max(second.stride, 1)
        for other in (near, near + 1):
            within = 0 <= other < num_blocks
            at = second.offset + other * second.stride
            if within and _touch(start, first.size, at, second.size):
                return True
    return False


def _touch(start: int, size: int, other: int, other_size: int) -> bool:
    return start < other + other_size and other < start + size
