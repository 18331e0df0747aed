"""Lookups and truncations."""

from __future__ import annotations

from kvspec.spec import events as ev
from kvspec.spec.types import Connector, RequestId

from .play import P6, Play, Scenario, cache, full, mamba


def _diverged_cache(play: Play, connector: Connector) -> ev.ConnectorHit:
    """Attention has P6, the recurrent group has nothing; asked on behalf of a connector."""
    play.start(cache(full(2), mamba(4), connector=connector))
    play.prefill("a", P6)
    state = play.table("a")[1][-1]
    play.finish("a")
    play.send(ev.Evict((state,)))
    play.submit("b", (*P6, 3, 3))
    hit: ev.ConnectorHit = play.send(ev.LookupForConnector(RequestId("b")))
    return hit


def s1(play: Play) -> None:
    """Without support for divergence the joint lookup is used."""
    hit = _diverged_cache(play, Connector.UNIFORM)
    play.expect("length", hit.num_tokens, 0)
    play.expect("diverged", hit.diverged, False)
    joint = play.lookup("b")
    play.expect("as the joint lookup", (hit.blocks, hit.num_tokens), (joint.blocks, 0))


def s2(play: Play) -> None:
    """With support, attention's own length is passed on, and that the state falls short."""
    hit = _diverged_cache(play, Connector.DIVERGING)
    play.expect("slots", play.sizes(hit.blocks), (3, 0))
    play.expect("length", hit.num_tokens, 6)
    play.expect("shared-prefix boundary", hit.shared_prefix_boundary, 0)
    play.expect("diverged", hit.diverged, True)


def _hit_of_p6(play: Play) -> ev.Hit:
    play.start(cache(full(2), mamba(4), connector=Connector.DIVERGING))
    play.prefill("a", P6)
    play.finish("a")
    play.submit("b", (*P6, 3, 3))
    hit: ev.Hit = play.lookup("b")
    return hit


def s12(play: Play) -> None:
    """A hit cut to 4 tokens keeps its nulls; the original is unchanged."""
    hit = _hit_of_p6(play)
    view = play.send(ev.Truncate(RequestId("b"), 4))
    play.expect("view", view.blocks, (hit.blocks[0][:2], (0,)))
    for length in (0, 4):
        again = play.send(ev.Truncate(RequestId("b"), length))
        play.expect(
            f"slots of {length} tokens", play.sizes(again.blocks), (length // 2, length // 4)
        )
    play.expect("the same view again", again, view)
    play.expect("the original", play.lookup("b"), hit)


def s13(play: Play) -> None:
    """An empty recurrent list may be cut; a full group too short, or inside a block, may not."""
    _diverged_cache(play, Connector.DIVERGING)
    view = play.send(ev.Truncate(RequestId("b"), 4))
    play.expect("slots", play.sizes(view.blocks), (2, 0))
    hit = _hit_of_p6(play)
    for length in (8, 6):
        refused = play.send(ev.Truncate(RequestId("b"), length))
        play.expect(f"cut to {length} is an error", isinstance(refused, ev.Rejection), True)
    play.expect("the original", play.lookup("b"), hit)


def s18(play: Play) -> None:
    """Attention reaches 10, the state 6: the hit is 6 and attention is trimmed."""
    play.start(cache(full(4), mamba(4)))
    longer = (*P6, 3, 3, 4, 4, 5)
    play.prefill("a", P6)
    play.prefill("b", longer, 5)
    play.finish("a", "b")
    play.submit("c", (*longer, 5))
    hit = play.lookup("c")
    play.expect("length", hit.num_tokens, 6)
    play.expect("slots", play.sizes(hit.blocks), (2, 2))
    play.expect("shared-prefix boundary", hit.shared_prefix_boundary, 10)


def s21(play: Play) -> None:
    """The eagle drop on full attention alone, on whole blocks and on a partial tail."""
    prompt = tuple(range(12))
    for eagle, tokens, length, slots in (
        (False, 9, 8, 2),
        (True, 9, 6, 2),
        (False, 7, 6, 2),
        (True, 7, 4, 1),
    ):
        groups = full(4, eagle=eagle), mamba(4)
        play.start(cache(*groups, connector=Connector.DIVERGING))
        play.prefill("a", prompt[:tokens])
        play.finish("a")
        play.submit("b", prompt)
        hit = play.send(ev.LookupForConnector(RequestId("b")))
        case = f"eagle {eagle}, {tokens} tokens cached"
        play.expect(f"length, {case}", hit.num_tokens, length)
        play.expect(f"slots, {case}", len(hit.blocks[0]), slots)
    play.start(cache(full(4, eagle=True)))
    play.prefill("a", prompt)
    play.submit("b", (*prompt, 1))
    play.expect("length without states", play.lookup("b").num_tokens, 8)


def s22(play: Play) -> None:
    """With eagle a partial hit falls back to a block that every group has."""
    play.start(cache(full(4, eagle=True), mamba(4)))
    play.prefill("a", (7,) * 6, 4, 2)
    play.finish("a")
    play.submit("b", (7,) * 6 + (9,) * 2)
    play.begin()
    hit = play.lookup("b")
    play.expect("length", hit.num_tokens, 4)
    play.expect("slots", play.sizes(hit.blocks), (1, 1))
    play.expect("granted", play.allocate("b", 4).granted, True)
    play.step()


def s24(play: Play) -> None:
    """Without caching nothing is keyed, so that nothing is found."""
    play.start(cache(full(2), mamba(4), caching=False))
    play.prefill("a", P6)
    for block in play.table("a")[0]:
        play.expect_key(block, None)
    play.submit("b", P6)
    play.begin()
    play.expect("length", play.lookup("b").num_tokens, 0)
    play.expect("new blocks", len(play.allocate("b", 6).new_blocks[0]), 3)
    play.step()


SCENARIOS = [
    Scenario("S1", "a connector without support for divergent hits", s1),
    Scenario("S2", "a connector with support for divergent hits", s2),
    Scenario("S12", "a hit is truncated", s12),
    Scenario("S13", "what may not be truncated", s13),
    Scenario("S18", "attention reaches further than the state", s18),
    Scenario("S21", "the eagle drop on attention alone", s21),
    Scenario("S22", "eagle falls back to a block", s22),
    Scenario("S24", "no caching", s24),
]
