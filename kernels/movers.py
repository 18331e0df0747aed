"""What moves the bytes of a pool: the interface, and the plain way on a CPU."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from typing import Protocol

from .layout import Layout
from .plan import NO_SLOT, plan_copies, plan_fill

Pairs = Iterable[Sequence[int]]
"""(source, destination) block ids of one step; all are read before any is written."""


class Mover(Protocol):
    """Moves whole blocks of one layout. Lists may be empty.

    Both raise `MoveError` before anything is written.
    """

    def copy(self, pairs: Pairs) -> None:
        """Copy blocks."""

    def fill(self, blocks: Iterable[int], value: int) -> None:
        """Fill blocks with a byte value: zero before first use, poison when freed."""


class CpuMover:
    """Moves blocks in this process's memory: one `memmove` a segment, one pass over the bytes.

    The layout's storages must be alive as long as it is used.
    """

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self._rows = [(layout.address(s, 0), s.stride, s.size) for s in layout.segments]

    def copy(self, pairs: Pairs) -> None:
        """Copy blocks; sources that are also destinations are read first."""
        plan, move = plan_copies(self.layout, pairs), ctypes.memmove
        held = [
            (destination, self._read(source))
            for source, destination, slot in plan.pairs
            if slot != NO_SLOT
        ]
        direct = [(s, d) for s, d, slot in plan.pairs if slot == NO_SLOT]
        for base, stride, size in self._rows:
            for source, destination in direct:
                move(base + destination * stride, base + source * stride, size)
        for destination, parts in held:
            for (base, stride, size), data in zip(self._rows, parts, strict=True):
                move(base + destination * stride, data, size)

    def fill(self, blocks: Iterable[int], value: int) -> None:
        """Fill blocks with a byte value."""
        named = plan_fill(self.layout, blocks, value)
        for base, stride, size in self._rows:
            for block in named:
                ctypes.memset(base + block * stride, value, size)

    def _read(self, block: int) -> list[bytes]:
        return [ctypes.string_at(base + block * stride, size) for base, stride, size in self._rows]
