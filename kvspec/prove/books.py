"""What a manager's future answers depend on, beyond what it shows.

For each of our managers every attribute is read here, or named with the reason why it need not be:
`tests/prove/test_books.py` compares with the attributes that the classes have. Any other manager
is told apart by all it holds, without renaming: sound, but its worlds are larger.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any, Protocol

from kvspec.optimized.manager import Manager as Fast
from kvspec.reference.manager import Manager as Plain

from .naming import Code, Naming


class Hidden(Protocol):
    """How to read one kind of manager."""

    def free_list(self, manager: Any) -> Sequence[int]:
        """The free blocks, next to be taken first."""

    def code(self, naming: Naming, manager: Any) -> Any:
        """All that the manager's answers can depend on, renamed."""


def hidden(manager: Any) -> Hidden:
    """How to read this manager; a subclass is read as ours, so it may hold nothing of its own."""
    if isinstance(manager, Plain):
        return PlainBooks
    if isinstance(manager, Fast):
        return FastBooks
    return AnyBooks


def _last(base: int, step: int) -> int:
    """A step counted from the last processed one; those processed are alike."""
    return max(step - base, 0)


def _ranked(naming: Naming, base: int, retained: Any) -> Code:
    reached = sorted({step for step, _ in retained if step <= base})
    return tuple(
        [
            (step - base if step > base else reached.index(step) - len(reached), naming.table(ends))
            for step, ends in retained
        ]
    )


class PlainBooks:
    """The reference manager."""

    @staticmethod
    def free_list(manager: Plain) -> Sequence[int]:
        """The free blocks."""
        return manager.pool.free_list

    @staticmethod
    def code(naming: Naming, m: Plain) -> Code:
        """All of it."""
        base = m.processed
        return (
            tuple([_plain_request(naming, m, name) for name in naming.order]),
            tuple(sorted([(naming.block(b), n) for b, n in enumerate(m.pool.refs) if n])),
            _plain_index(naming, m),
            _plain_lookup(naming, m),
            (m.step - base),
            naming.table(m.to_zero),
            naming.pairs(m.copies),
            _ranked(naming, base, m.retained),
            tuple([(fence - base, naming.table(blocks)) for fence, blocks in m.fenced]),
        )


def _plain_request(naming: Naming, m: Plain, name: Any) -> Code:
    r, base, detached = m.requests.get(name), m.processed, m.detached.get(name)
    held: Code = ()
    if detached is not None:
        blocks, pins, fence = detached
        held = naming.table(blocks), naming.table(pins), _last(base, fence)
    chunk: Code = ()
    if name in m.chunks:
        end, writes = m.chunks[name]
        chunk = end, tuple([(naming.block(block), position) for block, position in writes])
    if r is None:
        return held, chunk
    return (
        held,
        chunk,
        naming.tokens(r.prefix.tokens),
        (r.num_prompt_tokens, r.computed, r.local, r.registered, r.loading),
        naming.tables(r.tables),
        _last(base, r.last_step),
        naming.table(r.pins),
        tuple([(group, naming.block(block), length) for group, block, length in r.offers]),
    )


def _plain_index(naming: Naming, m: Plain) -> Code:
    """Keys by block, and the order among blocks of one key."""
    keys = m.pool.keys
    by_block = sorted([(naming.block(b), b) for b in keys])
    entries = [(n, keys[b][0][0], naming.digest(keys[b][0][1]), keys[b][1]) for n, b in by_block]
    rings = [
        (group, naming.digest(digest), naming.table(blocks))
        for (group, digest), blocks in m.pool.index.items()
    ]
    return tuple(entries), tuple(sorted(rings, key=repr))


def _plain_lookup(naming: Naming, m: Plain) -> Code:
    if m.last_lookup is None:
        return ()
    name, result = m.last_lookup
    return naming.requests[name], _result(naming, result)


