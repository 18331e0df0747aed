"""The memory that a session moves: the plain worker's, and beside it the same moves by our kernels.

The plain worker's bytes are what the content says they are (DATA.BYTES). A second store gets the
same fills, copies and writes, does the first two as an engine would, and must hold the same bytes
after each step, with the guard bytes around and between its blocks untouched (DATA.KERNEL).
"""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Protocol

from kvspec.reference.worker import POISON, PlainStore, Store, Worker, page_bytes
from kvspec.spec.types import BlockId, Config, Table

from .errors import BadInput

if TYPE_CHECKING:
    import torch

    from kvspec.kernels.store import MakeMover

MOST_BYTES = 2**28
"""Bytes of a pool up to which its memory is held; above, all but the bytes is judged."""

MOST_COMPARED = 2**22
"""Bytes of a pool up to which a second store is held, since all of it is compared at each step."""


class StoreKind(StrEnum):
    """What moves the bytes beside the plain worker."""

    AUTO = "auto"
    """`torch` where torch is installed, else `plain`."""
    PLAIN = "plain"
    """Nothing: the plain worker alone."""
    TORCH = "torch"
    """The way of `kernels.movers` for tensors on a CPU."""
    HOST = "host"
    """The CUDA source, compiled for the CPU: needs g++."""
    CUDA = "cuda"
    """The CUDA kernels, on tensors of the current GPU."""


class SecondStore(Store, Protocol):
    """A store that can be compared as a whole."""

    def first_difference(self, image: torch.Tensor) -> str:
        """Where bytes differ from `image` (blocks by bytes) or a guard does, in words."""


class Memory:
    """The bytes of a pool: a store for the worker, which hands each change to both stores."""

    def __init__(self, config: Config, kind: StoreKind = StoreKind.AUTO) -> None:
        num_blocks, page = config.num_blocks, page_bytes(config)
        self.page = page
        self.plain = PlainStore(num_blocks, page)
        self.second = None
        kind = kind_here(kind)
        if kind is not StoreKind.PLAIN and num_blocks * page <= MOST_COMPARED:
            import torch

            self.second = second_store(kind, num_blocks, page)
            image = torch.frombuffer(self.plain.memory, dtype=torch.uint8)
            self._image = image.view(num_blocks, page)
        self.worker = Worker(config, self)

    def difference(self) -> str:
        """The first byte in which the second store differs from the plain one, in words."""
        return "" if self.second is None else self.second.first_difference(self._image)

    def fill(self, blocks: Table, value: bytes) -> None:
        """Fill whole blocks with one byte value. Raises `MoveError`."""
        self.plain.fill(blocks, value)
        if self.second is not None:
            self.second.fill(blocks, value)

    def copy(self, pairs: tuple[tuple[BlockId, BlockId], ...]) -> None:
        """Copy whole blocks (source, destination). Raises `MoveError`."""
        self.plain.copy(pairs)
        if self.second is not None:
            self.second.copy(pairs)

    def read(self, block: BlockId, offset: int, size: int) -> bytes:
        """Read part of a block."""
        return self.plain.read(block, offset, size)

    def write(self, block: BlockId, offset: int, data: bytes) -> None:
        """Write part of a block."""
        self.plain.write(block, offset, data)
        if self.second is not None:
            self.second.write(block, offset, data)


def fits(config: Config) -> bool:
    """Whether the pool is small enough to be held as bytes."""
    return config.num_blocks * page_bytes(config) <= MOST_BYTES


def kind_here(kind: StoreKind) -> StoreKind:
    """The kind that `auto` stands for here."""
    if kind is StoreKind.AUTO:
        return StoreKind.TORCH if find_spec("torch") is not None else StoreKind.PLAIN
    return kind


def require_store(kind: StoreKind) -> None:
    """Raises `BadInput` when a store that was asked for cannot be made here."""
    if kind not in (StoreKind.AUTO, StoreKind.PLAIN):
        second_store(kind, 2, 1)


def second_store(kind: StoreKind, num_blocks: int, page: int) -> SecondStore:
    """A store of this kind, neither auto nor plain. Raises `BadInput` when it cannot be made."""
    try:
        from kvspec.kernels.host import HostMover, NoCompiler
        from kvspec.kernels.store import TorchStore
    except ImportError as missing:
        raise BadInput(
            f"--store {kind.value}: it needs torch ({missing}); pip install torch, or --store plain"
        ) from None
    if kind is StoreKind.CUDA:
        return TorchStore(num_blocks, page, POISON[0], device="cuda", mover=_gpu_mover())
    if kind is StoreKind.TORCH:
        return TorchStore(num_blocks, page, POISON[0])
    try:
        return TorchStore(num_blocks, page, POISON[0], mover=HostMover)
    except NoCompiler as reason:
        raise BadInput(f"--store host: {reason}; install it, or --store torch") from None


def _gpu_mover() -> MakeMover:
    """What makes movers for the current GPU. Raises `BadInput` where there is none."""
    import torch

    if not torch.cuda.is_available():
        raise BadInput(
            f"--store cuda: torch {torch.__version__} sees no NVIDIA GPU here; use --store host, "
            "which runs the same kernels on the CPU"
        )
    try:
        from kvspec.kernels.cuda import CudaMover
    except ImportError as missing:
        raise BadInput(f"--store cuda: {missing}; pip install 'kvspec[cuda]'") from None
    return partial(CudaMover, device=torch.device("cuda"))
