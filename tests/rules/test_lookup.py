"""The lookup rules against their plainest statement, by brute force over all lengths."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvspec.spec.lookup import (
    Keyed,
    connector_hit,
    full_bound,
    full_reach,
    full_run,
    hit_limit,
    joint_hit,
    longest_reach,
    own_reach,
    partial_tail,
    recurrent_reach,
    recurrent_reaches,
    serving_lengths,
    shared_prefix_boundary,
    truncated_slots,
)
from kvspec.spec.types import Config, Group, GroupId, GroupKind

LONGEST = 24


@st.composite
def caches(draw: st.DrawFn) -> tuple[Config, set[tuple[int, int]]]:
    """A configuration and the lengths at which each group is keyed."""
    unit = draw(st.integers(1, 3))
    sizes = st.integers(1, 3).map(lambda n: n * unit)
    full = draw(
        st.lists(st.builds(Group, st.just(GroupKind.FULL), sizes, st.booleans()), min_size=1)
    )[:2]
    recurrent = draw(st.lists(st.builds(Group, st.just(GroupKind.MAMBA_ALIGN), sizes)))[:2]
    config = Config(99, unit, (*full, *recurrent), 99)
    lengths = st.integers(1, LONGEST // unit).map(lambda n: n * unit)
    keys = st.tuples(st.sampled_from(list(config.ids())), lengths)
    return config, draw(st.sets(keys, max_size=40))


@given(caches(), st.integers(0, LONGEST))
def test_full_reach_is_the_longest_covered_length(
    cache: tuple[Config, set[tuple[int, int]]], limit: int
) -> None:
    config, keys = cache
    size, unit = config.groups[0].block_size, config.hash_unit
    covered = [0]
    for length in range(unit, limit + 1, unit):
        whole = range(size, length + 1, size)
        inside = length % size != 0
        if all((0, end) in keys for end in whole) and (not inside or (0, length) in keys):
            if inside and not config.fine:
                continue
            covered.append(length)
    expected = max(covered)
    if config.groups[0].eagle and expected:
        expected -= unit if config.fine else size
    expected -= expected % config.alignment
    found = full_reach(config, GroupId(0), lambda g, n: (g, n) in keys, limit)
    assert found == expected


@pytest.mark.clause("HIT.LENGTH")
@given(caches(), st.integers(0, LONGEST))
def test_joint_hit_is_the_longest_that_all_can_serve(
    cache: tuple[Config, set[tuple[int, int]]], limit: int
) -> None:
    config, keys = cache

    def keyed(group_id: GroupId, length: int) -> bool:
        return (group_id, length) in keys

    full = [GroupId(g) for g in config.ids() if not config.groups[g].recurrent]
    recurrent = [g for g in config.ids() if config.groups[g].recurrent]
    bound = min(full_reach(config, g, keyed, limit) for g in full)
    fitting = [
        length
        for length in range(0, bound + 1, config.alignment)
        if length == 0 or all((g, length) in keys for g in recurrent)
    ]
    hit = joint_hit(config, keyed, limit)
    assert hit == max(fitting)
    assert all(hit <= own_reach(config, GroupId(g), keyed, limit) for g in config.ids())
    local, diverged = connector_hit(config, keyed, limit)
    assert local >= hit
    assert not diverged or local > hit


@given(caches(), st.integers(0, LONGEST))
def test_recurrent_reach_is_a_keyed_length(
    cache: tuple[Config, set[tuple[int, int]]], limit: int
) -> None:
    config, keys = cache
    for g, group in enumerate(config.groups):
        if group.recurrent:
            found = recurrent_reach(config, GroupId(g), lambda i, n: (i, n) in keys, limit)
            on_grid = [n for h, n in keys if h == g and n <= limit and n % config.alignment == 0]
            assert found == max(on_grid, default=0)


def test_worked_values_of_the_limit() -> None:
    config = Config(9, 2, (Group(GroupKind.FULL, 2),), 9)
    off = Config(9, 2, (Group(GroupKind.FULL, 2),), 9, caching=False)
    assert [hit_limit(config, n) for n in (0, 1, 6)] == [0, 0, 5]
    assert hit_limit(off, 6) == 0


def test_serving_lengths_reach_to_the_block_end_or_what_is_known() -> None:
    groups = Group(GroupKind.FULL, 8), Group(GroupKind.MAMBA_ALIGN, 8)
    config = Config(9, 2, groups, 99)
    assert list(serving_lengths(config, GroupId(0), 0, 12, 13)) == [8]
    assert list(serving_lengths(config, GroupId(0), 1, 12, 15)) == [12, 14]
    assert list(serving_lengths(config, GroupId(1), 1, 12, 99)) == [12]


@pytest.mark.clause("TRUNC.ERROR")
def test_truncation() -> None:
    groups = Group(GroupKind.FULL, 2), Group(GroupKind.MAMBA_ALIGN, 4)
    config = Config(9, 2, groups, 99)
    assert truncated_slots(config, GroupId(0), 3, 4) == 2
    assert truncated_slots(config, GroupId(0), 3, 8) is None
    assert truncated_slots(config, GroupId(0), 3, 5) is None
    assert truncated_slots(config, GroupId(1), 0, 8) == 0
    assert truncated_slots(config, GroupId(1), 2, 6) is None


# --- worked values --------------------------------------------------------------------------------

ATTENTION, LARGER, STATES = GroupId(0), GroupId(1), GroupId(2)
HYBRID = Config(
    99,
    2,
    (Group(GroupKind.FULL, 4), Group(GroupKind.FULL, 8), Group(GroupKind.MAMBA_ALIGN, 4)),
    99,
)
KEYS = {(0, 4), (0, 8), (0, 12), (0, 14), (1, 8), (1, 12), (2, 4), (2, 6), (2, 12)}


def keyed_in(keys: set[tuple[int, int]]) -> Keyed:
    return lambda group_id, length: (group_id, length) in keys


known = keyed_in(KEYS)


def test_a_run_ends_where_a_block_is_missing_or_the_limit_is() -> None:
    assert [full_run(HYBRID, ATTENTION, known, n) for n in (3, 4, 11, 12, 99)] == [0, 4, 8, 12, 12]
    assert full_run(HYBRID, LARGER, known, 99) == 8


def test_a_tail_is_strictly_inside_the_next_block() -> None:
    assert [partial_tail(HYBRID, ATTENTION, known, 12, n) for n in (99, 14, 13)] == [14, 14, 12]
    assert partial_tail(HYBRID, ATTENTION, known, 4, 99) == 4
    assert partial_tail(HYBRID, LARGER, known, 8, 99) == 12
    keys = {(0, 6), (0, 8)}
    assert partial_tail(HYBRID, ATTENTION, keyed_in(keys), 4, 99) == 6


def test_how_far_groups_reach() -> None:
    assert [full_reach(HYBRID, g, known, 99) for g in (ATTENTION, LARGER)] == [14, 12]
    assert full_bound(HYBRID, known, 99) == 12
    assert full_bound(HYBRID, known, 11) == 8
    assert [recurrent_reach(HYBRID, STATES, known, n) for n in (99, 12, 11, 5, 3)] == [
        12, 12, 6, 4, 0,
    ]  # fmt: skip
    assert own_reach(HYBRID, STATES, known, 99) == 12
    assert own_reach(HYBRID, ATTENTION, known, 99) == 14
    assert recurrent_reaches(HYBRID, known, 11) == {2: 6}
    assert longest_reach(HYBRID, known, 99) == 14
    assert longest_reach(HYBRID, known, 9) == 8


def test_an_eagle_group_gives_up_a_unit_or_a_block() -> None:
    fine = Config(99, 2, (Group(GroupKind.FULL, 4, True), Group(GroupKind.MAMBA_ALIGN, 4)), 99)
    coarse = Config(99, 2, (Group(GroupKind.FULL, 4, True),), 99)
    assert full_reach(fine, ATTENTION, known, 99) == 12
    assert full_reach(coarse, ATTENTION, known, 99) == 8
    assert full_reach(coarse, ATTENTION, known, 3) == 0
    assert full_reach(fine, ATTENTION, lambda g, n: False, 99) == 0


def test_states_shorten_a_hit_until_all_agree() -> None:
    config = Config(99, 2, (Group(GroupKind.FULL, 2), *[Group(GroupKind.MAMBA_ALIGN, 4)] * 2), 99)
    keys = {*((0, n) for n in range(2, 13, 2)), (1, 12), (1, 8), (1, 4), (2, 10), (2, 4)}
    assert joint_hit(config, keyed_in(keys), 99) == 4
    assert joint_hit(config, keyed_in(keys - {(2, 4)}), 99) == 0
    assert joint_hit(HYBRID, known, 99) == 12
    assert joint_hit(HYBRID, known, 11) == 6


def test_a_boundary_is_where_some_group_goes_on_beyond_the_hit() -> None:
    assert shared_prefix_boundary(HYBRID, known, 99, 12) == 14
    assert shared_prefix_boundary(HYBRID, known, 99, 14) == 0
    assert shared_prefix_boundary(HYBRID, known, 11, 6) == 8


def test_a_connector_is_told_attention_s_length_unless_a_state_reaches_further() -> None:
    config = Config(99, 2, (Group(GroupKind.FULL, 4), Group(GroupKind.MAMBA_ALIGN, 4)), 99)
    attention = {(0, 4), (0, 8)}
    for states, told in (
        (set(), (8, True)), ({(1, 4)}, (8, True)), ({(1, 8)}, (8, False)),
        ({(1, 12)}, (0, False)), ({(1, 4), (1, 12)}, (4, False)),
    ):  # fmt: skip
        assert connector_hit(config, keyed_in(attention | states), 99) == told
    plain = Config(99, 2, (Group(GroupKind.FULL, 4),), 99)
    assert connector_hit(plain, known, 99) == (12, False)
    mamba = Group(GroupKind.MAMBA_ALIGN, 4)
    both = Config(99, 2, (Group(GroupKind.FULL, 4), mamba, mamba), 99)
    assert connector_hit(both, keyed_in(attention | {(1, 12)}), 99) == (0, False)


def test_serving_lengths_at_the_ends() -> None:
    assert list(serving_lengths(HYBRID, ATTENTION, 0, 4, 99)) == [4]
    assert list(serving_lengths(HYBRID, ATTENTION, 1, 6, 99)) == [6, 8]
    assert list(serving_lengths(HYBRID, ATTENTION, 1, 6, 6)) == [6]
    assert list(serving_lengths(HYBRID, STATES, 1, 6, 99)) == [6]