def _result(naming: Naming, result: Any) -> Code | None:
    """A hit, and the one that it was cut from."""
    if result is None:
        return None
    whole, states = _result(naming, result.whole), tuple(result.states)
    return naming.tables(result.blocks), result.num_tokens, states, whole


class FastBooks:
    """The optimized manager."""

    @staticmethod
    def free_list(manager: Fast) -> Sequence[int]:
        """The free blocks."""
        return list(manager.pool.free)

    @staticmethod
    def code(naming: Naming, m: Fast) -> Code:
        """All of it."""
        fences, lists = m.fences, m.lists
        base, fenced = fences.processed, fences.fenced
        return (
            tuple([_fast_request(naming, m, name) for name in naming.order]),
            tuple(sorted([(naming.block(b), n) for b, n in enumerate(m.pool.refs) if n])),
            _fast_index(naming, m),
            _fast_lookup(naming, m),
            fences.dispatched - base,
            naming.table(lists.to_zero),
            naming.pairs(lists.copies),
            naming.bag(lists.copied_into),
            tuple(sorted([(naming.block(b), at) for b, at in lists.writes.items()])),
            _ranked(naming, base, fences.retained),
            tuple(sorted([(fence - base, naming.table(fenced[fence])) for fence in fenced])),
            _offers(naming, m.offers),
        )


def _offers(naming: Naming, offers: Any) -> Code:
    owners = [
        (naming.block(block), naming.requests[r.name]) for block, r in offers.of_block.items()
    ]
    offering = [naming.requests[r.name] for r in offers.offering.values()]
    return tuple(sorted(owners)), tuple(sorted(offering))


def _fast_request(naming: Naming, m: Fast, name: Any) -> Code:
    r, base, detached = m.requests.get(name), m.fences.processed, m.detached.get(name)
    held: Code = ()
    if detached is not None:
        fence = _last(base, detached.fence)
        held = naming.table(detached.blocks), naming.table(detached.pins), fence
    if r is None:
        return held, name in m.lists.granted
    chunk = (r.chunk_start, r.chunk_end) if name in m.lists.granted else ()
    chain = r.chain
    return (
        held,
        chunk,
        (chain.count, naming.digest(chain.digests[-1]), _rest(naming, chain)),
        (r.tail, r.computed, r.local, r.registered, r.loading),
        naming.tables(r.tables),
        naming.tables(r.table()),
        tuple(r.low),
        _last(base, r.last_step),
        naming.table(r.pins),
        tuple([(group, naming.block(block), length) for group, block, length in r.offers]),
    )


def _rest(naming: Naming, chain: Any) -> Code:
    """The tokens after the last complete unit."""
    known = naming.words.get(chain.digests[-1])
    if known is None:
        return tuple(chain.rest)
    return naming.tokens((*known, *chain.rest))[len(known) :]


def _fast_index(naming: Naming, m: Fast) -> Code:
    """Keys by block with its links, and the oldest block of each key."""
    index = m.pool.index
    blocks = sorted([(naming.block(b), b) for b, length in enumerate(index.length_of) if length])
    entries = [
        (
            n,
            index.group_of[b],
            naming.digest(index.digest_of[b]),
            index.length_of[b],
            naming.block(index.newer[b]),
            naming.block(index.older[b]),
        )
        for n, b in blocks
    ]
    heads = [
        (g, naming.block(block), naming.digest(digest))
        for g, found in enumerate(index.oldest)
        for digest, block in found.items()
    ]
    return tuple(entries), tuple(sorted(heads, key=repr))


def _fast_lookup(naming: Naming, m: Fast) -> Code:
    if m.asked is None or m.found is None:
        return ()
    return naming.requests[m.asked], _result(naming, m.found)


class AnyBooks:
    """A manager that nothing is known of."""

    @staticmethod
    def free_list(_: Any) -> Sequence[int]:
        """What is taken next is hidden in all the rest."""
        return ()

    @staticmethod
    def code(_: Naming, manager: Any) -> bytes:
        """All that it holds, as it is pickled."""
        return pickle.dumps(manager)
