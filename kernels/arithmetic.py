"""Where the bytes of a copy lie: every index of the kernel, as small pure functions.

`arithmetic.h` is the same in C, function by function; sizes, offsets and addresses in bytes. The
`pre:` and `post:` lines are contracts: CrossHair confirms them (tests/rules/test_conditions.py),
over all integers unless a `pre:` says less.
"""

from __future__ import annotations

TILE_BYTES = 8192
"""Bytes that one block of threads moves at a time: four 16-byte units a lane."""

LANES = 128
"""Threads of a block."""

MAX_GRID = 2**31 - 1
"""Blocks of threads in a launch: what the first dimension of a CUDA grid holds."""


def tiles_of(size: int) -> int:
    """How many tiles cover a segment.

    pre: size >= 0
    post: (_ - 1) * 8192 < size <= _ * 8192
    """
    return size // TILE_BYTES + (1 if size % TILE_BYTES != 0 else 0)


def tile_start(tile: int) -> int:
    """Where a tile begins in its segment.

    pre: tile >= 0
    post: _ >= 0 and _ % 8192 == 0
    """
    return tile * TILE_BYTES


def tile_length(tile: int, size: int) -> int:
    """How many bytes of a segment a tile has.

    pre: 0 <= tile * 8192 < size
    post: 0 < _ <= 8192
    post: tile * 8192 + _ <= size
    post: _ == 8192 or tile * 8192 + _ == size
    """
    return min(size - tile_start(tile), TILE_BYTES)


def entry_of(tile: int, per_entry: int) -> int:
    """Which entry of the list a tile of the launch belongs to.

    pre: tile >= 0
    pre: per_entry in (1, 2, 3, 5, 32, 64, 1000)
    post: _ * per_entry <= tile < (_ + 1) * per_entry
    """
    return tile // per_entry


def tile_in_entry(tile: int, per_entry: int) -> int:
    """Which tile of its entry that is.

    pre: tile >= 0
    pre: per_entry in (1, 2, 3, 5, 32, 64, 1000)
    post: 0 <= _ < per_entry
    post: (tile - _) % per_entry == 0
    """
    return tile % per_entry


def grid_of(tiles: int) -> int:
    """How many blocks of threads are launched for so many tiles.

    pre: tiles >= 0
    post: _ <= 2147483647 and _ <= tiles
    post: (_ > 0) == (tiles > 0)
    """
    return min(tiles, MAX_GRID)


def byte_offset(block: int, stride: int, tile: int) -> int:
    """The first byte of a tile of a block, counted from the segment's base.

    pre: block >= 0 and stride >= 0 and tile >= 0
    post: _ - tile * 8192 == block * stride
    """
    return block * stride + tile_start(tile)


def common_width(one: int, other: int) -> int:
    """The widest access that can be aligned at both addresses at once.

    pre: one >= 0 and other >= 0
    post: _ in (1, 2, 4, 8, 16)
    post: (_ == 16) == ((one - other) % 16 == 0)
    post: (_ >= 8) == ((one - other) % 8 == 0)
    post: (_ >= 4) == ((one - other) % 4 == 0)
    post: (_ >= 2) == ((one - other) % 2 == 0)
    """
    for width in (16, 8, 4, 2):
        if one % width == other % width:
            return width
    return 1


def head_length(address: int, width: int, length: int) -> int:
    """How many bytes lie before the first aligned unit.

    pre: address >= 0 and length >= 0
    pre: width in (1, 2, 4, 8, 16)
    post: 0 <= _ < width or _ == length
    post: _ <= length
    post: _ == length or (address + _) % width == 0
    """
    return min((width - address % width) % width, length)


def body_units(length: int, head: int, width: int) -> int:
    """How many whole units follow the head.

    pre: 0 <= head <= length
    pre: width in (1, 2, 4, 8, 16)
    post: 0 <= length - head - _ * width < width
    """
    return (length - head) // width


def tail_start(head: int, units: int, width: int) -> int:
    """Where the bytes after the last whole unit begin.

    pre: head >= 0 and units >= 0
    pre: width in (1, 2, 4, 8, 16)
    post: _ - head == units * width
    """
    return head + units * width


def rounds_of(units: int) -> int:
    """How many rounds the lanes need for so many units.

    pre: units >= 0
    post: (_ - 1) * 128 < units <= _ * 128
    """
    return units // LANES + (1 if units % LANES != 0 else 0)


def unit_of(lane: int, round: int) -> int:
    """The unit that a lane moves in a round: each unit has one lane and one round.

    pre: 0 <= lane < 128
    pre: round >= 0
    post: _ // 128 == round and _ % 128 == lane
    """
    return round * LANES + lane
