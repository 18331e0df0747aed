"""Faults planted in the text of the kernels, each one line changed."""

from __future__ import annotations

from kvspec.kernels.host import sources

FAULTS = {
    "off-by-one tail": (
        "arithmetic.h",
        "{ return head + units * width; }",
        "{ return head + units * width + 1; }",
    ),
    "32-bit offset": (
        "arithmetic.h",
        "return block * stride + tile_start(tile);",
        "return (unsigned int)block * (unsigned int)stride + tile_start(tile);",
    ),
    "dropped guard": (
        "block_moves.cu",
        "if (unit < units) destination[unit] = held[k];",
        "destination[unit] = held[k];",
    ),
    "wrong stride": (
        "block_moves.cu",
        "u64 to = segment.base + byte_offset(pair.destination, segment.stride, part);",
        "u64 to = segment.base + byte_offset(pair.destination, segment.size, part);",
    ),
    "chain in order": ("block_moves.cu", "if (pair.slot != NO_SLOT) {", "if (false) {"),
    "source alignment alone": (
        "block_moves.cu",
        "u64 width = common_width(from, to);",
        "u64 width = common_width(from, 0);",
    ),
}
"""By name: the file, the text in it, and what stands there instead."""


def planted(name: str) -> dict[str, str]:
    """The sources with a fault."""
    file, right, wrong = FAULTS[name]
    texts = sources()
    assert texts[file].count(right) == 1, f"{file} no longer has one {right!r}"
    texts[file] = texts[file].replace(right, wrong)
    return texts
