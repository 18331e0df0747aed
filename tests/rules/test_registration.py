"""Which keys a chunk gives, against worked values."""

from __future__ import annotations

import pytest

from kvspec.spec.registration import full_entries, partial_boundary, recurrent_entries
from kvspec.spec.types import Config, Group, GroupId, GroupKind

FINE = Config(99, 2, (Group(GroupKind.FULL, 4), Group(GroupKind.MAMBA_ALIGN, 4)), 99)
COARSE = Config(99, 2, (Group(GroupKind.FULL, 4), Group(GroupKind.MAMBA_ALIGN, 2)), 99)
ATTENTION, STATES = GroupId(0), GroupId(1)


def test_a_partial_entry_stands_at_the_prompt_s_last_hash_boundary() -> None:
    assert [partial_boundary(FINE, n) for n in (5, 6, 7)] == [4, 6, 6]
    assert partial_boundary(COARSE, 7) == 0


@pytest.mark.parametrize(
    ("config", "prompt", "done", "end", "keys"),
    [
        (FINE, 12, 0, 9, [(0, 4), (1, 8)]),
        (FINE, 12, 5, 8, [(1, 8)]),
        (FINE, 7, 0, 7, [(0, 4), (1, 6)]),
        (FINE, 7, 4, 6, [(1, 6)]),
        (FINE, 7, 4, 5, []),
        (FINE, 7, 6, 7, []),
        (FINE, 7, 4, 9, [(1, 8)]),
        (FINE, 9, 0, 9, [(0, 4), (1, 8)]),
        (COARSE, 7, 0, 7, [(0, 4)]),
    ],
)
def test_attention_keys_complete_blocks_and_the_tail(
    config: Config, prompt: int, done: int, end: int, keys: list[tuple[int, int]]
) -> None:
    assert full_entries(config, ATTENTION, prompt, done, end) == keys


@pytest.mark.parametrize(
    ("config", "prompt", "done", "start", "end", "keys"),
    [
        (FINE, 12, 0, 0, 8, [(1, 8)]),
        (FINE, 12, 0, 4, 8, [(0, 4), (1, 8)]),
        (FINE, 12, 4, 4, 7, []),
        (FINE, 7, 4, 4, 6, [(1, 6)]),
        (FINE, 7, 4, 4, 7, []),
        (FINE, 7, 0, 6, 7, []),
        (FINE, 12, 8, 8, 8, []),
        (FINE, 12, 0, 8, 8, [(1, 8)]),
        (FINE, 12, 8, 4, 8, []),
        (COARSE, 7, 0, 0, 6, [(2, 6)]),
        (COARSE, 7, 0, 0, 7, []),
    ],
)
def test_a_recurrent_group_keys_the_states_at_both_ends(
    config: Config, prompt: int, done: int, start: int, end: int, keys: list[tuple[int, int]]
) -> None:
    assert recurrent_entries(config, STATES, prompt, done, start, end) == keys
