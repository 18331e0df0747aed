"""When two states are the same: what the judge knows, in names of `naming`.

Steps are counted from the last processed one. A fence that is reached says nothing, nor does the
content of a block that nobody can read before it changes owner.
"""

from __future__ import annotations

import marshal
from collections.abc import Iterator
from hashlib import blake2b
from itertools import groupby, permutations, product
from typing import Any

from kvspec.spec.content import Content, RecurrentState
from kvspec.spec.digests import make_prefix
from kvspec.spec.state import HandOff, LastLookup, Pass, Request, State, Work, touched_blocks
from kvspec.spec.types import Identity, RequestId

from .books import AnyBooks, hidden
from .menu import remembered_names
from .naming import Code, Naming, Words
from .worlds import ALPHABET, World

KEY_BYTES = 16
"""Bytes of the hash under which a state is remembered: among 10^8 states the chance that any two
share one is below 10^-22."""


def words_of(world: World) -> Words:
    """The tokens of every prefix that a request of this world can have, by digest."""
    config = world.config
    found = {}
    for tokens in product(ALPHABET, repeat=config.max_model_len):
        prefix = make_prefix(Identity(), tokens, config.hash_unit)
        for units, digest in enumerate(prefix.digests):
            found[digest] = tokens[: units * config.hash_unit]
    return found


def key_of(words: Words, state: State, managers: tuple[Any, ...], plain: bool = False) -> bytes:
    """The hash of what a state and the managers behind it are, whatever their parts are called."""
    plain = plain or any(hidden(manager) is AnyBooks for manager in managers)
    free = hidden(managers[0]).free_list(managers[0])
    codes = []
    for order in _orders(state, plain):
        naming = Naming(words, order, plain=plain)
        code = [naming.table(free), judged(naming, state)]
        code += [hidden(manager).code(naming, manager) for manager in managers]
        codes.append(marshal.dumps(code, 2))
    return blake2b(min(codes), digest_size=KEY_BYTES).digest()


def _orders(state: State, plain: bool) -> Iterator[tuple[RequestId, ...]]:
    """The orders in which requests may be numbered: by what needs no number, ties in all ways."""
    names = remembered_names(state)
    if plain:
        yield tuple(sorted(names))
        return
    told = sorted((_silhouette(state, name), name) for name in names)
    ties = [[name for _, name in tie] for _, tie in groupby(told, key=lambda one: one[0])]
    for chosen in product(*(permutations(tie) for tie in ties)):
        yield tuple(name for tie in chosen for name in tie)


def _silhouette(state: State, name: RequestId) -> Code:
    """What is told of a request without naming a block, a token or another request."""
    request, detached = state.requests.get(name), state.detached.get(name)
    withdrawn = state.open is not None and name in state.open.withdrawn
    dead = name in state.dead_offers
    code: Code = (withdrawn, dead, len(detached.blocks) if detached else -1)
    if request is None:
        return code
    last, loading = request.last_step - state.processed, request.loading
    shapes = tuple([tuple([state.refs.get(b, 0) for b in t]) for t in request.tables])
    lengths = len(request.prefix), request.num_prompt_tokens, request.computed, request.local
    return (*code, lengths, max(last, 0), loading, shapes)


# --- what the judge knows -------------------------------------------------------------------------


def judged(naming: Naming, state: State) -> Code:
    """All that the judge's verdicts can depend on. Held blocks are met first, in a set order."""
    base = state.processed
    code = [
        tuple([_request(naming, state, name) for name in naming.order]),
        _retained(naming, state.retained, base),
        tuple([(fence - base, naming.tables(lists)) for fence, lists in state.fenced]),
        tuple([_work(naming, state, work) for work in state.in_flight]),
        _pass(naming, state, state.open),
        (state.dispatched - base, state.executed - base),
        _lookup(naming, state.last_lookup),
        naming.bag(state.zero_due),
        naming.bag(state.zero_allowed),
        tuple(sorted([naming.requests[name] for name in state.dead_offers])),
    ]
    for block in sorted(state.refs.keys() - naming.blocks.keys()) if not naming.plain else ():
        naming.block(block)  # a holder that no list shows: cannot be, but must not be lost
    code.append(tuple(sorted([(naming.block(b), n) for b, n in state.refs.items()])))
    code.append(_blocks(naming, state))
    return tuple(code)


