"""Faults of what moves the bytes on a CPU; those of the CUDA source are in tests/kernels."""

from __future__ import annotations

from kvspec.mutants.load import Edit
from kvspec.mutants.model import KERNELS, Mutant

COPY = "move(base + destination * stride, base + source * stride, size)"
EACH_SEGMENT = "        for base, stride, size in self._rows:\n"
COPIED, FILLED = "            for source, destination in direct:", "            for block in named:"
FILL = "ctypes.memset(base + block * stride, value, size)"


def _mover(id: str, title: str, old: str, new: str, *atlas: str) -> Mutant:
    return Mutant(id, "DATA.KERNEL", title, (Edit("movers", old, new),), atlas, package=KERNELS)


MUTANTS = [
    _mover(
        "kernel-copy-short",
        "a copy leaves out the last byte of each segment",
        COPY,
        "move(base + destination * stride, base + source * stride, size - 1)",
        "H4",
    ),
    _mover(
        "kernel-copy-long",
        "a copy takes one byte more than the segment has",
        COPY,
        "move(base + destination * stride, base + source * stride, size + 1)",
        "H4",
    ),
    _mover(
        "kernel-copy-first",
        "a copy moves the first segment of a block only",
        EACH_SEGMENT + COPIED,
        EACH_SEGMENT.replace("_rows", "_rows[:1]") + COPIED,
        "H4",
    ),
    _mover(
        "kernel-copy-stride",
        "the place of a copy's destination is worked out from the size and not from the stride",
        COPY,
        "move(base + destination * size, base + source * stride, size)",
        "H4",
    ),
    _mover(
        "kernel-copy-wrapped",
        "the offset of a copy's source wraps, after eight bits here",
        COPY,
        "move(base + destination * stride, base + source * stride % 256, size)",
        "H3",
    ),
    _mover(
        "kernel-copy-back",
        "a copy goes from the destination to the source",
        COPY,
        "move(base + source * stride, base + destination * stride, size)",
    ),
    _mover(
        "kernel-fill-long",
        "filling a block runs one byte over its end",
        FILL,
        "ctypes.memset(base + block * stride, value, size + 1)",
        "H2",
    ),
    _mover(
        "kernel-fill-short",
        "filling a block leaves its last segment as it was",
        EACH_SEGMENT + FILLED,
        EACH_SEGMENT.replace("_rows", "_rows[:-1]") + FILLED,
        "H1",
    ),
    _mover(
        "kernel-fill-zero",
        "what is freed is filled with zeros, which read like a fresh block",
        FILL,
        "ctypes.memset(base + block * stride, 0, size)",
        "H1",
    ),
]
