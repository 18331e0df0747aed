"""Caches of torch tensors, in all the shapes and dtypes of engines, compared as bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kvspec.kernels.host import HostMover
from kvspec.kernels.layout import Layout
from kvspec.kernels.movers import CpuMover, Mover
from kvspec.kernels.tensors import layout_of

DTYPES = {
    "fp8 e4m3": torch.float8_e4m3fn,
    "fp8 e5m2": torch.float8_e5m2,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
    "fp32": torch.float32,
    "int8": torch.int8,
    "packed 4-bit": torch.uint8,
}


@dataclass
class Cache:
    """Tensors, which of their dimensions counts blocks, and the memory behind them."""

    slab: torch.Tensor
    tensors: list[torch.Tensor]
    dims: list[int]


def per_layer(dtype: torch.dtype, blocks: int, head: int) -> Cache:
    """A tensor a layer, keys and values in one block."""
    return typed(dtype, blocks, (3, blocks, 2, 4, head), lambda t: [(t[i], 0) for i in range(3)])


def split(dtype: torch.dtype, blocks: int, head: int) -> Cache:
    """Keys of all blocks, then values of all blocks."""
    return typed(dtype, blocks, (2, 2, blocks, 4, head), lambda t: [(t[i], 1) for i in range(2)])


def block_major(dtype: torch.dtype, blocks: int, head: int) -> Cache:
    """One slab; the layers of a block one after another."""
    return typed(dtype, blocks, (blocks, 3, 4, head), lambda t: [(t[:, i], 0) for i in range(3)])


def heads_first(dtype: torch.dtype, blocks: int, head: int) -> Cache:
    """Strides in another order than dimensions: a block is in several pieces."""
    return typed(dtype, blocks, (3, blocks, 4, head), lambda t: [(t.permute(1, 2, 0, 3), 0)])


def padded(dtype: torch.dtype, blocks: int, head: int) -> Cache:
    """Rows with padding that is nobody's."""
    return typed(dtype, blocks, (blocks, 4, head + 3), lambda t: [(t[:, :, :head], 0)])


def shared_slab(dtype: torch.dtype, blocks: int, head: int) -> Cache:
    """Two groups of different dtypes in one slab: attention, then a float32 state."""
    size = torch.empty((), dtype=dtype).element_size()
    row = -(-4 * head * size // 4) * 4 + 4 * 5
    slab = torch.zeros(blocks * row, dtype=torch.uint8)
    attention = slab.view(dtype).as_strided((blocks, 4 * head), (row // size, 1))
    state = slab.view(torch.float32).as_strided((blocks, 5), (row // 4, 1), row // 4 - 5)
    return Cache(slab, [attention, state], [0, 0])


def typed(
    dtype: torch.dtype,
    blocks: int,
    shape: tuple[int, ...],
    views: Callable[[torch.Tensor], list[tuple[torch.Tensor, int]]],
) -> Cache:
    whole = torch.zeros(shape, dtype=dtype)
    found = views(whole)
    slab = torch.empty(0, dtype=torch.uint8).set_(whole.untyped_storage())
    return Cache(slab, [t for t, _ in found], [d for _, d in found])


SHAPES = [per_layer, split, block_major, heads_first, padded, shared_slab]
few = settings(max_examples=40, deadline=None, derandomize=True)


@st.composite
def batches(draw: st.DrawFn) -> tuple[int, int, list[tuple[int, int]], list[int], int]:
    blocks = draw(st.integers(2, 9))
    ids = st.integers(1, blocks - 1)
    goals = draw(st.lists(ids, unique=True))
    pairs = [(draw(ids), goal) for goal in goals]
    return blocks, draw(st.integers(1, 67)), pairs, draw(st.lists(ids)), draw(st.integers(0, 999))


def as_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """A view of the same memory as bytes, a last dimension of one element's."""
    size = tensor.element_size()
    memory = torch.empty(0, dtype=torch.uint8, device=tensor.device)
    memory = memory.set_(tensor.untyped_storage())
    strides = (*(s * size for s in tensor.stride()), 1)
    return memory.as_strided((*tensor.shape, size), strides, tensor.storage_offset() * size)


@pytest.mark.parametrize("make", [CpuMover, HostMover])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
def test_the_bytes_of_a_cache_are_those_that_indexing_would_give(
    make: Callable[[Layout], Mover],
    shape: Callable[..., Cache],
    dtype: torch.dtype,
    request: pytest.FixtureRequest,
) -> None:
    if make is HostMover:
        request.getfixturevalue("twin")

    @given(batches())
    @few
    def check(batch: tuple[int, int, list[tuple[int, int]], list[int], int]) -> None:
        blocks, head, pairs, filled, seed = batch
        cache = shape(dtype, blocks, head)
        cache.slab.random_(0, 256, generator=torch.Generator().manual_seed(seed))
        before = cache.slab.clone()
        mover = make(layout_of(cache.tensors, cache.dims)[1])
        mover.fill(filled, 0)
        mover.copy(pairs)
        found = cache.slab.clone()
        cache.slab.copy_(before)
        for tensor, dim in zip(cache.tensors, cache.dims, strict=True):
            rows = as_bytes(tensor).movedim(dim, 0)
            rows[filled] = 0
            rows[[d for _, d in pairs]] = rows[[s for s, _ in pairs]].clone()
        assert torch.equal(found, cache.slab)

    check()


def test_nan_payloads_and_signed_zeros_survive(twin: Path) -> None:
    bits = [0x7FC12345, -0x3FEDCC, 0x7F800001, -0x80000000, 0, 1]
    for make in (CpuMover, HostMover):
        cache = torch.zeros(3, 6, dtype=torch.float32)
        cache.view(torch.int32)[1] = torch.tensor(bits, dtype=torch.int32)
        make(layout_of([cache])[1]).copy([(1, 2)])
        assert cache.view(torch.int32)[2].tolist() == bits
