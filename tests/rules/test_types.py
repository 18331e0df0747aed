"""The vocabulary: what a configuration may be, what follows from it, and arithmetic."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kvspec.spec import events as ev
from kvspec.spec.admit import why_not
from kvspec.spec.judge import initial_state
from kvspec.spec.types import (
    Adapter,
    Config,
    Connector,
    Group,
    GroupKind,
    Identity,
    InvalidInput,
    RequestId,
    Token,
    align_down,
    ceil_div,
)

FULL, STATES = Group(GroupKind.FULL, 4), Group(GroupKind.MAMBA_ALIGN, 6)
LEAST = Config(2, 1, (Group(GroupKind.FULL, 1),), 1)


def test_what_need_not_be_said() -> None:
    assert (
        Config(2, 1, (Group(GroupKind.FULL, 1, False, False),), 1, True, Connector.NONE, False, 1)
        == LEAST
    )
    assert Identity() == Identity(None, None, ())
    assert Adapter("a").version == 0


def test_kinds_by_their_names_in_a_trace() -> None:
    assert [kind.value for kind in GroupKind] == ["full", "mamba_align"]
    assert [kind.value for kind in Connector] == ["none", "uniform", "diverging"]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"num_blocks": 1}, "num_blocks must be at least 2 .*, got 1"),
        ({"hash_unit": 0}, "hash_unit must be at least 1, got 0"),
        ({"groups": ()}, r"groups must be a list of at least one group, got \[\]"),
        ({"groups": (STATES,)}, "groups must be .* full group, got 'only recurrent groups'"),
        ({"groups": (FULL, Group(GroupKind.FULL, 0))}, "multiple of hash_unit 1, got 0"),
        ({"groups": (FULL, STATES), "hash_unit": 4}, "a multiple of hash_unit 4, got 6"),
        ({"max_model_len": 0}, "max_model_len must be at least 1, got 0"),
        ({"max_in_flight": 0}, "max_in_flight must be at least 1, got 0"),
    ],
)
def test_what_makes_no_cache_is_refused(changes: dict[str, object], told: str) -> None:
    with pytest.raises(InvalidInput, match=f"configure: .*{told}"):
        replace(LEAST, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("groups", "unit", "fine", "alignment", "eagle"),
    [
        ((FULL,), 2, False, 4, 4),
        ((FULL, STATES), 2, True, 2, 2),
        ((Group(GroupKind.FULL, 6), STATES), 6, False, 6, 6),
        ((FULL, Group(GroupKind.MAMBA_ALIGN, 2)), 2, False, 4, 4),
    ],
)
def test_what_follows_from_a_configuration(
    groups: tuple[Group, ...], unit: int, fine: bool, alignment: int, eagle: int
) -> None:
    config = Config(9, unit, groups, 99)
    assert (config.fine, config.alignment, config.eagle_unit(groups[0])) == (
        fine,
        alignment,
        eagle,
    )
    assert list(config.ids()) == list(range(len(groups)))
    assert [group.recurrent for group in groups] == [
        group.kind is GroupKind.MAMBA_ALIGN for group in groups
    ]


def test_the_scheduler_block_ends_a_block_of_every_group() -> None:
    assert Config(9, 2, (FULL, STATES), 99).scheduler_block == 12


def test_pieces_that_cover_and_the_multiple_below() -> None:
    for amount in range(30):
        for size in range(1, 9):
            least = next(n for n in range(99) if n * size >= amount)
            assert ceil_div(amount, size) == least
            assert align_down(amount, size) == max(n for n in range(0, amount + 1, size))


def test_the_largest_token_and_the_longest_name() -> None:
    state = initial_state(replace(LEAST, max_model_len=9))
    for name, token, fits in (
        ("a" * 256, 2**31 - 1, True),
        ("a" * 257, 0, False),
        ("a", 2**31, False),
    ):
        event = ev.Submit(RequestId(name), (Token(token),))
        assert (why_not(state, event) is None) == fits
