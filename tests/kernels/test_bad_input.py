"""What cannot be moved is refused in one line that names the argument, and nothing is written."""

from __future__ import annotations

from itertools import product

import pytest
import torch

from kvspec.kernels.layout import MAX_POOL_BYTES, Layout, MoveError, Segment, Storage
from kvspec.kernels.movers import CpuMover
from kvspec.kernels.plan import MAX_ENTRIES, NO_SLOT, Geometry, plan_copies, plan_fill
from kvspec.kernels.tensors import layout_of

LAYOUT = Layout(4, (Storage(4096, 64),), (Segment(0, 0, 16, 16),))


@pytest.mark.parametrize(
    ("pairs", "names"),
    [
        ([(1, 4)], r"pairs\[0\] destination.*got 4"),
        ([(1, 2), (-1, 3)], r"pairs\[1\] source.*got -1"),
        ([(0, 1)], r"pairs\[0\] source.*null block"),
        ([(1, 0)], r"pairs\[0\] destination.*null block"),
        ([(1, 3), (2, 3)], r"pairs\[1\]: block 3 is also the destination of pairs\[0\]"),
        ([(1, 2, 3)], r"pairs\[0\]: expected \(source, destination\)"),
        ([(1.0, 2)], r"pairs\[0\] source: expected a block id, got 1.0"),
        ([(True, 2)], r"pairs\[0\] source: expected a block id, got True"),
    ],
)
def test_a_pair_that_names_no_copy_is_refused(pairs: list[tuple[int, int]], names: str) -> None:
    with pytest.raises(MoveError, match=names):
        plan_copies(LAYOUT, pairs)


@pytest.mark.parametrize(
    ("blocks", "value", "names"),
    [
        ([0], 0, r"blocks\[0\].*null block"),
        ([1, 4], 0, r"blocks\[1\].*got 4"),
        ([1], 256, "value: expected a byte"),
        ([1], -1, "value: expected a byte"),
    ],
)
def test_a_fill_that_names_no_block_is_refused(blocks: list[int], value: int, names: str) -> None:
    with pytest.raises(MoveError, match=names):
        plan_fill(LAYOUT, blocks, value)


@pytest.mark.parametrize(
    ("segments", "names"),
    [
        ([Segment(0, 1, 16, 16)], r"segments\[0\]: ends at byte 65, beyond its storage of 64"),
        ([Segment(0, 0, 8, 16)], r"segments\[0\]: stride 8 is less than size 16"),
        ([Segment(1, 0, 16, 16)], r"segments\[0\]: there is no storage 1"),
        ([Segment(0, -1, 16, 16)], r"segments\[0\]: offset, stride and size"),
        ([Segment(0, 0, 16, 9), Segment(0, 8, 16, 8)], r"segments\[0\] and segments\[1\] overlap"),
        ([Segment(0, 0, 16, 4), Segment(0, 17, 8, 7)], r"segments\[0\] and segments\[1\] overlap"),
    ],
)
def test_segments_that_leave_their_storage_or_meet_are_refused(
    segments: list[Segment], names: str
) -> None:
    with pytest.raises(MoveError, match=names):
        Layout(4, (Storage(4096, 64),), tuple(segments))


@pytest.mark.parametrize(
    ("storages", "names"),
    [
        ([Storage(0, 64), Storage(63, 64)], r"storages\[0\] and storages\[1\] overlap"),
        ([Storage(0, MAX_POOL_BYTES + 1)], r"storages\[0\]: size"),
        ([Storage(2**63, 1)], r"storages\[0\]: no such address"),
    ],
)
def test_storages_that_overlap_or_are_no_memory_are_refused(
    storages: list[Storage], names: str
) -> None:
    with pytest.raises(MoveError, match=names):
        Layout(4, tuple(storages), ())


