"""What a block holds (design 4.11): what was written is read, and nothing else passes for it."""

from __future__ import annotations

from kvspec.spec.content import (
    POISON,
    ZERO,
    RecurrentState,
    first_foreign,
    holds_state,
    write_rows,
)
from kvspec.spec.digests import make_prefix
from kvspec.spec.types import Identity, Token

from .model import about

MINE = make_prefix(Identity(), tuple(map(Token, (0, 0, 0, 0, 0, 0))), 1)
THEIRS = make_prefix(Identity(), tuple(map(Token, (0, 0, 1, 0, 0, 0))), 1)
"""The same up to position 2."""

SIX = "positions 0 to 5"
TWO = f"{SIX}, two prefixes that part at position 2"


@about("DATA.READ", bound=SIX)
def what_was_written_is_read(start: int, end: int, first: int, last: int) -> int | None:
    """Of the positions written for a prefix all are its own, and the first other one is foreign.

    pre: 0 <= start < end <= 6 and start <= first < end and first < last <= 6
    post: _ is None if last <= end else _ == end
    """
    return first_foreign(write_rows(POISON, start, end, MINE), MINE, first, last)


@about("DATA.READ", bound=TWO)
def other_prefix_is_foreign(start: int, end: int, first: int, last: int) -> int | None:
    """What another prefix wrote is foreign where, and only where, it is read past where the two
    part.

    pre: 0 <= start < end <= 6 and start <= first < last <= end
    post: (_ is None) == (last <= 2)
    """
    return first_foreign(write_rows(POISON, start, end, THEIRS), MINE, first, last)


@about("DATA.READ", "COW.WRITE", bound=TWO)
def overwriting_spares_the_rest(start: int, end: int, position: int) -> bool:
    """Writing some positions of a block changes what those hold and no other.

    pre: 2 <= start < end <= 6 and 0 <= position < 6
    post: _
    """
    content = write_rows(write_rows(POISON, 0, 6, MINE), start, end, THEIRS)
    mine = first_foreign(content, MINE, position, position + 1) is None
    return mine == (not start <= position < end)


@about("DATA.READ", "REG.DRAFT", bound=SIX)
def drafts_are_foreign(start: int, end: int, position: int) -> int | None:
    """Where drafts were written no prefix finds its own.

    pre: 0 <= start < end <= 6 and start <= position < end
    post: _ == position
    """
    return first_foreign(write_rows(POISON, start, end, None), MINE, position, position + 1)


@about("DATA.READ", "DATA.ZEROED", bound=SIX)
def nothing_is_read_from_a_fresh_block(position: int, zeroed: bool) -> int | None:
    """A block that was taken, or zeroed, holds no position of any prefix.

    pre: 0 <= position < 6
    post: _ == position
    """
    return first_foreign(ZERO if zeroed else POISON, MINE, position, position + 1)


@about("DATA.STATE", "DATA.KEY", "DATA.OFFLOAD", bound=TWO)
def state_is_of_one_length(written: int, read: int, theirs: bool) -> bool:
    """A state counts as the state of a prefix only at exactly its length, and for another prefix
    only before the two part.

    pre: 1 <= written <= 6 and 1 <= read <= 6
    post: _ == (written == read and (not theirs or read <= 2))
    """
    return holds_state(RecurrentState(THEIRS if theirs else MINE, written), MINE, read)


@about("DATA.READ", "DATA.STATE", bound=SIX)
def rows_and_states_are_never_mixed(length: int) -> bool:
    """A block of states holds no positions, and a block of positions no state.

    pre: 1 <= length <= 6
    post: _
    """
    rows = write_rows(POISON, 0, length, MINE)
    foreign = first_foreign(RecurrentState(MINE, length), MINE, 0, length)
    return not holds_state(rows, MINE, length) and foreign == 0
