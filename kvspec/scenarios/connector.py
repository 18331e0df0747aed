"""Hand-off to a connector."""

from __future__ import annotations

from kvspec.spec import events as ev
from kvspec.spec.types import Connector, RequestId

from .copies import owner_goes_on
from .play import P6, Play, Scenario, cache, full, mamba

A = RequestId("a")


def s8(play: Play) -> None:
    """The moved tail is handed off once, pinned, and let go with its request."""
    play.start(cache(full(2), mamba(4), connector=Connector.UNIFORM))
    play.prefill("a", P6)
    play.expect("before the owner goes on", play.send(ev.TakeOffloads()).offloads, {})
    _, _, moved = owner_goes_on(play, connector=Connector.UNIFORM)
    _, handed = play.dispatch()
    play.expect(
        "handed off", {n: list(o) for n, o in handed.offloads.items()}, {A: [(1, moved, 6)]}
    )
    play.expect("once", play.send(ev.TakeOffloads()).offloads, {})
    play.expect_count(moved, 2)
    play.run()
    play.send(ev.OffloadRead(A))
    play.release()
    play.expect_count(moved, 1)
    play.finish("a")
    play.expect_count(moved, 0)


def s9(play: Play) -> None:
    """Draining rescues the block from the free list, and nobody is handed it."""
    _, _, moved = owner_goes_on(play, connector=Connector.UNIFORM)
    play.send(ev.TakeZeroing())
    play.send(ev.TakeCopies())
    play.release()
    play.expect_count(moved, 0)
    play.send(ev.TakeOffloads())
    play.expect_count(moved, 1)
    play.send(ev.EndStep())
    play.run()
    play.expect("never handed out", moved in play.take_all_free("b"), False)
    play.send(ev.OffloadRead(A))
    play.expect_count(moved, 1)


def s10(play: Play) -> None:
    """A request that dies before draining hands nothing off."""
    owner_goes_on(play, connector=Connector.UNIFORM)
    play.dispatch(offloads=False)
    play.run()
    play.finish("a")
    play.expect("handed off", play.send(ev.TakeOffloads()).offloads, {})
    play.release()


def s11(play: Play) -> None:
    """A prompt that ends on the block hands nothing off."""
    play.start(cache(full(2), mamba(4), connector=Connector.UNIFORM))
    play.prefill("a", (0, 0, 1, 1))
    play.append("a", 9)
    play.begin()
    grant = play.allocate("a", 1)
    play.expect("copies", grant.copies, ())
    _, handed = play.dispatch()
    play.expect("handed off", handed.offloads, {})
    play.run()


SCENARIOS = [
    Scenario("S8", "hand-off and pin", s8),
    Scenario("S9", "rescue from the free list", s9),
    Scenario("S10", "a hand-off dies with its request", s10),
    Scenario("S11", "no hand-off on a block boundary", s11),
]
