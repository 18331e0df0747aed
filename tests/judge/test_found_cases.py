"""Sequences that once led the judge or the reference astray, smallest form, judged throughout."""

from __future__ import annotations

from kvspec.driver import Driver
from kvspec.scenarios.play import cache, full, mamba
from kvspec.session import Session
from kvspec.spec import events as ev
from kvspec.spec.clauses import Profile
from kvspec.spec.types import Config, Connector, RequestId
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
