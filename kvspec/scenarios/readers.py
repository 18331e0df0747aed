"""Somebody reads on: what must not be found shows in the data, whatever books a target keeps."""

from __future__ import annotations

from collections.abc import Callable

from kvspec.spec import events as ev
from kvspec.spec.types import Config, Connector, RequestId, Step, Token

from .copies import owner_goes_on
from .play import P6, Play, Scenario, cache, full, mamba

A = RequestId("a")
B = RequestId("b")


def a3_stale(play: Play) -> None:
    """A lookup counts for the grant directly behind it: not across a step that is processed."""
    play.start(cache(full(2), max_in_flight=2))
    play.prefill("p", (0, 0, 1, 1))
    play.submit("x", (9, 9))
    play.begin()
    play.allocate("x", 2)
    play.dispatch()
    play.send(ev.Execute())
    play.submit("a", (0, 0, 1, 1, 2))
    play.begin()
    play.lookup("a")
    play.send(ev.Process())
    play.expect("new blocks", len(play.allocate("a", 5).new_blocks[0]), 3)
    play.step()


def _between(play: Play, config: Config, first: Callable[[], None], event: ev.Event) -> None:
    """A hit of 4 tokens, then an event, then a grant: it takes new blocks for all 5 tokens."""
    play.start(config)
    play.prefill("p", (0, 0, 1, 1))
    play.submit("a", (0, 0, 1, 1, 2))
    first()
    play.expect("hit", play.lookup("a").num_tokens, 4)
    play.send(event)
    if play.state.open is None:
        play.send(ev.BeginStep())
    new = play.allocate("a", 5).new_blocks
    play.expect(f"new blocks after {ev.EVENT_NAMES[type(event)]}", len(new[0]), 3)


def a3_between(play: Play) -> None:
    """A lookup counts for the grant directly behind it, whatever other event comes between."""
    p, q, config = RequestId("p"), RequestId("q"), cache(full(2), max_in_flight=3)

    def nothing() -> None:
        play.begin()

    def in_flight(executed: bool) -> None:
        play.submit("q", (9,))
        play.begin()
        play.allocate("q", 1)
        play.dispatch()
        if executed:
            play.send(ev.Execute())
        play.begin()

    def granted() -> None:
        play.submit("q", (9,))
        play.begin()
        play.allocate("q", 1)

    def detached() -> None:
        play.send(ev.Detach(p))
        play.begin()

    _between(play, config, lambda: None, ev.BeginStep())
    for event in (
        ev.Submit(q, (Token(9),)), ev.Append(p, (Token(9),)), ev.TakeOffloads(), ev.Reset(),
        ev.ReleaseRetained(Step(0)), ev.Finish(p), ev.Abort(p), ev.Preempt(p), ev.Detach(p),
        ev.Evict(()), ev.Chunk(0, 1, 1, 1, 1, 1, 1),
    ):  # fmt: skip
        _between(play, config, nothing, event)
    _between(play, config, granted, ev.Withdraw(q))
    _between(play, config, detached, ev.FreeDetached(p))
    _between(play, config, lambda: in_flight(False), ev.Execute())
    _between(play, config, lambda: in_flight(True), ev.Process())


def a3_connector(play: Play) -> None:
    """Nor does what a connector says come between."""
    config = cache(full(2), mamba(4), connector=Connector.UNIFORM)
    q, r = RequestId("q"), RequestId("r")

    def loading() -> None:
        play.submit("q", (9, 9, 9))
        play.begin()
        play.allocate("q", 0, 2)

    def handed_off() -> None:
        play.prefill("r", P6)
        play.append("r", 9)
        play.begin()
        play.allocate("r", 1)
        play.step()
        play.begin()

    for ok in (True, False):
        _between(play, config, loading, ev.LoadExternal(q, ok))
    for event in (ev.OffloadRead(r), ev.OffloadDone(r)):
        _between(play, config, handed_off, event)


