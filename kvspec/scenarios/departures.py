"""How requests, loads and keys go before their time: what stays behind, and what must not."""

from __future__ import annotations

from kvspec.spec import events as ev
from kvspec.spec.types import Connector, RequestId

from .copies import owner_goes_on
from .play import P6, Play, Scenario, cache, full, mamba

A = RequestId("a")
B = RequestId("b")


def b1_states(play: Play) -> None:
    """A state that a step in flight starts from waits behind it when its request goes on."""
    play.start(cache(full(2), mamba(2), deferral=True, max_in_flight=2))
    play.submit("a", P6)
    for _ in range(2):
        play.begin()
        play.expect("granted", play.allocate("a", 2).granted, True)
        play.dispatch()
    first = play.table("a")[1][0]
    play.send(ev.Execute())
    play.send(ev.Process())
    play.begin()
    play.expect("granted", play.allocate("a", 2).granted, True)
    play.expect("the first state is off the table", play.table("a")[1][0], 0)
    play.expect_count(first, 1)
    play.dispatch()
    play.send(ev.Execute())
    play.send(ev.Process())
    play.expect_count(first, 0)
    play.run()


def b4(play: Play) -> None:
    """What a withdrawn chunk would have written is not found, nor is the tail it promoted."""
    play.start(cache(full(4), mamba(4)))
    play.prefill("a", P6)
    play.append("a", 3, 3)
    play.begin()
    play.expect("granted", play.allocate("a", 2).granted, True)
    promoted = play.table("a")[0][1]
    play.expect_key(promoted, 8)
    play.send(ev.Withdraw(A))
    play.expect_key(promoted, None)
    play.step()
    play.submit("b", (*P6, 3, 3, 4))
    play.expect("length", play.lookup("b").num_tokens, 0)


def b5(play: Play) -> None:
    """Nothing of a load that failed is found; the request goes on from its local hit."""
    play.start(cache(full(2), mamba(2), connector=Connector.UNIFORM))
    prompt = tuple(range(9))
    play.prefill("p", prompt[:2])
    play.finish("p")
    play.submit("a", prompt)
    play.begin()
    play.expect("length", play.lookup("a").num_tokens, 2)
    play.expect("granted", play.allocate("a", 0, 4).granted, True)
    play.step()
    play.send(ev.LoadExternal(A, False))
    play.submit("b", prompt)
    play.expect("length", play.lookup("b").num_tokens, 2)
    play.compute("a")
    play.expect("computed", play.state.requests[A].computed, 9)


def b5_diverged(play: Play) -> None:
    """Behind a hit without its state a failed load leaves nothing: the request starts over."""
    play.start(cache(full(2), mamba(4), connector=Connector.DIVERGING))
    play.prefill("p", P6)
    state = play.table("p")[1][-1]
    play.finish("p")
    play.send(ev.Evict((state,)))
    play.submit("a", (*P6, *range(20, 24)))
    play.begin()
    hit = play.send(ev.LookupForConnector(A))
    play.expect("length and divergence", (hit.num_tokens, hit.diverged), (6, True))
    play.expect("cut to blocks", play.sizes(play.send(ev.Truncate(A, 4)).blocks), (2, 0))
    play.expect("granted", play.allocate("a", 0, 4).granted, True)
    play.step()
    play.send(ev.LoadExternal(A, False))
    play.expect("may go on", play.may(ev.Allocate(A, 1)), False)
    play.send(ev.Preempt(A))
    play.compute("a")
    play.expect("computed", play.state.requests[A].computed, 10)


def b5_behind(play: Play) -> None:
    """A load goes on where attention's hit ends, over a state that ends a block earlier."""
    play.start(cache(full(2), mamba(4), connector=Connector.DIVERGING))
    prompt = tuple(range(17))
    play.prefill("p", prompt[:12], 4, 4, 4)
    state = play.table("p")[1][-1]
    play.finish("p")
    play.send(ev.Evict((state,)))
    play.submit("a", prompt)
    play.begin()
    hit = play.send(ev.LookupForConnector(A))
    play.expect("length and divergence", (hit.num_tokens, hit.diverged), (12, True))
    play.expect("slots", play.sizes(hit.blocks), (6, 2))
    play.expect("granted", play.allocate("a", 1, 4).granted, True)
    play.send(ev.LoadExternal(A, True))
    play.step()
    play.expect("computed", play.state.requests[A].computed, 17)


