"""Copy-on-write, retention and fences."""

from __future__ import annotations

from typing import Any

from kvspec.spec import events as ev
from kvspec.spec.types import BlockId, Step

from .play import P6, Play, Scenario, cache, full, mamba


def owner_goes_on(play: Play, **more: Any) -> tuple[ev.Grant, BlockId, BlockId]:
    """P6 is computed, one token was sampled and is granted; the pass is left open.

    Returns the grant, the owner's block and the block that its entry moved to.
    """
    play.start(cache(full(2), mamba(4), **more))
    play.prefill("a", P6)
    play.append("a", 9)
    own = play.table("a")[1][1]
    play.begin()
    grant = play.allocate("a", 1)
    play.expect("granted", grant.granted, True)
    play.expect("copies", [source for source, _ in grant.copies], [own])
    return grant, own, grant.copies[0][1]


def s6(play: Play) -> None:
    """A new request hits inside a block: it gets its own, and a copy."""
    play.start(cache(full(2), mamba(4)))
    play.prefill("a", P6)
    play.finish("a")
    play.submit("b", (*P6, 3, 3))
    play.begin()
    hit = play.lookup("b")
    play.expect("length", hit.num_tokens, 6)
    play.expect("slots", play.sizes(hit.blocks), (3, 2))
    play.expect("null first", hit.blocks[1][0], 0)
    shared = hit.blocks[1][1]
    grant = play.allocate("b", 2)
    new = [block for block in grant.new_blocks[1] if block]
    play.expect("new recurrent blocks", len(new), 1)
    play.expect("not the shared one", new[0] != shared, True)
    play.expect("table position 1", grant.table[1][1], new[0])
    play.expect("copies", grant.copies, ((shared, new[0]),))
    play.expect_key(shared, 6)
    play.step()
    play.expect_key(new[0], 8)
    play.expect_key(shared, 6)


def s7(play: Play) -> None:
    """The owner goes on in its own block: the entry moves to a copy."""
    grant, own, moved = owner_goes_on(play)
    play.expect("new recurrent blocks", grant.new_blocks[1], ())
    play.expect("table keeps its block", grant.table[1][1], own)
    play.expect("moved elsewhere", moved != own, True)
    play.expect_key(own, None)
    play.expect_key(moved, 6)
    play.step()


def s14(play: Play) -> None:
    """In the next step another request hits through the moved block."""
    _, _, moved = owner_goes_on(play)
    play.step()
    play.submit("b", (*P6, 4, 4))
    play.begin()
    hit = play.lookup("b")
    play.expect("length", hit.num_tokens, 6)
    play.expect("through the moved block", hit.blocks[1][1], moved)
    grant = play.allocate("b", 2)
    private = grant.table[1][1]
    play.expect("a private copy", (moved, private) in grant.copies and private != moved, True)
    play.step()


def s15(play: Play) -> None:
    """In the same step the hit is seen but not granted; in the next it is."""
    owner_goes_on(play)
    play.submit("b", (*P6, 4, 4))
    play.expect("length", play.lookup("b").num_tokens, 6)
    play.expect("granted in the same step", play.allocate("b", 2).granted, False)
    play.step()
    play.begin()
    play.expect("length in the next step", play.lookup("b").num_tokens, 6)
    play.expect("granted in the next step", play.allocate("b", 2).granted, True)
    play.step()


def _both_copy(play: Play, delay: bool) -> tuple[ev.Hit, ev.Grant]:
    play.start(cache(full(4), mamba(4)))
    play.prefill("a", P6)
    play.finish("a")
    play.submit("b", (*P6, 3, 3))
    play.begin()
    hit = play.lookup("b")
    play.expect("length", hit.num_tokens, 6)
    play.expect("slots", play.sizes(hit.blocks), (2, 2))
    grant = play.allocate("b", 2, delay_caching=delay)
    pairs = [(hit.blocks[g][1], grant.table[g][1]) for g in (0, 1)]
    play.expect("copies", sorted(grant.copies), sorted(pairs))
    return hit, grant


def s16(play: Play) -> None:
    """Both groups copy; the shared block is held until the copies are released."""
    hit, _ = _both_copy(play, delay=False)
    shared = hit.blocks[0][1]
    play.dispatch()
    play.expect_count(shared, 1)
    play.run()
    play.release()
    play.expect_count(shared, 0)


def s17(play: Play) -> None:
    """With delayed caching the private blocks start unkeyed, the shared ones keep their keys."""
    hit, grant = _both_copy(play, delay=True)
    for g in (0, 1):
        play.expect_key(grant.table[g][1], None)
        play.expect_key(hit.blocks[g][1], 6)
    play.step()


def s19(play: Play) -> None:
    """Both endpoints of the copy are retained until they are released."""
    _, own, moved = owner_goes_on(play)
    copies, _ = play.dispatch()
    play.expect("retained", sorted(copies.retained), sorted((own, moved)))
    play.run()
    play.finish("a")
    for end in (own, moved):
        play.expect("still held", play.state.refs.get(end, 0) > 0, True)
    play.release()
    play.expect_count(own, 0)
    play.expect_count(moved, 0)


def s20(play: Play) -> None:
    """Releasing ahead of the fence queues; at or behind it, and without deferral, it frees."""
    _, own, moved = owner_goes_on(play, deferral=True)
    copies, _ = play.dispatch()
    step = play.state.dispatched
    play.expect("ahead of the fence", play.send(ev.ReleaseRetained(step)).blocks, ())
    queued = (step, (copies.retained,))
    play.expect("queued, to be freed from the end", play.state.fenced[-1], queued)
    play.expect_count(moved, 1)
    play.run()
    play.expect_count(moved, 0)
    play.expect_count(own, 1)
    for deferral in (True, False):
        _, _, moved = owner_goes_on(play, deferral=deferral)
        copies, _ = play.dispatch()
        if deferral:
            play.run()
        released = play.send(ev.ReleaseRetained(Step(play.state.dispatched))).blocks
        play.expect("freed at once, the last first", released, copies.retained[::-1])
        play.expect_count(moved, 0)
        play.run()


SCENARIOS = [
    Scenario("S6", "copy-on-write by a new request", s6),
    Scenario("S7", "copy-on-write by the owner", s7),
    Scenario("S14", "a hit through the moved block", s14),
    Scenario("S15", "a same-step hit is deferred", s15),
    Scenario("S16", "both groups copy", s16),
    Scenario("S17", "both groups copy, caching delayed", s17),
    Scenario("S19", "endpoints are retained", s19),
    Scenario("S20", "release and the fence", s20),
]