def b1_fence(play: Play) -> None:
    """What was detached, or granted and withdrawn, waits for the request's step in flight too."""
    play.start(cache(full(2), num_blocks=12, deferral=True, max_in_flight=2))
    for name, start in (("a", 0), ("b", 30)):
        play.submit(name, tuple(range(start, start + 4)))
    play.begin()
    tables = {name: play.allocate(name, 4).table[0] for name in ("a", "b")}
    play.dispatch()
    play.send(ev.Detach(A))
    play.send(ev.FreeDetached(A))
    play.send(ev.Preempt(B))
    for name in ("a", "b"):
        play.expect_count(tables[name][0], 1)
    play.begin()
    again = play.allocate("b", 2).table[0]
    play.send(ev.Withdraw(B))
    play.expect_count(again[0], 1)
    play.dispatch()
    play.run()
    for block in (*tables["a"], *tables["b"], *again):
        play.expect_count(block, 0)


def b4_state(play: Play) -> None:
    """A state that a withdrawn chunk would have written is not read, though attention is there."""
    play.start(cache(full(4), mamba(4)))
    play.prefill("p", P6)
    play.finish("p")
    play.submit("a", (0, 0, 1, 1, 3))
    play.begin()
    play.lookup("a")
    play.expect("granted", play.allocate("a", 4).granted, True)
    play.send(ev.Withdraw(A))
    play.step()
    play.submit("b", (0, 0, 1, 1, 4))
    play.compute("b")
    play.expect("computed", play.state.requests[B].computed, 5)


def b4_hit(play: Play) -> None:
    """A hitter that is withdrawn leaves the block that it hit as it was."""
    play.start(cache(full(2), mamba(4)))
    play.prefill("p", P6)
    shared = play.table("p")[1][1]
    play.finish("p")
    play.submit("a", (*P6, 3, 3))
    play.begin()
    play.lookup("a")
    play.expect("granted", play.allocate("a", 2).granted, True)
    play.send(ev.Withdraw(A))
    play.expect_key(shared, 6)
    play.step()


def b5_read(play: Play) -> None:
    """While a load is on its way nobody counts on what it is to bring: it may fail."""
    play.start(cache(full(2), mamba(2), connector=Connector.UNIFORM))
    prompt = tuple(range(9))
    play.submit("a", prompt)
    play.submit("b", prompt)
    play.begin()
    play.expect("granted", play.allocate("a", 5, 4).granted, True)
    play.admit("b")
    play.send(ev.LoadExternal(A, False))
    play.step()
    play.compute("b")
    play.expect("computed", play.state.requests[B].computed, 9)


def b5_lost(play: Play) -> None:
    """Nothing that never came is read."""
    play.start(cache(full(2), connector=Connector.UNIFORM))
    prompt = tuple(range(9))
    play.submit("a", prompt)
    play.begin()
    play.expect("granted", play.allocate("a", 0, 6).granted, True)
    play.step()
    play.send(ev.LoadExternal(A, False))
    play.submit("b", prompt)
    play.compute("b")
    play.expect("computed", play.state.requests[B].computed, 9)


def c2_read(play: Play) -> None:
    """Where a chunk ended inside a block, the state there is gone once the next one ran."""
    play.start(cache(full(2), mamba(4)))
    play.prefill("a", (0, 0, 1, 1, 2, 2, 3), 2, 2, 3)
    play.finish("a")
    play.submit("b", (0, 0, 5, 5))
    play.compute("b")
    play.expect("computed", play.state.requests[B].computed, 4)


def c9_detached(play: Play) -> None:
    """A hand-off that was not drained dies when its request's blocks are detached."""
    owner_goes_on(play, connector=Connector.UNIFORM)
    play.dispatch(offloads=False)
    play.run()
    play.send(ev.Detach(A))
    play.expect("handed off", play.send(ev.TakeOffloads()).offloads, {})
    play.release()


def c9_taken(play: Play) -> None:
    """A block that was offered and then taken by another is not handed off."""
    _, _, moved = owner_goes_on(play, connector=Connector.UNIFORM)
    play.dispatch(offloads=False)
    play.run()
    play.release()
    play.expect("taken", moved in play.take_all_free("b"), True)
    play.expect("handed off", play.send(ev.TakeOffloads()).offloads, {})


def c2_chunks(play: Play) -> None:
    """Earlier with eagle, at the end of a shared prefix; not a token before the end of all."""
    play.start(cache(full(2), mamba(4)))
    for asked, length in (
        (ev.Chunk(0, 10, 10, 10, 4, 2, 100), 8),
        (ev.Chunk(0, 10, 10, 10, 4, 2, 100, eagle=True), 4),
        (ev.Chunk(0, 20, 20, 20, 4, 2, 100, boundary=7), 4),
        (ev.Chunk(0, 20, 20, 20, 4, 2, 100, boundary=3), 20),
        (ev.Chunk(4, 7, 10, 12, 4, 2, 100), 7),
    ):
        play.expect(f"chunk of {asked}", play.send(asked).num_tokens, length)