def test_segments_are_refused_exactly_when_they_share_a_byte() -> None:
    """All small pairs of segments, against the sets of their bytes."""
    seen = {True: 0, False: 0}
    for stride, other_stride, size, other_size, at in product(
        range(1, 7), range(1, 7), range(1, 4), range(1, 4), range(12)
    ):
        if size > stride or other_size > other_stride:
            continue
        one, other = Segment(0, 3, stride, size), Segment(0, at, other_stride, other_size)
        meet = bool(touched(one) & touched(other))
        try:
            Layout(3, (Storage(0, 99),), (one, other))
            refused = False
        except MoveError:
            refused = True
        assert refused == meet, (one, other)
        seen[meet] += 1
    assert min(seen.values()) > 100


def touched(segment: Segment) -> set[int]:
    starts = (segment.offset + block * segment.stride for block in range(3))
    return {start + byte for start in starts for byte in range(segment.size)}


def test_more_entries_than_a_grid_holds_take_several_tiles_each() -> None:
    large = Layout(2, (Storage(0, 2**40),), (Segment(0, 0, 2**39, 2**39),))
    assert Geometry(large).grid(2**10) == 2**31 - 1
    with pytest.raises(MoveError, match="too many for one launch"):
        Geometry(large).grid(MAX_ENTRIES + 1)


def test_empty_lists_and_segments_of_no_bytes_move_nothing() -> None:
    assert Layout(4, (Storage(0, 1),), (Segment(0, 9, 0, 0),)).segments == ()
    assert plan_copies(LAYOUT, []).pairs == ()
    assert plan_copies(LAYOUT, [(2, 2)]).pairs == ()
    tensor = torch.arange(16, dtype=torch.uint8).view(4, 4)
    mover = CpuMover(layout_of([tensor])[1])
    mover.copy([])
    mover.fill([], 0)
    assert tensor.tolist() == torch.arange(16).view(4, 4).tolist()


def test_only_what_is_read_after_it_would_be_written_is_staged() -> None:
    plan = plan_copies(LAYOUT, [(1, 2), (2, 3)])
    assert plan.pairs == ((1, 2, NO_SLOT), (2, 3, 0))
    assert plan.num_slots == 1


def test_a_refused_list_leaves_every_byte() -> None:
    tensor = torch.arange(16, dtype=torch.uint8).view(4, 4)
    mover, before = CpuMover(layout_of([tensor])[1]), tensor.clone()
    with pytest.raises(MoveError):
        mover.copy([(1, 2), (1, 9)])
    with pytest.raises(MoveError):
        mover.fill([1, 9], 0)
    assert torch.equal(tensor, before)


@pytest.mark.parametrize(
    ("tensors", "names"),
    [
        ([], "tensors: expected at least one"),
        ([[1]], r"tensors\[0\]: expected a torch.Tensor, got list"),
        ([torch.zeros(4, 4).to_sparse()], r"tensors\[0\]: expected a plain strided tensor"),
        ([torch.zeros(4, device="meta")], r"tensors\[0\]: expected device cpu or cuda, got meta"),
        ([torch.zeros(4), torch.zeros(5)], r"tensors\[1\]: has 5 blocks, tensors\[0\] has 4"),
        ([torch.zeros(())], r"tensors\[0\]: has 0 dimensions"),
        ([torch.zeros(0, 4)], r"tensors\[0\]: has no blocks"),
        ([torch.zeros(1, 8).expand(4, 8)], "overlap"),
        ([torch.zeros(4, 1).expand(4, 8)], "overlap"),
        ([torch.zeros(2, 5000, 2)[:, :, 0]], "in 5000 pieces"),
        ([torch.zeros(4, dtype=torch.complex64).conj()], "lazy conjugate"),
    ],
)
def test_tensors_that_cannot_be_moved_as_bytes_are_refused(
    tensors: list[torch.Tensor], names: str
) -> None:
    with pytest.raises(MoveError, match=names):
        layout_of(tensors)


def test_two_tensors_that_share_bytes_are_refused() -> None:
    slab = torch.zeros(4, 8)
    with pytest.raises(MoveError, match="overlap"):
        layout_of([slab[:, :5], slab[:, 4:]])
    layout_of([slab[:, :4], slab[:, 4:]])
