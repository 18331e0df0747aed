"""Cases for what moves bytes: memory, layout and lists, run by a mover and by the plain text.

The plain text is `plainly`: Python slices, reads before writes. A case is data only, so that it can
be sent to a process that runs under sanitizers.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from hypothesis import strategies as st

from kvspec.kernels.layout import Layout, Segment, Storage
from kvspec.kernels.movers import Mover

Pairs = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Case:
    """Copies and fills on a pool. `storages` are (misalignment, size)."""

    num_blocks: int
    storages: tuple[tuple[int, int], ...]
    segments: tuple[Segment, ...]
    pairs: Pairs = ()
    filled: tuple[int, ...] = ()
    value: int = 0
    reversed: bool = False
    grid: int | None = None
    seed: int = 0

    def contents(self) -> list[bytes]:
        """What lies in the storages before: each byte is random, guards too."""
        rng = Random(self.seed)
        return [rng.randbytes(size) for _, size in self.storages]


def plainly(case: Case) -> list[bytes]:
    """What the storages hold after: the fill, then all copies at once."""
    memory = [bytearray(content) for content in case.contents()]
    for block in case.filled:
        for s in case.segments:
            at = s.offset + block * s.stride
            memory[s.storage][at : at + s.size] = bytes([case.value]) * s.size
    before = [bytes(content) for content in memory]
    for source, destination in case.pairs:
        for s in case.segments:
            come, go = s.offset + source * s.stride, s.offset + destination * s.stride
            memory[s.storage][go : go + s.size] = before[s.storage][come : come + s.size]
    return [bytes(content) for content in memory]


def play(case: Case, make: Callable[[Layout, Case], Mover]) -> list[bytes]:
    """What the storages hold after a mover did it.

    Each storage is an allocation of its own of no more than its size, at an address as aligned as
    the case says, so that a sanitizer sees every byte beyond.
    """
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    libc.free.restype, libc.free.argtypes = None, [ctypes.c_void_p]
    allocated = [libc.malloc(skip + size) for skip, size in case.storages]
    try:
        storages = []
        for start, (skip, size), content in zip(
            allocated, case.storages, case.contents(), strict=True
        ):
            ctypes.memmove(start + skip, content, size)
            storages.append(Storage(start + skip, size))
        mover = make(Layout(case.num_blocks, tuple(storages), case.segments), case)
        mover.fill(case.filled, case.value)
        mover.copy(case.pairs)
        return [ctypes.string_at(storage.base, storage.size) for storage in storages]
    finally:
        for start in allocated:
            libc.free(start)


SIZES = st.one_of(
    st.integers(1, 80),
    st.sampled_from([127, 128, 2048, 2049, 8191, 8192, 8193, 16384 + 6]),
)
"""Bytes of a segment: around the units, the rounds and the tiles of the kernel."""

GAPS = st.sampled_from([0, 1, 2, 4, 7, 8, 16, 32])


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Storages that are block-major (segments in a row) or split (one segment after another)."""
    num_blocks = draw(st.integers(2, 7))
    storages: list[tuple[int, int]] = []
    segments: list[Segment] = []
    for number in range(draw(st.integers(1, 3))):
        skip, at = draw(st.sampled_from([0, 0, 1, 2, 4, 8, 15])), draw(GAPS)
        parts = [(draw(SIZES), draw(GAPS)) for _ in range(draw(st.integers(1, 3)))]
        if draw(st.booleans()):
            stride = sum(size + gap for size, gap in parts)
            for size, gap in parts:
                segments.append(Segment(number, at, stride, size))
                at += size + gap
            end = at + (num_blocks - 1) * stride
        else:
            for size, gap in parts:
                segments.append(Segment(number, at, size + gap, size))
                at += num_blocks * (size + gap)
            end = at
        storages.append((skip, end))
    blocks = st.integers(1, num_blocks - 1)
    goals = draw(st.lists(blocks, unique=True, max_size=num_blocks - 1))
    return Case(
        num_blocks,
        tuple(storages),
        tuple(draw(st.permutations(segments))),
        tuple((draw(blocks), goal) for goal in goals),
        tuple(draw(st.lists(blocks, max_size=3))),
        draw(st.sampled_from([0, 0xBD, 0xFF])),
        draw(st.booleans()),
        draw(st.sampled_from([None, 1, 3])),
        draw(st.integers(0, 2**16)),
    )