def b3_source(play: Play) -> None:
    """No same-step hit inside a block of attention either, with a state that was there before."""
    for unit, prompt, chunks, hit in (
        (2, P6, (6,), 6),
        (2, P6, (5, 1), 6),
        (2, (*P6, 3, 3, 4, 4), (10,), 6),
        (1, P6[:5], (5,), 5),
    ):
        play.start(cache(full(4), mamba(4), hash_unit=unit))
        play.prefill("p", prompt[:hit])
        attention = play.table("p")[0]
        play.finish("p")
        play.send(ev.Evict(attention))
        play.submit("w", prompt)
        play.submit("r", (*prompt[:8], 7, 7))
        for size in chunks[:-1]:
            play.begin()
            play.allocate("w", size)
            play.step()
        play.begin()
        play.expect("granted", play.allocate("w", chunks[-1]).granted, True)
        play.expect("hit", play.lookup("r").num_tokens, hit)
        play.expect("granted in this step", play.allocate("r", 1).granted, False)
        play.step()
        play.begin()
        play.lookup("r")
        play.expect("granted in the next", play.allocate("r", 1).granted, True)
        play.step()


def b3_first(play: Play) -> None:
    """Not even on the state after the first token, computed or copied in this step."""
    play.start(cache(full(4), mamba(4), hash_unit=1))
    play.prefill("p", (0,))
    state = play.table("p")[1]
    play.finish("p")
    play.send(ev.Evict(state))
    play.submit("w", (0,))
    play.submit("r", (0, 1))
    play.begin()
    play.allocate("w", 1)
    play.expect("hit", play.lookup("r").num_tokens, 1)
    play.expect("granted on what is computed", play.allocate("r", 1).granted, False)
    play.step()
    play.append("w", 5)
    play.begin()
    play.expect("copies", len(play.allocate("w", 1).copies), 1)
    play.expect("hit", play.lookup("r").num_tokens, 1)
    play.expect("granted on what is copied", play.allocate("r", 1).granted, False)
    play.step()


def b3_withdrawn(play: Play) -> None:
    """What a reader hit is still being written when the reader's own chunk is withdrawn."""
    play.start(cache(full(4), mamba(4)))
    for name, length in (("p", 2), ("q", 4)):
        play.prefill(name, P6[:length])
    state = play.table("q")[1]
    attention = {play.table(name)[0][0] for name in ("p", "q")}
    play.finish("p", "q")
    play.send(ev.Evict(tuple(sorted(attention))))
    play.submit("w", P6)
    play.submit("r", (*P6[:4], 7))
    play.begin()
    play.allocate("w", 6)
    play.expect("hit", play.lookup("r").num_tokens, 4)
    play.expect("granted", play.allocate("r", 1).granted, True)
    play.send(ev.Withdraw(RequestId("r")))
    play.send(ev.Evict(state))
    play.submit("s", (*P6[:4], 8))
    play.expect("hit inside the block", play.lookup("s").num_tokens, 2)
    play.expect("granted in this step", play.allocate("s", 1).granted, False)
    play.step()


def c2_past(play: Play) -> None:
    """A chunk that passes the prompt's last hash boundary keys whole blocks, and nothing there."""
    play.start(cache(full(4), mamba(4)))
    play.prefill("a", tuple(range(7)))
    play.append("a", 7)
    play.compute("a")
    play.append("a", 8)
    play.send(ev.Preempt(A))
    play.send(ev.Evict(tuple(sorted(play.state.keys))))
    play.begin()
    play.expect("granted", play.allocate("a", 9).granted, True)
    for block, length in zip(play.table("a")[0], (4, 8, None), strict=True):
        play.expect_key(block, length)
    play.step()


def a2_order(play: Play) -> None:
    """With nothing but old entries to take, a group does not take the hits of the next one."""
    play.start(cache(full(2), full(4), num_blocks=10))
    prompt = tuple(range(13))
    play.prefill("p", prompt[:8])
    play.finish("p")
    play.prefill("q", (50, 51, 52, 53))
    play.finish("q")
    play.submit("b", prompt)
    play.begin()
    hit = play.lookup("b")
    play.expect("length", hit.num_tokens, 8)
    grant = play.allocate("b", 4)
    play.expect("granted", grant.granted, True)
    play.expect("hits kept", (grant.table[0][:4], grant.table[1][:2]), hit.blocks)
    play.step()


