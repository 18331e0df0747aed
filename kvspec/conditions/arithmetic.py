"""Index arithmetic: covering amounts by pieces, and what a configuration derives from its sizes."""

from __future__ import annotations

from kvspec.spec.tables import state_slot
from kvspec.spec.types import Config, Group, GroupKind, align_down, ceil_div

from .model import about

SIZES = "sizes 1, 2, 3, 16, 512 and 11392"
UNITS = "hash unit 1 to 3, block sizes of 1 to 3 hash units"


def is_size(size: int) -> bool:
    """Whether a size is among `SIZES`: z3 decides division by a constant only."""
    return size in (1, 2, 3, 16, 512, 11392)


@about("HIT.SHAPE", "TABLE.SHAPE", bound=SIZES)
def pieces_cover(amount: int, size: int) -> int:
    """So many pieces cover an amount, and one fewer would not.

    pre: amount >= 0 and is_size(size)
    post: (_ - 1) * size < amount <= _ * size
    """
    return ceil_div(amount, size)


@about("HIT.ALIGNED", "CHUNK.END", bound=SIZES)
def aligned_is_nearest(amount: int, size: int) -> int:
    """Aligning down gives a multiple, and no larger one fits.

    pre: amount >= 0 and is_size(size)
    post: _ % size == 0
    post: _ <= amount < _ + size
    """
    return align_down(amount, size)


@about("DATA.STATE", "REG.EXACT", bound=SIZES)
def state_lies_in_its_block(length: int, size: int) -> int:
    """The state after some tokens lies in the block of the last of them.

    pre: length >= 1 and is_size(size)
    post: _ * size < length <= (_ + 1) * size
    """
    return state_slot(Group(GroupKind.MAMBA_ALIGN, size), length)


def cache_of(unit: int, full: int, state: int) -> Config:
    """A cache whose block sizes are so many hash units."""
    groups = Group(GroupKind.FULL, unit * full), Group(GroupKind.MAMBA_ALIGN, unit * state)
    return Config(9, unit, groups, 99)


@about("HIT.ALIGNED", bound=UNITS)
def alignment_suits_every_group(unit: int, full: int, state: int) -> int:
    """Hits align to what each group can key: to hash units, and to blocks outside fine mode.

    pre: unit in (1, 2, 3) and full in (1, 2, 3) and state in (1, 2, 3)
    post: _ == unit if state > 1 else _ % (unit * full) == _ % (unit * state) == 0
    """
    return cache_of(unit, full, state).alignment


@about("HIT.LENGTH", bound=UNITS)
def eagle_drops_to_an_end(unit: int, full: int, state: int) -> int:
    """What an eagle group gives up is a hash unit where hits end inside blocks, else a block.

    pre: unit in (1, 2, 3) and full in (1, 2, 3) and state in (1, 2, 3)
    post: _ == (unit if state > 1 else unit * full)
    """
    cache = cache_of(unit, full, state)
    return cache.eagle_unit(cache.groups[0])