def _request(naming: Naming, state: State, name: RequestId) -> Code:
    offers = tuple([_hand_off(naming, state, offer) for offer in state.offers.get(name, ())])
    detached: Any = state.detached.get(name)
    if detached is not None:
        pins = tuple([_hand_off(naming, state, pin) for pin in detached.pins])
        fence = max(detached.fence - state.processed, 0)
        detached = naming.table(detached.blocks), pins, detached.reading, fence
    request = state.requests.get(name)
    if request is None:
        return offers, detached
    return offers, detached, _live(naming, state, request)


def _live(naming: Naming, state: State, r: Request) -> Code:
    return (
        naming.tokens(r.prefix.tokens),
        (r.num_prompt_tokens, r.computed, r.registered, r.local),
        (r.resumable, r.loading, r.reading, r.refused),
        naming.tables(r.tables),
        naming.tables(r.worker),
        max(r.last_step - state.processed, 0),
        tuple([_hand_off(naming, state, pin) for pin in r.pins]),
    )


def _hand_off(naming: Naming, state: State, pin: HandOff) -> Code:
    prefix = naming.prefix(pin.prefix, pin.boundary)
    step = max(pin.step - state.executed, 0)
    return pin.group, naming.block(pin.block), pin.boundary, prefix, step


def _retained(naming: Naming, retained: Any, base: int) -> Code:
    """Endpoints by step; of steps already processed only their order tells."""
    reached = sorted({step for step, _ in retained if step <= base})
    return tuple(
        [
            (step - base if step > base else reached.index(step) - len(reached), naming.table(ends))
            for step, ends in retained
        ]
    )


def _work(naming: Naming, state: State, work: Work) -> Code:
    """A step: all of it until it has run, then only what it touched.

    Whose its chunks are is told by `_pass` while that matters: until they are dispatched.
    """
    if work.number <= state.executed:
        return (work.number - state.processed, naming.bag(touched_blocks(state.config, work)))
    forwards = [
        (naming.prefix(f.prefix, f.end), (f.start, f.end), naming.tables(f.tables))
        for f in work.forwards
    ]
    lists = naming.table(work.taken), naming.table(work.zeroed), naming.pairs(work.copies)
    return (work.number - state.processed, *lists, tuple(forwards))


def _pass(naming: Naming, state: State, current: Pass | None) -> Code | None:
    if current is None:
        return None
    granted = [(naming.requests[name], naming.table(hits)) for name, hits in current.granted]
    withdrawn = sorted([naming.requests[name] for name in current.withdrawn])
    work = _work(naming, state, current.work)
    whose = tuple([naming.requests[forward.request] for forward in current.work.forwards])
    return (work, whose, tuple(granted), tuple(withdrawn), current.drained, current.copies_taken)


def _lookup(naming: Naming, last: LastLookup | None) -> Code | None:
    if last is None:
        return None
    blocks, whole = naming.tables(last.blocks), _lookup(naming, last.whole)
    return naming.requests[last.request], blocks, last.num_tokens, last.states, last.guessed, whole


def _blocks(naming: Naming, state: State) -> Code:
    """Keys and contents, block by block, of those whose content somebody may still read."""
    alive = {*state.refs, *state.keys}
    for work in state.in_flight:
        if work.number > state.executed:
            alive |= touched_blocks(state.config, work)
    numbered = sorted([(naming.block(block), block) for block in alive])
    found = []
    for number, block in numbered:
        entry, key = state.keys.get(block), None
        if entry is not None:
            key = entry.group, naming.prefix(entry.prefix, entry.length), entry.moved
        found.append((number, key, _content(naming, state.contents.get(block))))
    return tuple(found)


def _content(naming: Naming, content: Content | None) -> Code | None:
    if content is None:
        return None
    if isinstance(content, RecurrentState):
        return (naming.prefix(content.prefix, content.length),)
    runs = [(run.start, run.end, naming.prefix(run.prefix, run.end)) for run in content.runs]
    return content.base.value, tuple(runs)