def c2_external(play: Play) -> None:
    """A state that a load brought inside a block gets no key there."""
    play.start(cache(full(2), mamba(4), connector=Connector.UNIFORM))
    play.submit("a", tuple(range(9)))
    play.begin()
    play.expect("granted", play.allocate("a", 0, 6).granted, True)
    play.send(ev.LoadExternal(A, True))
    play.step()
    state = play.table("a")[1][1]
    play.begin()
    play.expect("granted", play.allocate("a", 3).granted, True)
    play.expect_key(state, None)
    play.step()


def c5_rounds(play: Play) -> None:
    """Recurrent groups are asked again until all of them agree."""
    play.start(cache(full(2), mamba(2), mamba(4), num_blocks=40))
    prompt = (0, 0, 1, 1, 2, 2, 3, 3)
    play.prefill("p", prompt, 4, 4)
    play.finish("p")
    lost = [b for b, e in play.state.keys.items() if (e.group, e.length) in ((1, 4), (2, 8))]
    play.send(ev.Evict(tuple(lost)))
    play.submit("b", (*prompt, 4, 4))
    play.expect("length", play.lookup("b").num_tokens, 0)


def c5_tails(play: Play) -> None:
    """Of several partial entries of one block the longest is hit."""
    play.start(cache(full(6), mamba(6)))
    play.prefill("p", (0, 0))
    play.prefill("q", (0, 0, 1, 1))
    play.finish("p", "q")
    play.submit("b", (0, 0, 1, 1, 2, 2, 3))
    play.expect("length", play.lookup("b").num_tokens, 4)


def c9_capacity(play: Play) -> None:
    """A block that is only copied from counts against the free blocks as well."""
    play.start(cache(full(4), mamba(4), num_blocks=5))
    play.prefill("p", P6)
    play.finish("p")
    play.submit("b", (*P6, 3, 3))
    play.begin()
    play.expect("length", play.lookup("b").num_tokens, 6)
    play.expect("granted with four free of five", play.allocate("b", 2).granted, False)


def c9_preempted(play: Play) -> None:
    """A pin goes with its request's blocks when it is preempted too."""
    _, _, moved = owner_goes_on(play, connector=Connector.UNIFORM)
    play.dispatch()
    play.run()
    play.release()
    play.expect_count(moved, 1)
    play.send(ev.Preempt(A))
    play.expect_count(moved, 0)


SCENARIOS = [
    Scenario("A2.order", "hits of a later group among old entries", a2_order),
    Scenario("C2.external", "a loaded state inside a block", c2_external),
    Scenario("C5.rounds", "recurrent groups that must agree", c5_rounds),
    Scenario("C5.tails", "several partial entries", c5_tails),
    Scenario("C9.capacity", "sources count", c9_capacity),
    Scenario("C9.preempted", "a pin of a preempted request", c9_preempted),
    Scenario("A3.between", "a lookup and another event directly before", a3_between),
    Scenario("A3.connector", "a lookup and a connector's word directly before", a3_connector),
    Scenario("A3.stale", "a lookup that is not directly before", a3_stale),
    Scenario("B1.fence", "detached and withdrawn blocks wait for a step in flight", b1_fence),
    Scenario("B3.first", "no same-step hit on the first token", b3_first),
    Scenario("B3.source", "no same-step hit inside a block", b3_source),
    Scenario("B3.withdrawn", "no same-step hit, a reader withdrawn", b3_withdrawn),
    Scenario("B4.state", "a reader after a withdrawn chunk", b4_state),
    Scenario("B4.hit", "a hitter is withdrawn", b4_hit),
    Scenario("B5.read", "a reader while a load is on its way", b5_read),
    Scenario("B5.lost", "a reader after a failed load", b5_lost),
    Scenario("C2.read", "a reader where a chunk ended inside a block", c2_read),
    Scenario("C2.past", "a chunk that passes the last hash boundary", c2_past),
    Scenario("C2.chunks", "where chunks stop, and where not", c2_chunks),
    Scenario("C9.detached", "an undrained hand-off, its request detached", c9_detached),
    Scenario("C9.taken", "an undrained hand-off, its block taken", c9_taken),
]
