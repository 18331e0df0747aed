"""Every state of the small worlds: counts, and that reductions and processes change nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kvspec.failure import find_subject
from kvspec.prove.canon import key_of
from kvspec.prove.node import Walker, pack
from kvspec.prove.paths import covering
from kvspec.prove.search import Limits, explore
from kvspec.prove.worlds import DEEP, SMALL, WORLDS, World, hybrid
from kvspec.spec.case import Violation
from kvspec.spec.clauses import Profile
from kvspec.vectors.walks import walks

TINY = World("tiny", "for tests", hybrid(3, 1, 1, 2), requests=1, longest=2, prompt=True)
TWO = replace(TINY, requests=2, config=hybrid(3, 1, 1, 1), longest=1)

COUNTS: dict[str, tuple[int, int, int, int]] = {
    "alone": (9_930, 35_600, 59, 397),
    "eagle": (2_359, 8_536, 34, 288),
    "loose": (1_240, 10_516, 21, 279),
    "pair": (4_492, 33_595, 31, 239),
    "connector": (2_625, 9_303, 34, 362),
    "in-flight": (2_391, 24_286, 19, 276),
    "holding-on": (19_539, 73_477, 58, 435),
    "loose-evicted": (7_836, 70_339, 23, 315),
    "pair-partial": (17_087, 120_887, 31, 289),
    "pair-of-states": (33_433, 238_661, 42, 241),
    "trio": (13_228, 134_241, 42, 239),
    "connector-detached": (54_302, 286_931, 65, 567),
    "in-flight-partial": (7_059, 71_044, 23, 321),
}
"""World: states, transitions, depth, (event, clause, branch) seen."""


@pytest.mark.parametrize("world", SMALL, ids=lambda world: world.id)
def test_small_worlds_are_exhausted(world: World) -> None:
    """Both managers, event by event, each answer judged and equal to the other's."""
    explored = explore(world, find_subject("optimized"))
    assert explored.exhausted, explored.broken
    counts = explored.states, explored.transitions, explored.depth, len(explored.covers)
    assert counts == COUNTS[world.id]
    kept = (walk[1:] for walk in walks()[world.id])
    found = (walk.events for walk in covering(explored))
    assert list(kept) == list(found), "run: python -m kvspec.vectors.walks"


def test_every_world_has_its_counts_pinned() -> None:
    assert COUNTS.keys() == WORLDS.keys()


@pytest.mark.deep
@pytest.mark.parametrize("world", DEEP, ids=lambda world: world.id)
def test_deep_worlds_are_exhausted(world: World) -> None:
    explored = explore(world, find_subject("optimized"), workers=2)
    assert explored.exhausted, explored.broken
    counts = explored.states, explored.transitions, explored.depth, len(explored.covers)
    print(f"{world.id}: {counts}, {explored.states / explored.seconds:,.0f} states/s")
    assert counts == COUNTS[world.id]


@pytest.mark.parametrize("target", ["reference", "optimized"])
def test_each_manager_alone_has_the_states_of_both_together(target: str) -> None:
    alone = explore(TINY, find_subject(target, Profile.ACCOUNTING))
    both = explore(TINY, find_subject("optimized"))
    assert alone.exhausted
    assert (alone.levels, alone.transitions) == (both.levels, both.transitions)


def keys_of(world: World, plain: bool) -> tuple[set[bytes], int]:
    """The states of a world by their reduced keys, and how many there are as they were found."""
    walker = Walker(world, find_subject("optimized"), plain)
    found = {walker.root_key}
    reduced: set[bytes] = set()
    frontier = [walker.root]
    while frontier:
        state, managers = walker.unpack(frontier.pop())
        for event in walker.events(state):
            child = walker.take(state, managers, event)
            assert not isinstance(child, Violation)
            reduced.add(key_of(walker.words, child.state, child.managers))
            if child.key not in found:
                found.add(child.key)
                frontier.append(pack(child))
    return reduced, len(found)


@pytest.mark.parametrize(
    ("world", "counts"),
    [
        pytest.param(TINY, (6_190, 926), id="one request"),
        pytest.param(TWO, (13_662, 1_958), id="two requests", marks=pytest.mark.deep),
    ],
)
def test_renaming_loses_no_state(world: World, counts: tuple[int, int]) -> None:
    """Searching with every name told apart reaches the same states, but for their names."""
    reduced, few = keys_of(world, plain=False)
    without, many = keys_of(world, plain=True)
    assert reduced == without
    assert many > few
    assert (many, few) == counts


def test_the_number_of_processes_changes_nothing() -> None:
    subject = find_subject("optimized")
    one, two, three = (explore(TINY, subject, workers=n) for n in (1, 2, 3))
    assert (one.levels, one.transitions, one.covers) == (two.levels, two.transitions, two.covers)
    assert (one.levels, one.transitions, one.covers) == (
        three.levels,
        three.transitions,
        three.covers,
    )


def test_what_is_cut_short_claims_nothing() -> None:
    for workers in (1, 2):
        explored = explore(TINY, find_subject("optimized"), workers=workers, limits=Limits(50))
        assert not explored.exhausted
        assert explored.stopped == "it has more than 50 states"


def test_worlds_have_different_names() -> None:
    assert len(WORLDS) == len(SMALL) + len(DEEP)
