"""The lookup rules against their plainest statement, by brute force over all lengths."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvspec.spec.lookup import (
    connector_hit,
    full_reach,
    hit_limit,
    joint_hit,
    own_reach,
    recurrent_reach,
    serving_lengths,
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
