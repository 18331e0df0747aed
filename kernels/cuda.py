"""The kernels on a GPU: compiled by NVRTC when first used, launched on torch's current stream.

What is launched may be captured into a CUDA graph: see `CudaMover.prepare`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import torch
from cuda.core import Device, LaunchConfig, ObjectCode, Program, ProgramOptions, launch

from .arithmetic import LANES
from .host import FOLDER
from .layout import Layout, MoveError
from .movers import Pairs
from .plan import Geometry, Row, plan_copies, plan_fill

KERNELS = ("stage_blocks", "copy_blocks", "fill_blocks")


@cache
def compiled(arch: str) -> ObjectCode:
    """The kernels for an architecture such as "sm_90". Needs no GPU."""
    source = (FOLDER / "block_moves.cu").read_text(encoding="utf-8")
    options = ProgramOptions(arch=arch, std="c++17", include_path=[str(FOLDER)])
    return Program(source, "c++", options).compile("cubin")


class _TorchStream:
    """Torch's current stream of a device, as cuda-core takes one."""

    def __init__(self, device: torch.device) -> None:
        self.stream = torch.cuda.current_stream(device)

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.stream.cuda_stream


class Prepared:
    """Copies whose list and scratch area are on the device already, to be launched repeatedly.

    It has room for as many pairs as it was made with; a later list may be shorter.
    """

    def __init__(self, mover: CudaMover, pairs: Pairs) -> None:
        geometry, plan = mover.geometry, plan_copies(mover.geometry.layout, pairs)
        self.mover, self.capacity, self.num_slots = mover, len(plan.pairs), plan.num_slots
        self.grid = geometry.grid(self.capacity)
        self.rows = mover.upload(plan.pairs)
        size = geometry.scratch_bytes(plan.num_slots)
        self.scratch = torch.empty(size, dtype=torch.uint8, device=mover.device)

    def update(self, pairs: Pairs) -> None:
        """Put another list in its place. Raises `MoveError` when there is no room for it."""
        plan = plan_copies(self.mover.geometry.layout, pairs)
        if len(plan.pairs) > self.capacity or plan.num_slots > self.num_slots:
            raise MoveError(
                f"pairs: {len(plan.pairs)} of them with {plan.num_slots} in chains, room is for "
                f"{self.capacity} with {self.num_slots}"
            )
        idle = (0, 0, -1)  # a copy of the null block to itself: the kernel passes over it
        filled = [*plan.pairs, *[idle] * (self.capacity - len(plan.pairs))]
        if filled:
            self.rows.copy_(self.mover.upload(filled))

    def launch(self) -> None:
        """Copy, on torch's current stream: one launch, and one before it where there are chains."""
        if self.num_slots:
            self._launch("stage_blocks")
        if self.capacity:
            self._launch("copy_blocks")

    def _launch(self, kernel: str) -> None:
        scratch = self.scratch.data_ptr()
        self.mover.launch(kernel, self.grid, scratch, self.rows.data_ptr(), self.capacity)


class CudaMover:
    """Moves blocks on a GPU. `grid` caps the blocks of threads; it makes no difference to bytes."""

    def __init__(self, layout: Layout, device: torch.device, *, grid: int | None = None) -> None:
        if device.type != "cuda":
            raise MoveError(f"device: expected a cuda device, got {device}")
        self.geometry = Geometry(layout)
        self.device = (
            torch.device("cuda", torch.cuda.current_device()) if (device.index is None) else device
        )
        self.cap = grid
        own = Device(self.device.index)
        own.set_current()
        major, minor = own.compute_capability
        code = compiled(f"sm_{major}{minor}")
        self._kernels = {name: code.get_kernel(name) for name in KERNELS}
        self._segments = self.upload(self.geometry.segment_rows())

    def copy(self, pairs: Pairs) -> None:
        """Copy blocks; sources that are also destinations are staged first."""
        self.prepare(pairs).launch()

    def prepare(self, pairs: Pairs) -> Prepared:
        """The copies, ready to launch. Its `launch` may be captured into a CUDA graph.

        The graph replays whatever list was last given to `Prepared.update`.
        """
        return Prepared(self, pairs)

    def fill(self, blocks: Iterable[int], value: int) -> None:
        """Fill blocks with a byte value."""
        named = plan_fill(self.geometry.layout, blocks, value)
        if named:
            rows = self.upload([(block,) for block in named])
            grid = self.geometry.grid(len(named))
            self.launch("fill_blocks", grid, 0, rows.data_ptr(), len(named), ctypes.c_uint32(value))

    def upload(self, rows: Sequence[Row]) -> torch.Tensor:
        """Records as 64-bit words on the device, in the order of torch's current stream."""
        signed = [[w - 2**64 if w >= 2**63 else w for w in row] for row in rows]
        words = torch.tensor(signed, dtype=torch.int64).pin_memory()
        return words.to(self.device, non_blocking=True)

    def launch(
        self, kernel: str, grid: int, scratch: int, rows: int, count: int, *more: Any
    ) -> None:
        """Launch a kernel on a list; nothing where there is nothing to do."""
        geometry = self.geometry
        if grid == 0:
            return
        config = LaunchConfig(grid=grid if self.cap is None else min(grid, self.cap), block=LANES)
        stream = Device(self.device.index).create_stream(_TorchStream(self.device))
        words = (
            self._segments.data_ptr(),
            len(geometry.layout.segments),
            geometry.tiles_per_entry,
            scratch,
            geometry.slot_bytes,
            rows,
            count,
        )
        launch(stream, config, self._kernels[kernel], *map(ctypes.c_uint64, words), *more)
