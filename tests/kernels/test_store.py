"""Torch storages hold what the plain worker's memory holds, and every byte around it is watched."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kvspec.kernels.store import TorchStore
from kvspec.reference.worker import POISON, PlainStore
from kvspec.spec.types import BlockId

BLOCKS, PAGE = 5, 24
IDS = st.integers(1, BLOCKS - 1).map(BlockId)
PLACES = st.integers(0, PAGE).flatmap(
    lambda at: st.tuples(st.just(at), st.binary(max_size=PAGE - at))
)
PAIRS = st.lists(st.tuples(IDS, IDS), max_size=4, unique_by=lambda pair: pair[1]).map(tuple)
MOVES = st.one_of(
    st.tuples(
        st.just("fill"), st.lists(IDS, max_size=3).map(tuple), st.sampled_from([b"\0", b"\x5a"])
    ),
    st.tuples(st.just("copy"), PAIRS),
    st.builds(lambda block, place: ("write", block, *place), IDS, PLACES),
)


def image(plain: PlainStore) -> torch.Tensor:
    """All blocks of the plain memory, by their bytes."""
    return torch.tensor(list(plain.memory), dtype=torch.uint8).reshape(BLOCKS, PAGE)


@given(moves=st.lists(MOVES, max_size=8))
def test_the_same_moves_leave_the_same_bytes(moves: list[tuple[str, object]]) -> None:
    plain, store = PlainStore(BLOCKS, PAGE), TorchStore(BLOCKS, PAGE, POISON[0])
    for name, *arguments in moves:
        getattr(plain, name)(*arguments)
        getattr(store, name)(*arguments)
    assert store.first_difference(image(plain)) == ""
    for block in map(BlockId, range(1, BLOCKS)):
        assert store.read(block, 3, PAGE - 5) == plain.read(block, 3, PAGE - 5)


@pytest.mark.parametrize("storage", [0, 1])
def test_any_byte_that_differs_is_told_guards_as_well(storage: int) -> None:
    plain, store = PlainStore(BLOCKS, PAGE), TorchStore(BLOCKS, PAGE, POISON[0])
    for at in range(store.tensors[storage].numel()):
        store.tensors[storage][at] ^= 1
        assert store.first_difference(image(plain)), at
        store.tensors[storage][at] ^= 1
    assert store.agrees(image(plain))
