"""The smallest form of faults that were reported in public, each named by its atlas row."""

from __future__ import annotations

from kvspec.spec import events as ev
from kvspec.spec.types import Connector, RequestId

from .play import P6, Play, Scenario, cache, full, mamba


def a1(play: Play) -> None:
    """A block that a list names twice takes one place in the free list."""
    play.start(cache(full(2), mamba(4)))
    play.prefill("a", P6)
    play.finish("a")
    play.begin()
    for name, token in (("b", 3), ("c", 4)):
        play.submit(name, (*P6, token, token))
        play.lookup(name)
        play.expect("granted", play.allocate(name, 2).granted, True)
    copies, _ = play.dispatch()
    shared = copies.copies[0][0]
    play.expect("named twice", copies.retained.count(shared), 2)
    play.run()
    play.expect_count(shared, 2)
    play.release()
    play.expect_count(shared, 0)
    blocks = play.take_all_free("d")
    play.expect("each block once", len(set(blocks)), len(blocks))


def a2(play: Play) -> None:
    """Hits of all groups are held before blocks are taken for external tokens."""
    prompt = tuple(range(13))
    groups = full(2), full(4)
    play.start(cache(*groups, num_blocks=10, connector=Connector.UNIFORM))
    play.prefill("a", prompt[:8])
    hits = {block for table in play.table("a") for block in table}
    play.finish("a")
    play.submit("b", prompt)
    play.begin()
    play.expect("length", play.lookup("b").num_tokens, 8)
    grant = play.allocate("b", 0, 4)
    play.expect("granted", grant.granted, True)
    new = {block for table in grant.new_blocks for block in table}
    play.expect("own hits taken", new & hits, set())
    play.send(ev.LoadExternal(RequestId("b"), True))
    play.step()
    play.begin()
    play.expect("granted from an empty pool", play.allocate("b", 1).granted, False)


def a3(play: Play) -> None:
    """A hit is counted as it is delivered: refused when one block short, then granted whole."""
    prompt = tuple(range(9))
    play.start(cache(full(2), num_blocks=6))
    play.prefill("x", (50, 51))
    play.prefill("a", prompt[:8])
    play.finish("a")
    play.submit("b", prompt)
    play.begin()
    play.expect("length", play.lookup("b").num_tokens, 8)
    play.expect("granted one block short", play.allocate("b", 1).granted, False)
    play.step()
    play.finish("x")
    play.begin()
    hit = play.lookup("b")
    grant = play.allocate("b", 1)
    play.expect("granted", grant.granted, True)
    play.expect("the hit is delivered", grant.table[0][:4], hit.blocks[0])
    play.step()


def a5(play: Play) -> None:
    """A block given back is handed to one request only."""
    play.start(cache(full(2), num_blocks=7))
    play.prefill("a", P6)
    play.send(ev.Preempt(RequestId("a")))
    play.finish("a")
    play.begin()
    taken: list[int] = []
    for name in ("b", "c"):
        play.submit(name, (10, 11, 12, 13, 14, 15))
        grant = play.allocate(name, 6)
        play.expect("granted", grant.granted, True)
        taken += grant.table[0]
    play.expect("each block once", len(set(taken)), 6)
    play.step()


def a8(play: Play) -> None:
    """A block that is taken anew is not found under its old key."""
    play.start(cache(full(2), num_blocks=2))
    play.prefill("a", (0, 0))
    play.finish("a")
    play.prefill("b", (5,))
    play.submit("c", (0, 0, 1))
    play.expect("length", play.lookup("c").num_tokens, 0)


def b3(play: Play) -> None:
    """A state that this step computes cannot be started from in this step."""
    play.start(cache(full(4), mamba(4)))
    prefix = (0, 0, 1, 1)
    play.submit("a", (*prefix, 2))
    play.submit("b", (*prefix, 3))
    play.begin()
    play.expect("producer granted", play.allocate("a", 4).granted, True)
    hit = play.lookup("b")
    play.expect("length", hit.num_tokens, 4)
    play.expect("granted in the same step", play.allocate("b", 1).granted, False)
    play.step()
    play.begin()
    play.lookup("b")
    play.expect("granted in the next step", play.allocate("b", 1).granted, True)
    play.step()


def c1(play: Play) -> None:
    """Attention without a state is no place to resume from."""
    prefix = (0, 0, 1, 1, 2, 2, 3, 3)
    play.start(cache(full(4), mamba(4)))
    play.prefill("a", (*prefix, 4, 4, 4))
    play.finish("a")
    play.submit("b", (*prefix, 5, 5))
    play.begin()
    hit = play.lookup("b")
    play.expect("length", hit.num_tokens, 0)
    play.expect("shared-prefix boundary", hit.shared_prefix_boundary, 8)
    play.expect("granted from the start", play.allocate("b", 10).granted, True)
    play.step()


