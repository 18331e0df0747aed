"""The kernels on a GPU: the same cases, far offsets, CUDA graphs. `make gpu` runs these."""

from __future__ import annotations

import pytest
import torch
from hypothesis import example, given, settings

from kvspec.kernels.layout import Layout, MoveError, Storage
from kvspec.kernels.tensors import layout_of

from .cases import Case, cases, plainly
from .test_moves import CHAIN

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no NVIDIA GPU here"),
]


def on_device(case: Case) -> list[bytes]:
    """What the storages hold after the case, run on the GPU."""
    from kvspec.kernels.cuda import CudaMover

    memory = []
    for (skip, size), content in zip(case.storages, case.contents(), strict=True):
        whole = torch.zeros(skip + size, dtype=torch.uint8, device="cuda")
        whole[skip:] = torch.frombuffer(bytearray(content or b"\0"), dtype=torch.uint8)[
            :size
        ].cuda()
        memory.append(whole[skip:])
    storages = tuple(Storage(tensor.data_ptr(), tensor.numel()) for tensor in memory)
    layout = Layout(case.num_blocks, storages, case.segments)
    mover = CudaMover(layout, torch.device("cuda"), grid=case.grid)
    mover.fill(case.filled, case.value)
    mover.copy(case.pairs)
    torch.cuda.synchronize()
    return [bytes(tensor.tolist()) for tensor in memory]


@given(cases())
@example(CHAIN)
@settings(max_examples=150, deadline=None, derandomize=True)
def test_the_gpu_moves_exactly_the_bytes_named(case: Case) -> None:
    assert on_device(case) == plainly(case)


@pytest.mark.parametrize("boundary", [2**31, 2**32, 2**34], ids=["2^31 B", "2^32 B", "2^32 words"])
def test_ids_on_both_sides_of_a_boundary_are_told_apart(boundary: int) -> None:
    from kvspec.kernels.cuda import CudaMover

    size = 2**20
    blocks = boundary // size + 3
    if torch.cuda.mem_get_info()[0] < (blocks + 64) * size:
        pytest.skip(f"the GPU has less than {blocks * size} bytes free")
    pool = torch.zeros(blocks, size // 4, dtype=torch.int32, device="cuda")
    last = blocks - 1
    for block in (1, 2, last, last - 1):
        pool[block] = block
    device, layout = layout_of([pool])
    CudaMover(layout, device).copy([(last, 3), (1, last - 2), (last - 1, 2), (2, last - 1)])
    torch.cuda.synchronize()
    assert [pool[b].tolist() for b in (3, last - 2, 2, last - 1)] == [
        [block] * (size // 4) for block in (last, 1, last - 1, 2)
    ]
    assert int(pool[4].abs().sum()) == 0


def test_a_captured_graph_replays_the_list_that_was_last_given() -> None:
    from kvspec.kernels.cuda import CudaMover

    pool = torch.arange(8, dtype=torch.int64, device="cuda").view(8, 1).repeat(1, 9)
    device, layout = layout_of([pool])
    copies = CudaMover(layout, device).prepare([(1, 2), (2, 3), (4, 5)])
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        copies.launch()
    graph.replay()
    torch.cuda.synchronize()
    assert pool[:, 0].tolist() == [0, 1, 1, 2, 4, 4, 6, 7]
    copies.update([(7, 6)])
    graph.replay()
    torch.cuda.synchronize()
    assert pool[:, 0].tolist() == [0, 1, 1, 2, 4, 4, 7, 7]
    with pytest.raises(MoveError, match="room is for 3"):
        copies.update([(1, 2), (1, 3), (1, 4), (1, 5)])
