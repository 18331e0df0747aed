"""What lies in a block when it changes owner: zeroing, loads, steps that are still in flight."""

from __future__ import annotations

from kvspec.spec import events as ev
from kvspec.spec.types import Connector, RequestId

from .play import P6, Play, Scenario, cache, full, mamba

A = RequestId("a")


def h1(play: Play) -> None:
    """Blocks that a group wants zeroed are on the list of the step that takes them, and once."""
    play.start(cache(full(4, zeroed=True), mamba(4), num_blocks=6))
    for name, start in (("a", 0), ("b", 50)):
        play.submit(name, tuple(range(start, start + 6)))
        play.begin()
        table = play.allocate(name, 6).table
        play.expect("zeroed", sorted(play.send(ev.TakeZeroing()).blocks), sorted(table[0]))
        play.expect("nothing twice", play.send(ev.TakeZeroing()).blocks, ())
        play.step()
        play.finish(name)


def h2(play: Play) -> None:
    """A block that a connector fills is not zeroed; when the load fails, it is."""
    groups = full(2, zeroed=True), mamba(2)
    play.start(cache(*groups, connector=Connector.UNIFORM))
    play.submit("a", P6)
    play.begin()
    table = play.allocate("a", 0, 4).table[0]
    play.expect("zeroed under a load", play.send(ev.TakeZeroing()).blocks, ())
    play.step()
    play.send(ev.LoadExternal(A, False))
    play.begin()
    play.expect("goes on", play.allocate("a", 6).granted, True)
    zeroed = play.send(ev.TakeZeroing()).blocks
    play.expect("zeroed once the load failed", sorted(zeroed), sorted(play.table("a")[0]))
    play.expect("attention keeps its blocks", play.table("a")[0][:2], table)
    play.step()


def b1_load(play: Play) -> None:
    """A load is not given blocks that a step in flight still writes, until it was processed."""
    config = cache(
        full(2), num_blocks=4, connector=Connector.UNIFORM, deferral=True, max_in_flight=2
    )
    play.start(config)
    play.submit("a", P6)
    play.begin()
    play.expect("granted", play.allocate("a", 6).granted, True)
    play.dispatch()
    play.finish("a")
    play.submit("b", (30, 31, 32))
    play.begin()
    play.expect("a load while the step is in flight", play.allocate("b", 0, 2).granted, False)
    play.dispatch()
    play.run()
    play.begin()
    play.expect("a load after it was processed", play.allocate("b", 0, 2).granted, True)
    play.step()
    play.send(ev.LoadExternal(RequestId("b"), True))
    play.compute("b")


def b1_other_blocks(play: Play) -> None:
    """Blocks that no step in flight touches may be loaded into at once."""
    config = cache(
        full(2), num_blocks=6, connector=Connector.UNIFORM, deferral=True, max_in_flight=2
    )
    play.start(config)
    play.submit("a", P6)
    play.submit("b", (30, 31, 32))
    play.begin()
    held = play.allocate("a", 6).table[0]
    play.dispatch()
    play.begin()
    loaded = play.allocate("b", 0, 2).table[0]
    play.expect("apart from the step in flight", set(loaded) & set(held), set())
    play.step()
    play.send(ev.LoadExternal(RequestId("b"), True))
    play.compute("b")


def h1_left(play: Play) -> None:
    """Blocks that left their only owner before the step's lists are drained are not zeroed."""
    play.start(cache(full(2, zeroed=True), mamba(2, zeroed=True)))
    play.submit("a", P6)
    play.begin()
    play.expect("granted", play.allocate("a", 6).granted, True)
    play.send(ev.Withdraw(A))
    play.expect("zeroed after a withdrawal", play.send(ev.TakeZeroing()).blocks, ())
    play.step()


def h1_shared(play: Play) -> None:
    """A reader that leaves takes nothing off the list of blocks that their owner goes on with."""
    play.start(cache(full(2, zeroed=True)))
    play.submit("a", P6)
    play.submit("b", P6)
    play.begin()
    table = play.allocate("a", 6).table[0]
    play.expect("hit", play.lookup("b").blocks[0], table[:2])
    play.expect("granted", play.allocate("b", 2).granted, True)
    play.send(ev.Withdraw(RequestId("b")))
    zeroed = play.send(ev.TakeZeroing()).blocks
    play.expect("zeroed though a reader left", sorted(zeroed), sorted(table))
    play.step()


def h2_left(play: Play) -> None:
    """Nor are those of a request that leaves after its load failed, nor its lost states."""
    for event in (ev.Finish(A), ev.Preempt(A), ev.Detach(A)):
        play.start(cache(full(2, zeroed=True), connector=Connector.UNIFORM))
        play.submit("a", P6)
        play.begin()
        play.allocate("a", 0, 4)
        play.step()
        play.begin()
        play.send(ev.LoadExternal(A, False))
        play.send(event)
        what = f"zeroed after {ev.EVENT_NAMES[type(event)]}"
        play.expect(what, play.send(ev.TakeZeroing()).blocks, ())
        play.step()
    play.start(cache(full(2), mamba(2, zeroed=True), connector=Connector.UNIFORM))
    play.submit("a", P6)
    play.begin()
    play.allocate("a", 2, 4)
    play.send(ev.LoadExternal(A, False))
    play.expect("zeroed after states were lost", play.send(ev.TakeZeroing()).blocks, ())
    play.step()


def h2_part(play: Play) -> None:
    """Behind a hit, only blocks that neither a copy nor a load fills are zeroed."""
    for tokens, new, external, size in ((4, 3, 3, 2), (4, 2, 4, 2), (6, 5, 0, 4)):
        for groups in (
            (full(size, zeroed=True), mamba(4)),
            (full(size), mamba(4, zeroed=True)),
        ):
            play.start(cache(*groups, connector=Connector.UNIFORM))
            prompt = tuple(range(12))
            play.prefill("p", prompt[:tokens])
            play.submit("a", prompt)
            play.begin()
            play.expect("hit", play.lookup("a").num_tokens, tokens)
            grant = play.allocate("a", new, external)
            if external:
                play.send(ev.LoadExternal(A, True))
            g = 0 if groups[0].zeroed else 1
            end, filled = tokens + external + new, tokens + external
            slots = range(-(-filled // groups[g].block_size), -(-end // groups[g].block_size))
            due = [grant.table[g][slot] for slot in slots]
            what = f"zeroed behind {filled} of {end} tokens in group {g}"
            play.expect(what, sorted(play.send(ev.TakeZeroing()).blocks), sorted(filter(None, due)))
            play.step()


SCENARIOS = [
    Scenario("B1.load", "a load waits for steps in flight", b1_load),
    Scenario("B1.apart", "a load beside a step in flight", b1_other_blocks),
    Scenario("H1", "recycled blocks are zeroed", h1),
    Scenario("H1.left", "blocks that left their owner", h1_left),
    Scenario("H1.shared", "a reader leaves before blocks are zeroed", h1_shared),
    Scenario("H2", "zeroing and loads", h2),
    Scenario("H2.left", "blocks of a load that failed", h2_left),
    Scenario("H2.part", "zeroing behind a hit", h2_part),
]