def c4(play: Play) -> None:
    """With eagle the state does not return more than attention covers."""
    play.start(cache(full(4, eagle=True), mamba(4)))
    prefix = (0, 0, 1, 1, 2, 2, 3, 3)
    play.prefill("a", (*prefix, 4), 4, 4, 1)
    play.finish("a")
    play.submit("b", (*prefix, 5, 5))
    play.begin()
    hit = play.lookup("b")
    play.expect("length", hit.num_tokens, 4)
    play.expect("slots", play.sizes(hit.blocks), (1, 1))
    play.expect("granted", play.allocate("b", 6).granted, True)
    play.step()


def c5(play: Play) -> None:
    """The eagle drop is applied once, however many groups have to agree."""
    play.start(cache(full(2, eagle=True), full(4, eagle=True), mamba(4)))
    prompt = tuple(range(13))
    play.prefill("a", prompt, 4, 4, 4, 1)
    play.finish("a")
    play.submit("b", prompt)
    hit = play.lookup("b")
    play.expect("length", hit.num_tokens, 8)
    play.expect("asked again", play.lookup("b"), hit)


def c11(play: Play) -> None:
    """A state that reaches further than attention makes the joint hit the answer."""
    play.start(cache(full(4), mamba(4), connector=Connector.DIVERGING))
    prompt = tuple(range(17))
    play.prefill("a", prompt, 8, 8, 1)
    table = play.table("a")
    play.finish("a")
    play.send(ev.Evict(table[0][2:4]))
    play.submit("b", prompt)
    play.begin()
    hit = play.send(ev.LookupForConnector(RequestId("b")))
    play.expect("length and divergence", (hit.num_tokens, hit.diverged), (8, False))
    play.expect("shared-prefix boundary", hit.shared_prefix_boundary, 16)
    view = play.send(ev.Truncate(RequestId("b"), 4))
    play.expect("slots of the view", play.sizes(view.blocks), (1, 1))
    grant = play.allocate("b", 0, 4)
    play.expect("granted", grant.granted, True)
    play.send(ev.LoadExternal(RequestId("b"), True))
    play.step()
    play.begin()
    play.expect("goes on behind the load", play.allocate("b", 9).granted, True)
    play.step()
    play.expect_key(play.table("b")[0][1], 8)


def f5(play: Play) -> None:
    """The null block is never handed out."""
    play.start(cache(full(2), mamba(4), num_blocks=8))
    blocks = play.take_all_free("a")
    play.expect("all but the null block", sorted(blocks), list(range(1, 8)))


def f7(play: Play) -> None:
    """A prompt that is cached whole still computes its last token, from a boundary that exists."""
    play.start(cache(full(2), mamba(4)))
    prompt = (0, 0, 1, 1, 2, 2, 3, 3)
    play.prefill("a", prompt, 4, 4)
    play.finish("a")
    play.submit("b", prompt)
    play.begin()
    hit = play.lookup("b")
    play.expect("length", hit.num_tokens, 4)
    play.expect("granted", play.allocate("b", 4).granted, True)
    play.step()


def g1(play: Play) -> None:
    """A request that can never fit does not keep others from being granted."""
    play.start(cache(full(2), num_blocks=8))
    play.submit("big", tuple(range(20)))
    play.submit("small", (30, 31))
    for _ in range(3):
        play.begin()
        play.expect("the big one is refused", play.allocate("big", 20).granted, False)
        if not play.state.requests[RequestId("small")].tables:
            play.expect("the small one is granted", play.allocate("small", 2).granted, True)
        play.step()


def g4(play: Play) -> None:
    """A request whose block fits no step advances; a grant of nothing is an error."""
    play.start(cache(full(2), mamba(4)))
    asked = ev.Chunk(32, 5, 100, 100, 16, 16, 8192, cap=5)
    play.expect("advances", play.send(asked).num_tokens, 5)
    play.submit("a", P6)
    play.begin()
    refused = play.allocate("a", 0)
    play.expect("a grant of nothing", isinstance(refused, ev.Rejection), True)


SCENARIOS = [
    Scenario("A1", "a list that names a block twice", a1),
    Scenario("A2", "hits of all groups before external tokens", a2),
    Scenario("A3", "a hit counts as it is delivered", a3),
    Scenario("A5", "a block given back has one next owner", a5),
    Scenario("A8", "no stale key after eviction", a8),
    Scenario("B3", "no same-step hit on a state", b3),
    Scenario("C1", "attention without a state", c1),
    Scenario("C4", "eagle and a state that reaches further", c4),
    Scenario("C5", "the eagle drop is applied once", c5),
    Scenario("C11", "groups that hit different lengths", c11),
    Scenario("F5", "the null block", f5),
    Scenario("F7", "a prompt that is cached whole", f7),
    Scenario("G1", "a request larger than the pool", g1),
    Scenario("G4", "a chunk that would not advance", g4),
]
