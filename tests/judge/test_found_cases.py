"""Sequences that once led the judge or the reference astray, smallest form, judged throughout."""

from __future__ import annotations

import pytest

from kvspec.driver import Driver
from kvspec.scenarios.play import cache, full, mamba
from kvspec.session import Session
from kvspec.spec import events as ev
from kvspec.spec.clauses import Profile
from kvspec.spec.content import POISON
from kvspec.spec.digests import make_prefix
from kvspec.spec.types import (
    Config,
    Connector,
    Identity,
    InvalidInput,
    Media,
    RequestId,
    Token,
)
from kvspec.targets import find_factory

A = RequestId("a")


def start(config: Config) -> Driver:
    """The fast manager, compared with the plain one event by event."""
    factory = find_factory("optimized")
    return Driver(Session("optimized", factory, config, profile=Profile.EXACT))


def test_a_stale_lookup_does_not_count() -> None:
    """An allocate uses a lookup only when it is directly before."""
    driver = start(cache(full(2), num_blocks=12))
    driver.submit("p", (0, 0, 1, 1))
    driver.compute("p")
    driver.submit("a", (0, 0, 1, 1, 2))
    driver.begin()
    assert driver.lookup("a").num_tokens == 4
    driver.finish("p")
    grant = driver.allocate("a", 5)
    assert grant.granted
    assert len(grant.new_blocks[0]) == 3


def test_a_failed_load_leaves_no_gap_in_a_recurrent_table() -> None:
    """The lost state's slot goes, or slots before it could never be filled for the worker."""
    driver = start(cache(full(4), mamba(2), connector=Connector.UNIFORM))
    driver.submit("a", tuple(range(10)))
    driver.begin()
    driver.allocate("a", 0, 7)
    driver.step()
    driver.send(ev.LoadExternal(A, False))
    assert driver.state.requests[A].tables[1] == ()
    driver.compute("a", "two", "one", "one", "rest")
    assert driver.state.requests[A].computed == 10


def test_a_withdrawn_grant_does_not_poison_its_blocks_next_life() -> None:
    """Its blocks may be loaded into before the step that had taken them runs."""
    config = cache(
        full(3),
        mamba(3),
        hash_unit=3,
        num_blocks=3,
        max_model_len=2,
        connector=Connector.DIVERGING,
        deferral=True,
        max_in_flight=3,
    )
    driver = start(config)
    driver.submit("a", (0, 0))
    driver.begin()
    driver.allocate("a", 1)
    driver.send(ev.Withdraw(A))
    driver.dispatch()
    driver.begin()
    driver.allocate("a", 1, 1)
    driver.send(ev.LoadExternal(A, True))
    driver.dispatch()
    driver.run()
    assert driver.state.requests[A].computed == 2


def test_nothing_leaves_between_draining_and_dispatch() -> None:
    """A block on the zeroing list must not be loaded into before the step that zeroes it."""
    config = cache(
        full(2, zeroed=True), connector=Connector.UNIFORM, deferral=True, max_in_flight=2
    )
    driver = start(config)
    driver.submit("a", (0, 1, 2))
    driver.begin()
    driver.allocate("a", 3)
    assert driver.may(ev.Withdraw(A))
    driver.send(ev.TakeZeroing())
    assert not driver.may(ev.Withdraw(A))


def test_a_withdrawn_block_is_not_zeroed_in_its_next_life() -> None:
    """It leaves the zeroing list with its request; a load may be next to write it."""
    config = cache(
        full(4, zeroed=True),
        num_blocks=6,
        connector=Connector.UNIFORM,
        deferral=True,
        max_in_flight=2,
    )
    driver = start(config)
    driver.submit("a", tuple(range(8)))
    driver.submit("b", tuple(range(20, 28)))
    driver.begin()
    driver.allocate("a", 4)
    driver.dispatch()
    driver.begin()
    driver.allocate("a", 4)
    driver.send(ev.Withdraw(A))
    assert driver.send(ev.TakeZeroing()).blocks == ()
    driver.dispatch()
    driver.send(ev.Execute())
    driver.send(ev.Process())
    driver.begin()
    assert driver.allocate("b", 0, 7).granted


def test_a_hit_is_not_truncated_beyond_its_end() -> None:
    """Slots may reach further than the tokens that they serve."""
    driver = start(cache(full(4), mamba(4)))
    driver.submit("p", (0, 0, 1, 1, 2, 2))
    driver.compute("p")
    driver.finish("p")
    driver.submit("a", (0, 0, 1, 1, 2, 2, 3, 3, 3))
    assert driver.lookup("a").num_tokens == 6
    assert isinstance(driver.send(ev.Truncate(A, 8)), ev.Rejection)


