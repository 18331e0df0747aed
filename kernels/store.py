"""Memory for the blocks of a pool in torch tensors, as the byte-level worker wants it.

The interface is that of the plain store in `kvspec.reference.worker`. A block's bytes are spread
over three segments on purpose: one in a slab of its own whose rows are aligned, two in one tensor
whose rows are not, guard bytes before, between and after all of them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable

import torch

from .layout import Layout, Segment, Storage
from .movers import CpuMover, Mover, Pairs

MakeMover = Callable[[Layout], Mover]


def cut(page: int) -> tuple[int, int, int]:
    """The sizes of the three segments of a block of `page` bytes."""
    half, quarter = page // 2, min(page // 4 + 1, page - page // 2)
    return half, quarter, page - half - quarter


def arrange(num_blocks: int, page: int) -> tuple[tuple[int, ...], tuple[Segment, ...]]:
    """Sizes of the tensors, and where the segments lie in them."""
    half, quarter, rest = cut(page)
    row = -(-(half + 8) // 16) * 16  # aligned, with at least eight guard bytes after each
    second, third = quarter + 5, rest + 3
    sizes = (16 + num_blocks * row, 3 + num_blocks * second + 7 + num_blocks * third + 1)
    segments = (
        Segment(0, 16, row, half),
        Segment(1, 3, second, quarter),
        Segment(1, 3 + num_blocks * second + 7, third, rest),
    )
    return sizes, segments


def guards(size: int) -> torch.Tensor:
    """What lies around and between the blocks: no two places alike, so that a moved guard shows."""
    return (torch.arange(size) * 2654435761 >> 16).to(torch.uint8)


class TorchStore:
    """`num_blocks` blocks of `page` bytes on a device, poisoned at first."""

    def __init__(
        self,
        num_blocks: int,
        page: int,
        poison: int,
        *,
        device: str = "cpu",
        mover: MakeMover = CpuMover,
    ) -> None:
        sizes, segments = arrange(num_blocks, page)
        self.page = page
        self.tensors = [guards(n).to(device) for n in sizes]
        self.expected = [tensor.clone() for tensor in self.tensors]
        storages = tuple(Storage(t.data_ptr(), t.numel()) for t in self.tensors)
        self.layout = Layout(num_blocks, storages, segments)
        self.mover = mover(self.layout)
        self._rows = [self._view(self.tensors, segment) for segment in self.layout.segments]
        self._wanted = [self._view(self.expected, segment) for segment in self.layout.segments]
        for rows in self._rows:
            rows.fill_(poison)
        self._windows = [_window(tensor) for tensor in self.tensors] if device == "cpu" else None

    def fill(self, blocks: Iterable[int], value: bytes) -> None:
        """Fill whole blocks with one byte value. Raises `MoveError`."""
        self.mover.fill(blocks, value[0])

    def copy(self, pairs: Pairs) -> None:
        """Copy whole blocks, all reads before all writes. Raises `MoveError`."""
        self.mover.copy(pairs)

    def read(self, block: int, offset: int, size: int) -> bytes:
        """Read part of a block."""
        pieces = self._pieces(block, offset, size)
        if self._windows is not None:
            return b"".join([self._windows[s][at : at + n] for s, at, n in pieces])
        return b"".join([bytes(self.tensors[s][at : at + n].tolist()) for s, at, n in pieces])

    def write(self, block: int, offset: int, data: bytes) -> None:
        """Write part of a block."""
        start = 0
        for storage, at, length in self._pieces(block, offset, len(data)):
            part = data[start : start + length]
            if self._windows is not None:
                self._windows[storage][at : at + length] = part
            else:
                source = torch.frombuffer(bytearray(part), dtype=torch.uint8)
                self.tensors[storage][at : at + length].copy_(source)
            start += length

    def agrees(self, image: torch.Tensor) -> bool:
        """Whether all bytes are those of `image` (blocks by bytes), and all guards are whole."""
        start = 0
        for wanted in self._wanted:
            wanted.copy_(image[:, start : start + wanted.shape[1]])
            start += wanted.shape[1]
        return all(map(torch.equal, self.tensors, self.expected))

    def first_difference(self, image: torch.Tensor) -> str:
        """Where bytes differ from `image`, in words, or nothing."""
        if self.agrees(image):
            return ""
        start = 0
        for rows, wanted in zip(self._rows, self._wanted, strict=True):
            places = (rows != wanted).nonzero()
            if len(places):
                block, byte = places[0].tolist()
                got, due = int(rows[block, byte]), int(wanted[block, byte])
                return f"block {block}, byte {start + byte}: {got:#04x}, not {due:#04x}"
            start += rows.shape[1]
        for number, (tensor, expected) in enumerate(zip(self.tensors, self.expected, strict=True)):
            places = (tensor != expected).nonzero()
            if len(places):
                at = int(places[0])
                return f"guard byte {at} of storage {number}: {int(tensor[at]):#04x}"
        return ""

    def _view(self, tensors: list[torch.Tensor], segment: Segment) -> torch.Tensor:
        shape, strides = (self.layout.num_blocks, segment.size), (segment.stride, 1)
        return tensors[segment.storage].as_strided(shape, strides, segment.offset)

    def _pieces(self, block: int, offset: int, size: int) -> list[tuple[int, int, int]]:
        """Where the bytes of a block lie: (storage, offset in it, size) in order."""
        assert block > 0
        assert 0 <= offset <= self.page - size
        found, start = [], 0
        for segment in self.layout.segments:
            low, high = max(offset, start), min(offset + size, start + segment.size)
            if low < high:
                at = segment.offset + block * segment.stride + low - start
                found.append((segment.storage, at, high - low))
            start += segment.size
        return found


def _window(tensor: torch.Tensor) -> memoryview:
    """The bytes of a tensor on the CPU, which must outlive it."""
    memory = (ctypes.c_ubyte * tensor.numel()).from_address(tensor.data_ptr())
    return memoryview(memory).cast("B")