def b1_detached(play: Play) -> None:
    """Detached blocks and pins stay held until they are freed, and the connector may read them."""
    _, _, moved = owner_goes_on(play, connector=Connector.UNIFORM)
    play.dispatch()
    play.run()
    play.release()
    listed = play.send(ev.Detach(A)).blocks
    play.expect("the pin comes first", listed[0], moved)
    play.expect("named once each", len(set(listed)), len(listed))
    play.send(ev.OffloadRead(A))
    play.expect("never handed out", set(play.take_all_free("b")) & set(listed), set())
    play.finish("b")
    play.send(ev.FreeDetached(A))
    for block in listed:
        play.expect_count(block, 0)


def f2_twins(play: Play) -> None:
    """Of two equal blocks one is evicted: the other is hit, though both hold the same."""
    play.start(cache(full(2)))
    for name in ("a", "b"):
        play.submit(name, P6)
    play.begin()
    for name in ("a", "b"):
        play.expect("granted", play.allocate(name, 6).granted, True)
    play.step()
    twins = [play.table(name)[0][0] for name in ("a", "b")]
    play.finish("a", "b")
    for evicted, still in ((twins[0], (twins[1],)), (twins[1], ())):
        play.send(ev.Evict((evicted,)))
        play.submit("c", P6)
        play.expect("the first block of the hit", play.lookup("c").blocks[0][:1], still)
        play.finish("c")


def b1_twice(play: Play) -> None:
    """What is detached from a request again is held beside what was detached before."""
    _, _, moved = owner_goes_on(play, connector=Connector.UNIFORM)
    play.step()
    held = [*play.send(ev.Detach(A)).blocks]
    play.expect("the first pin", held[0], moved)
    play.send(ev.Evict(tuple(sorted(play.state.keys))))
    play.compute("a", "tail")
    held += play.send(ev.Detach(A)).blocks
    play.expect("never handed out", set(play.take_all_free("b")) & set(held), set())
    play.finish("b")
    play.send(ev.FreeDetached(A))
    for block in held:
        play.expect_count(block, 0)


def b1_untouched(play: Play) -> None:
    """Detached blocks that no step touches are freed at once, though a step is in flight."""
    config = cache(full(2), connector=Connector.UNIFORM, deferral=True, max_in_flight=2)
    play.start(config)
    play.submit("a", P6)
    play.submit("b", (9, 9))
    play.begin()
    held = play.allocate("a", 0, 4).table[0]
    play.expect("granted", play.allocate("b", 2).granted, True)
    play.dispatch()
    play.send(ev.LoadExternal(A, False))
    play.send(ev.Detach(A))
    play.send(ev.FreeDetached(A))
    for block in held:
        play.expect_count(block, 0)
    play.run()


def f2(play: Play) -> None:
    """Neither eviction nor reset changes what a holder holds; a reset waits for all to let go."""
    play.start(cache(full(2)))
    play.prefill("a", P6)
    first, *others = play.table("a")[0]
    play.send(ev.Evict((first,)))
    play.expect_count(first, 1)
    play.expect_key(first, None)
    play.expect("reset under a holder", play.send(ev.Reset()).done, False)
    for block in others:
        play.expect_key(block, 2 + 2 * others.index(block) + 2)
    play.append("a", 3)
    play.compute("a")
    play.expect("evicted blocks stay unkeyed", play.table("a")[0][0], first)
    play.expect_key(first, None)
    play.finish("a")
    play.expect("reset", play.send(ev.Reset()).done, True)
    play.submit("b", (*P6, 4))
    play.expect("length", play.lookup("b").num_tokens, 0)


def s23(play: Play) -> None:
    """Drafts are computed but never keyed; once said, a block that they complete is."""
    play.start(cache(full(2)))
    play.submit("a", (0, 0, 1))
    play.begin()
    grant = play.allocate("a", 5)
    play.expect("slots for drafts", len(grant.table[0]), 3)
    play.step()
    for block, length in zip(grant.table[0], (2, None, None), strict=True):
        play.expect_key(block, length)
    play.append("a", 1)
    play.compute("a")
    play.expect_key(play.table("a")[0][1], 4)


SCENARIOS = [
    Scenario("B1.states", "a state that a step in flight reads", b1_states),
    Scenario("B1.detached", "blocks and pins are detached", b1_detached),
    Scenario("B1.twice", "a request is detached twice", b1_twice),
    Scenario("B1.untouched", "detached blocks that no step touches", b1_untouched),
    Scenario("B4", "a chunk that will never run", b4),
    Scenario("B5", "a load that fails", b5),
    Scenario("B5.behind", "a load behind a state that falls short", b5_behind),
    Scenario("B5.diverged", "a load that fails behind a diverged hit", b5_diverged),
    Scenario("F2", "eviction and reset under a holder", f2),
    Scenario("F2.twins", "eviction of one of two equal blocks", f2_twins),
    Scenario("S23", "drafts are not keyed", s23),
]