def test_a_view_is_cut_from_the_lookup_and_not_from_another_view() -> None:
    driver = start(cache(full(2), mamba(4), connector=Connector.DIVERGING))
    driver.submit("p", (0, 0, 1, 1, 2, 2, 3, 3))
    driver.compute("p")
    driver.finish("p")
    driver.submit("a", (0, 0, 1, 1, 2, 2, 3, 3, 4))
    whole = driver.lookup("a")
    assert whole.num_tokens == 8
    assert [len(table) for table in driver.send(ev.Truncate(A, 4)).blocks] == [2, 1]
    assert driver.send(ev.Truncate(A, 8)).blocks == whole.blocks


def test_a_reader_may_read_what_was_handed_off_while_a_later_step_is_in_flight() -> None:
    """The copy that fills the block has run; nothing writes it as long as it is pinned."""
    driver = start(
        cache(full(2), mamba(4), connector=Connector.UNIFORM, deferral=True, max_in_flight=2)
    )
    driver.submit("a", (0, 0, 1, 1, 2, 2))
    driver.compute("a")
    driver.append("a", 9)
    driver.begin()
    driver.allocate("a", 1)
    driver.dispatch()
    assert not driver.may(ev.OffloadRead(A))
    driver.send(ev.Execute())
    driver.submit("b", (7, 7))
    driver.begin()
    driver.allocate("b", 2)
    driver.dispatch()
    driver.send(ev.OffloadRead(A))


def test_taking_one_offered_block_leaves_the_other_offers() -> None:
    """Two groups move; one of the copies' destinations is taken by another before draining."""
    driver = start(cache(full(2), mamba(4), mamba(6), connector=Connector.UNIFORM, num_blocks=11))
    driver.submit("a", (0, 0))
    driver.compute("a")
    driver.append("a", 9)
    driver.begin()
    copies = driver.allocate("a", 1).copies
    assert len(copies) == 2
    driver.dispatch(offloads=False)
    driver.run()
    driver.release()
    ends = {destination for _, destination in copies}
    driver.send(ev.Evict(tuple(sorted(ends))[:1]))
    driver.submit("b", tuple(range(20, 20 + 2 * (driver.state.num_free - 3))))
    driver.begin()
    grant = driver.allocate("b", 2 * (driver.state.num_free - 3))
    assert grant.granted
    taken = ends & {block for table in grant.table for block in table}
    assert len(taken) == 1
    handed = driver.send(ev.TakeOffloads()).offloads
    assert {block for _, block, _ in handed[A]} == ends - taken


def test_what_a_reset_cleared_is_nobody_s_prefix() -> None:
    """The weights may be new: without books, it is the data that must not be read again."""
    driver = start(cache(full(2)))
    driver.submit("p", (0, 0, 1, 1))
    driver.compute("p")
    blocks = driver.state.requests[RequestId("p")].tables[0]
    driver.finish("p")
    assert driver.send(ev.Reset()).done
    assert [driver.state.content(block) for block in blocks] == [POISON, POISON]


def test_a_prefix_agrees_with_no_longer_one() -> None:
    short = make_prefix(Identity(), (Token(0), Token(0)), 2)
    assert short.agrees(short, 2)
    assert not short.agrees(short, 4)
    assert not short.agrees(short.extended((Token(1), Token(1))), 4)


@pytest.mark.parametrize(
    ("items", "says"),
    [
        (((0, 2), (1, 2)), "starts before the item in front of it ends"),
        (((2, 1), (0, 1)), "starts before the item in front of it ends"),
        (((0, 5),), "does not lie within the 4 tokens"),
    ],
)
def test_media_stand_in_order_and_apart(items: tuple[tuple[int, int], ...], says: str) -> None:
    """Otherwise the order of the list would be part of the key, and of nothing computed."""
    driver = start(cache(full(2)))
    media = tuple(Media("m", start, length) for start, length in items)
    with pytest.raises(InvalidInput, match=says):
        driver.submit("a", (0, 0, 1, 1), Identity(media=media))


def test_what_the_connector_is_done_with_it_does_not_read_again_when_detached() -> None:
    driver = start(cache(full(2), mamba(4), connector=Connector.UNIFORM))
    driver.submit("a", (0, 0, 1, 1, 2, 2))
    driver.compute("a")
    driver.send(ev.Append(A, (Token(9),)))
    driver.begin()
    driver.allocate("a", 1)
    driver.step()
    assert driver.state.requests[A].pins
    driver.send(ev.OffloadDone(A))
    driver.send(ev.Detach(A))
    assert driver.state.detached[A].pins
    with pytest.raises(InvalidInput, match="offload_done"):
        driver.send(ev.OffloadDone(A))
