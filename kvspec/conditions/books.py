"""The judge's books (design 4.8): counts of holders, and keys with their index."""

from __future__ import annotations

from kvspec.spec.digests import make_prefix
from kvspec.spec.state import Draft, Entry, State
from kvspec.spec.types import BlockId, Config, Group, GroupId, GroupKind, Identity, Token

from .model import about, settled

POOL = Config(4, 1, (Group(GroupKind.FULL, 2),), 9)
PREFIX = make_prefix(Identity(), tuple(map(Token, range(4))), 1)
THREE = "a pool of 3 blocks"


def draft() -> Draft:
    """Books in which nothing is held or keyed."""
    return Draft(State(POOL))


def entry(length: int) -> Entry:
    """What a key at so many tokens promises."""
    return Entry(GroupId(0), PREFIX, settled(length, 2))


@about("REF.COUNT", "FREE.EXACT", bound=f"{THREE}, up to 4 holders of each of two")
def count_is_the_holders(one: int, held: int, other: int, also: int) -> bool:
    """A block's count is how often it was taken hold of, and the free ones are those of count 0.

    pre: 1 <= one < other <= 3 and 0 <= held <= 4 and 0 <= also <= 4
    post: _
    """
    books = draft()
    for block, times in ((one, held), (other, also)):
        for _ in range(times):
            books.hold(BlockId(block))
    counts = [books.count(BlockId(block)) for block in (one, other)]
    return counts == [held, also] and books.num_free == 3 - (held > 0) - (also > 0)


@about("REF.COUNT", "FREE.EXACT", bound=f"{THREE}, up to 4 holders")
def last_holder_frees(block: int, held: int, dropped: int) -> bool:
    """Each holder that lets go takes one off the count; the block is free when none is left.

    pre: 1 <= block <= 3 and 0 <= dropped <= held <= 4
    post: _
    """
    books = draft()
    for _ in range(held):
        books.hold(BlockId(block))
    for _ in range(dropped):
        books.drop(BlockId(block))
    left = books.count(BlockId(block))
    return left == held - dropped and books.num_free == (3 if left == 0 else 2)


@about("REG.PROMOTED", bound=f"{THREE}, keys at 1 and 2 tokens")
def new_key_replaces_the_old(block: int, first: int, second: int) -> bool:
    """A block that is keyed anew is found under the new key only.

    pre: 1 <= block <= 3 and 1 <= first <= 2 and 1 <= second <= 2
    post: _
    """
    books, name = draft(), BlockId(settled(block, 3))
    books.publish(name, entry(first))
    books.publish(name, entry(second))
    found: bool = books.index == {entry(second).key: {name}}
    return found and books.keys == {name: entry(second)}


@about("EVICT.TAKEN", "EVICT.ASKED", bound=f"{THREE}, keys at 1 and 2 tokens")
def dropped_key_leaves_others(one: int, other: int, first: int, second: int) -> bool:
    """A block whose key is dropped is found no more; another under the same key still is.

    pre: 1 <= one < other <= 3 and 1 <= first <= 2 and 1 <= second <= 2
    post: _
    """
    books, dropped, kept = draft(), BlockId(settled(one, 3)), BlockId(settled(other, 3))
    books.publish(dropped, entry(first))
    books.publish(kept, entry(second))
    books.unpublish(dropped)
    found: bool = books.index == {entry(second).key: {kept}}
    return found and books.entry(dropped) is None
