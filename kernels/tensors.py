"""The layout of caches that are torch tensors: which bytes of them belong to which block."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import torch

from .layout import Layout, MoveError, Segment, Storage

MAX_PIECES = 4096
"""The most pieces that a block may be in, in one tensor."""


def layout_of(
    tensors: Sequence[torch.Tensor], block_dims: int | Sequence[int] = 0
) -> tuple[torch.device, Layout]:
    """Where the blocks of some tensors lie, all on one device. Any dtype: bytes are moved.

    `block_dims` says which dimension of each tensor counts blocks: 0 for a block-major tensor, 1
    for one that is split into keys and values first. Tensors may be views of one slab.

    Raises `MoveError` when they differ in device or number of blocks, overlap, or cannot be moved
    as bytes.
    """
    if not tensors:
        raise MoveError("tensors: expected at least one")
    dims = [block_dims] * len(tensors) if isinstance(block_dims, int) else list(block_dims)
    if len(dims) != len(tensors):
        raise MoveError(f"block_dims: expected {len(tensors)} numbers, got {len(dims)}")
    for number, (tensor, dim) in enumerate(zip(tensors, dims, strict=True)):
        _check(f"tensors[{number}]", tensor, dim)
    first, num_blocks = tensors[0], tensors[0].shape[dims[0]]
    storages: dict[int, tuple[int, Storage]] = {}
    segments: list[Segment] = []
    for number, (tensor, dim) in enumerate(zip(tensors, dims, strict=True)):
        where = f"tensors[{number}]"
        if tensor.device != first.device:
            raise MoveError(f"{where}: is on {tensor.device}, tensors[0] on {first.device}")
        if tensor.shape[dim] != num_blocks:
            raise MoveError(f"{where}: has {tensor.shape[dim]} blocks, tensors[0] has {num_blocks}")
        memory = tensor.untyped_storage()
        known = (len(storages), Storage(memory.data_ptr(), memory.nbytes()))
        index, _ = storages.setdefault(memory.data_ptr(), known)
        segments += _segments(where, tensor, dim, index)
    return first.device, Layout(num_blocks, tuple(s for _, s in storages.values()), tuple(segments))


def _check(where: str, tensor: object, dim: int) -> None:
    if not isinstance(tensor, torch.Tensor):
        raise MoveError(f"{where}: expected a torch.Tensor, got {type(tensor).__name__}")
    if tensor.layout is not torch.strided or tensor.is_quantized:
        raise MoveError(f"{where}: expected a plain strided tensor, got {tensor.layout}")
    if tensor.device.type not in ("cpu", "cuda"):
        raise MoveError(f"{where}: expected device cpu or cuda, got {tensor.device}")
    if tensor.is_conj() or tensor.is_neg():
        raise MoveError(f"{where}: is a lazy conjugate or negative: its bytes are not its values")
    if not 0 <= dim < tensor.dim():
        raise MoveError(f"{where}: has {tensor.dim()} dimensions, block_dims says {dim}")
    if tensor.shape[dim] < 1:
        raise MoveError(f"{where}: has no blocks, its shape is {tuple(tensor.shape)}")


def _segments(where: str, tensor: torch.Tensor, dim: int, storage: int) -> list[Segment]:
    """The contiguous pieces of a block, in the order of the tensor's elements."""
    rest = [n for n in range(tensor.dim()) if n != dim]
    if any(tensor.shape[n] == 0 for n in rest):
        return []
    size, inner = tensor.element_size(), []
    run = 1
    for n in reversed(rest):  # the dimensions within which a block is one piece
        if tensor.shape[n] > 1 and tensor.stride(n) != run:
            break
        inner.append(n)
        run *= tensor.shape[n]
    outer = [n for n in rest if n not in inner]
    pieces = 1
    for n in outer:
        pieces *= tensor.shape[n]
    if pieces > MAX_PIECES:
        raise MoveError(
            f"{where}: a block is in {pieces} pieces, expected at most {MAX_PIECES}: make the "
            "dimensions of a block contiguous"
        )
    found = []
    for at in product(*(range(tensor.shape[n]) for n in outer)):
        start = tensor.storage_offset() + sum(
            i * tensor.stride(n) for i, n in zip(at, outer, strict=True)
        )
        found.append(Segment(storage, size * int(start), size * tensor.stride(dim), size * run))
    return found
