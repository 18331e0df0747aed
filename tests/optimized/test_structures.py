"""Each structure of the fast manager on its own: every branch, then a storm against a model."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import random
from collections import deque
from dataclasses import MISSING, fields

import pytest

from kvspec import optimized
from kvspec.optimized.chunk_rule import chunk_tokens
from kvspec.optimized.digest_chain import DigestChain
from kvspec.optimized.fences import Fences
from kvspec.optimized.free_list import FreeList
from kvspec.optimized.index import Index
from kvspec.optimized.manager import Manager
from kvspec.optimized.offers import Offers
from kvspec.optimized.pool import Pool
from kvspec.optimized.requests import Request
from kvspec.spec import events as ev
from kvspec.spec.digests import make_prefix
from kvspec.spec.types import (
    Adapter,
    BlockId,
    Config,
    Digest,
    Group,
    GroupKind,
    Identity,
    Media,
    RequestId,
    Token,
)

MODULES = [f"kvspec.optimized.{found.name}" for found in pkgutil.iter_modules(optimized.__path__)]
X, Y, Z = Digest(b"x"), Digest(b"y"), Digest(b"z")


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_in_docstrings_are_true(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def tokens(count: int, alphabet: int = 2, seed: int = 0) -> tuple[Token, ...]:
    rng = random.Random(seed)
    return tuple(Token(rng.randrange(alphabet)) for _ in range(count))


# --- the free list ------------------------------------------------------------------------------


def test_free_list_is_emptied_and_filled_from_both_ends() -> None:
    free = FreeList(4)
    assert free.take_many(3) == [1, 2, 3]
    free.check()
    assert (free.count, list(free)) == (0, [])
    free.push_back_many([2])
    free.push_front_many([3])
    free.push_back_many([1])
    free.check()
    assert list(free) == [3, 2, 1]
    assert free.take_many(0) == []


def test_free_list_loses_its_first_its_last_and_its_only_block() -> None:
    free = FreeList(5)
    for block, left in ((1, [2, 3, 4]), (4, [2, 3]), (3, [2]), (2, [])):
        free.remove_many([block])
        free.check()
        assert list(free) == left
        assert block not in free


def test_the_null_block_is_never_in_the_free_list() -> None:
    free = FreeList(3)
    assert 0 not in free
    for refused in (free.push_front_many, free.push_back_many, free.remove_many):
        with pytest.raises(AssertionError, match="null"):
            refused([0])


def test_free_list_refuses_what_is_in_already_what_is_out_and_more_than_there_is() -> None:
    free = FreeList(4)
    free.remove_many([2])
    for refused in (free.push_front_many, free.push_back_many):
        with pytest.raises(AssertionError, match="block 3 is free already"):
            refused([3])
    with pytest.raises(AssertionError, match="block 2 is not free"):
        free.remove_many([2])
    with pytest.raises(AssertionError, match="3 wanted, 2 free"):
        free.take_many(3)


@pytest.mark.parametrize("push", ["push_front_many", "push_back_many"])
def test_free_list_refuses_a_block_named_twice(push: str) -> None:
    free = FreeList(4)
    free.take_many(3)
    with pytest.raises(AssertionError, match="block 2 is free already"):
        getattr(free, push)([2, 2])


def test_free_list_storm() -> None:
    rng = random.Random(1)
    for size in (2, 3, 12):
        free, model, out = FreeList(size), deque(range(1, size)), list[int]()
        for _ in range(2000):
            rng.shuffle(out)
            some = [out.pop() for _ in range(rng.randint(0, len(out)))]
            match rng.randrange(4):
                case 0:
                    free.push_front_many(some)
                    model.extendleft(some)
                case 1:
                    free.push_back_many(some)
                    model.extend(some)
                case 2:
                    picked = rng.sample(list(model), rng.randint(0, len(model)))
                    free.remove_many(picked)
                    model = deque(block for block in model if block not in picked)
                    out += picked + some
                case 3:
                    count = rng.randint(0, len(model))
                    taken = free.take_many(count)
                    assert taken == [model.popleft() for _ in range(count)]
                    out += taken + some
            free.check()
            assert list(free) == list(model)
            assert free.count == len(model)


@pytest.mark.parametrize(
    ("field", "value"), [("after", [2, 2, 3, 0]), ("before", [3, 0, 3, 2]), ("count", 2)]
)
def test_free_list_check_dumps_every_field_when_one_is_wrong(field: str, value: object) -> None:
    free = FreeList(4)
    free.check()
    setattr(free, field, value)
    with pytest.raises(AssertionError, match=r"free list: .*after=.*before=.*count="):
        free.check()


# --- the index ----------------------------------------------------------------------------------


def test_the_copy_keyed_longest_is_found_and_the_next_one_after_it() -> None:
    index = Index(6, 2)
    for block in (4, 2, 5):
        index.publish(block, 1, X, 8)
    index.check()
    for block, left in ((4, [2, 5]), (5, [2]), (2, [])):
        index.unpublish_many([block])
        index.check()
        assert index.copies(1, X) == left
        assert index.oldest[1].get(X) == (left[0] if left else None)
    assert index.oldest == [{}, {}]


def test_a_copy_in_the_middle_leaves_and_comes_back_as_the_newest() -> None:
    index = Index(6, 1)
    index.publish_run([1, 2, 3, 4], 0, [X, X, X, X], 8, 0)
    index.publish(2, 0, X, 8)
    index.check()
    assert index.copies(0, X) == [1, 3, 4, 2]
    index.publish(1, 0, X, 8)
    assert index.copies(0, X) == [3, 4, 2, 1]


def test_a_block_has_one_key_at_most() -> None:
    index = Index(4, 2)
    index.publish(1, 0, X, 6)
    index.publish(1, 1, Y, 8)
    index.check()
    assert index.oldest == [{}, {Y: 1}]
    assert (index.group_of[1], index.digest_of[1], index.length_of[1]) == (1, Y, 8)


def test_groups_do_not_find_each_others_blocks() -> None:
    index = Index(4, 2)
    index.publish(1, 0, X, 8)
    index.publish(2, 1, X, 8)
    assert (index.copies(0, X), index.copies(1, X)) == ([1], [2])


def test_dropping_a_key_that_is_not_there_does_nothing() -> None:
    index = Index(3, 1)
    index.unpublish_many([0, 1, 2])
    index.check()


def test_the_index_refuses_to_key_the_null_block_or_no_tokens() -> None:
    index = Index(3, 1)
    with pytest.raises(AssertionError, match="null block"):
        index.publish(0, 0, X, 8)
    with pytest.raises(AssertionError, match="before the first token"):
        index.publish(1, 0, X, 0)


def test_index_storm() -> None:
    rng, index = random.Random(2), Index(8, 2)
    model: dict[tuple[int, Digest], list[int]] = {}
    for _ in range(4000):
        blocks = rng.sample(range(1, 8), rng.randint(1, 3))
        group, digest, what = rng.randrange(2), rng.choice([X, Y, Z]), rng.randrange(20)
        for block in blocks:
            for held in model.values():
                if block in held:
                    held.remove(block)
        if what == 0:
            index.clear()
            model = {}
        elif what < 10:
            index.unpublish_many(blocks)
        else:
            index.publish_run(blocks, group, [digest] * len(blocks), 4, 4)
            model.setdefault((group, digest), []).extend(blocks)
        index.check()
        for (g, d), expected in model.items():
            assert index.copies(g, d) == expected


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("oldest", [{}]), ("oldest", [{X: 1, Y: 3, Z: 4}]), ("newer", [0, 2, 1, 3, 0]),
        ("newer", [0, 1, 0, 0, 0]), ("older", [0, 1, 2, 0, 0]), ("length_of", [0, 8, 0, 4, 0]),
        ("length_of", [0, 8, 8, 4, 4]), ("group_of", [0, 1, 0, 0, 0]),
        ("digest_of", [X, X, X, X, X]),
    ],
)  # fmt: skip
def test_index_check_dumps_every_field_when_one_is_wrong(field: str, value: object) -> None:
    index = Index(5, 1)
    index.publish_run([1, 2, 3], 0, [X, X, Y], 8, 0)
    index.check()
    setattr(index, field, value)
    with pytest.raises(AssertionError, match=r"index: .*digest_of=.*newer=.*oldest="):
        index.check()


# --- the pool -----------------------------------------------------------------------------------


def test_keyed_blocks_are_freed_to_the_back_and_bare_ones_to_the_front() -> None:
    pool = Pool(7, 1)
    held = pool.take_many(4)
    pool.index.publish_run([1, 3], 0, [X, Y], 4, 4)
    pool.drop_many(held)
    pool.check()
    assert list(pool.free) == [4, 2, 5, 6, 1, 3]
    assert pool.idle


def test_a_block_that_is_taken_loses_its_key_and_one_that_is_held_keeps_it() -> None:
    pool = Pool(3, 1)
    pool.index.publish_run([1, 2], 0, [X, Y], 4, 4)
    pool.hold_many([0, 1])
    assert not pool.idle
    assert pool.take_many(1) == [2]
    pool.check()
    assert pool.index.oldest == [{X: 1}]


def test_a_block_with_two_holders_is_freed_by_the_second() -> None:
    pool = Pool(3, 1)
    pool.hold_many([2])
    pool.hold_many([2])
    pool.drop_many([2])
    assert list(pool.free) == [1]
    pool.drop_many([2])
    assert list(pool.free) == [2, 1]
    with pytest.raises(AssertionError, match="no holder to lose"):
        pool.drop_many([2])


@pytest.mark.parametrize("refs", [[0, 0, 0], [0, 1, 1], [0, -1, 1], [1, 0, 1]])
def test_pool_check_dumps_every_field_when_one_is_wrong(refs: list[int]) -> None:
    pool = Pool(3, 1)
    pool.hold_many([2])
    pool.check()
    pool.refs = refs
    with pytest.raises(AssertionError, match="pool: "):
        pool.check()


# --- fences -------------------------------------------------------------------------------------


def test_endpoints_wait_for_their_fence_only_with_deferral() -> None:
    for deferral, at_once in ((True, []), (False, [2, 1])):
        fences = Fences(Pool(4, 1), deferral)
        fences.retain(fences.pool.take_many(2))
        assert fences.release_retained(0) == []
        fences.dispatch()
        assert fences.release_retained(1) == at_once
        fences.check()
        fences.process()
        assert list(fences.pool.free) == [1, 2, 3]


def test_what_waits_for_different_steps_is_freed_step_by_step() -> None:
    fences = Fences(Pool(5, 1), True)
    held = fences.pool.take_many(4)
    first, second = fences.dispatch(), fences.dispatch()
    assert not fences.release(held[2:], second)
    assert not fences.release(held[:1], first)
    assert not fences.release(held[1:2], second)
    assert not fences.release([], second + 1)
    fences.process()
    fences.check()
    assert list(fences.pool.free) == [1]
    fences.process()
    assert list(fences.pool.free) == [2, 4, 3, 1]


# --- offers -------------------------------------------------------------------------------------


def test_a_block_that_is_taken_is_offered_no_more_and_the_others_are() -> None:
    offers, r, other = Offers(Pool(9, 2), True), a_request(), a_request()
    other.name = RequestId("b")
    for one, block, length in ((r, 6, 8), (r, 7, 6), (other, 8, 4)):
        offers.add(one, 1, block, length)
    offers.forget([1, 6])
    offers.check([r, other])
    assert r.offered() == ((1, 7, 6),)
    offers.forget([8])
    offers.check([r, other])
    assert offers.drain() == {RequestId("a"): ((1, 7, 6),)}
    assert (r.pins, other.pins) == ([7], [])


# --- requests -----------------------------------------------------------------------------------


def a_request() -> Request:
    r = Request(RequestId("a"), DigestChain(Identity(), tokens(9), 2), 8)
    r.start([[1, 2, 3], [0, 4, 0, 5]], [0, 1])
    return r


def test_a_table_that_was_shown_does_not_change() -> None:
    r = a_request()
    shown = r.table()
    assert r.table() is shown
    r.extend(0, [6])
    r.clear_slots(1, [1])
    assert shown == ((1, 2, 3), (0, 4, 0, 5))
    again = r.table()
    assert again == ((1, 2, 3, 6), (0, 0, 0, 5))
    r.extend(1, [7])
    assert r.table()[0] is again[0]
    r.check([False, True])


def test_blocks_are_freed_tails_first_group_by_group() -> None:
    r = a_request()
    assert r.tails_first() == [3, 2, 1, 5, 4]
    assert r.blocks() == [1, 2, 3, 4, 5]


def test_slots_are_cut_off_the_end() -> None:
    r = a_request()
    assert r.cut(1, 2) == [5]
    assert r.cut(1, 2) == []
    assert r.table() == ((1, 2, 3), (0, 4))
    r.check([False, True])


@pytest.mark.parametrize("wrong", ["gap", "low", "frozen", "whole", "chunk", "groups"])
def test_request_check_dumps_every_field_when_one_is_wrong(wrong: str) -> None:
    r = a_request()
    r.table()
    if wrong == "gap":
        r.clear_slots(0, [1])
    elif wrong == "low":
        r.low[1] = 2
    elif wrong == "frozen":
        r.tables[0].append(7)
    elif wrong == "whole":
        r._whole = ()
    elif wrong == "chunk":
        r.chunk_start = 3
    else:
        r.tables.append([])
    with pytest.raises(AssertionError, match=r"request: .*computed=.*registered=.*tables="):
        r.check([False, True])


# --- digests and chunks -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "identity",
    [
        Identity(), Identity(salt=""), Identity(adapter=Adapter("a", 2)),
        Identity(media=(Media("m", 3, 4), Media("n", 5, 1))),
    ],
)  # fmt: skip
def test_digests_are_those_of_the_spec_however_the_tokens_come(identity: Identity) -> None:
    rng = random.Random(3)
    for unit in (1, 2, 3, 5):
        known = tokens(8)
        prefix, chain = make_prefix(identity, known, unit), DigestChain(identity, known, unit)
        for seed in range(12):
            more = tokens(rng.randint(1, 4), seed=seed)
            prefix = prefix.extended(more)
            chain.extend(more)
            chain.check()
            assert tuple(chain.digests) == prefix.digests
            assert chain.count == len(prefix)


@pytest.mark.parametrize(
    ("block", "prompt", "start", "budget", "cap", "fine", "expected"),
    [
        (512, 10000, 0, 8192, 0, True, [8192, 1536, 256, 16]),
        (512, 10000, 0, 8192, 0, False, [8192, 1536, 272]),
        (11392, 30000, 0, 8192, 0, False, [8192, 3200, 8192, 3200, 7216]),
        (512, 1300, 0, 8192, 384, False, [384, 128, 384, 128, 276]),
    ],
)
def test_the_chunks_of_the_design_s_table(
    block: int, prompt: int, start: int, budget: int, cap: int, fine: bool, expected: list[int]
) -> None:
    found: list[int] = []
    while start < prompt:
        wanted = min(prompt - start, budget, cap or budget)
        lengths = start, wanted, prompt, prompt, block, 32, budget, cap
        found.append(chunk_tokens(*lengths, fine, False, 0))
        start += found[-1]
    assert found == expected


def test_a_chunk_stops_at_the_earliest_stop_inside() -> None:
    assert chunk_tokens(0, 40, 100, 100, 8, 2, 64, 0, False, False, 30) == 24
    assert chunk_tokens(24, 40, 100, 100, 8, 2, 64, 0, False, False, 30) == 40
    assert chunk_tokens(20, 40, 100, 100, 8, 2, 64, 0, False, False, 50) == 4
    assert chunk_tokens(0, 20, 20, 20, 8, 2, 64, 0, False, True, 0) == 8
    assert chunk_tokens(0, 6, 30, 30, 8, 2, 8, 0, False, False, 0) == 0
    assert chunk_tokens(19, 1, 20, 20, 8, 2, 64, 0, True, False, 0) == 1


# --- the manager --------------------------------------------------------------------------------


def a_manager() -> Manager:
    manager = Manager()
    manager.configure(Config(9, 2, (Group(GroupKind.FULL, 2),), 16))
    manager.submit(RequestId("a"), tokens(3))
    manager.begin_step()
    return manager


@pytest.mark.parametrize("kind", [kind for kind in ev.ANSWERS if kind is not Config])
def test_what_an_event_need_not_say_is_what_its_method_takes_it_for(kind: type) -> None:
    method = inspect.signature(getattr(Manager, ev.EVENT_NAMES[kind]))
    taken = {p.name: p.default for p in method.parameters.values() if p.name != "self"}
    said = {field.name: field.default for field in fields(kind)}
    nothing = {MISSING: inspect.Parameter.empty}
    assert taken == {name: nothing.get(value, value) for name, value in said.items()}


def test_it_shows_all_its_books_under_its_name() -> None:
    config = Config(9, 2, (Group(GroupKind.FULL, 2),), 16)
    assert Manager().configure(config) == ev.Capabilities("optimized", shows=ev.SHOWABLE)


def test_an_id_out_of_range_is_refused_before_any_key_is_dropped() -> None:
    manager = a_manager()
    manager.allocate(RequestId("a"), 3)
    for wrong in (0, 9, -1):
        with pytest.raises(ev.Rejected, match=f"block {wrong} is not in"):
            manager.evict((BlockId(1), BlockId(wrong)))
    assert manager.snapshot().keys != {}
    manager.evict((BlockId(1),))
    assert manager.snapshot().keys == {}


def test_a_decode_that_takes_no_block_makes_no_table() -> None:
    manager = a_manager()
    first = manager.allocate(RequestId("a"), 3)
    manager.end_step()
    manager.append(RequestId("a"), tokens(1))
    manager.begin_step()
    again = manager.allocate(RequestId("a"), 1)
    assert again.table is first.table
    assert again.new_blocks == ((),)


@pytest.mark.parametrize("wrong", ["refs", "name", "offers", "writes", "copies", "fences"])
def test_manager_check_finds_structures_that_disagree(wrong: str) -> None:
    manager = a_manager()
    manager.allocate(RequestId("a"), 3)
    manager.check()
    r = manager.requests[RequestId("a")]
    if wrong == "refs":
        manager.pool.hold_many([1])
    elif wrong == "name":
        r.name = RequestId("b")
    elif wrong == "offers":
        r.offers.append((0, 1, 2))
    elif wrong == "writes":
        manager.lists.writes.clear()
    elif wrong == "copies":
        manager.lists.copied_into.add(1)
    else:
        manager.fences.processed = 7
    with pytest.raises(AssertionError, match=r"\w+: "):
        manager.check()
