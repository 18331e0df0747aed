"""How fast blocks are copied: our movers beside indexing, on the same tensors in one run.

A pool is one tensor a layer, all blocks of a step are copied at once. The ways take turns, medians
are compared, and each way must leave the same bytes.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from kvspec.errors import BadInput

if TYPE_CHECKING:
    import torch

LAYERS = 32
BLOCK_BYTES = (2048, 8192, 65_536, 262_144)
"""Bytes of a block in one layer: 16 tokens of 128 bytes, and up."""

LAYER_BYTES = {"cpu": 2**22, "cuda": 2**26}
"""Bytes of a layer's tensor: with all layers far more than caches hold."""

ROUNDS = 15

Way = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Row:
    """Median seconds of one step's copies: ours, by indexing, and one copy of as many bytes."""

    block_bytes: int
    layers: int
    pairs: int
    ours: float
    indexing: float
    one_copy: float

    @property
    def moved(self) -> int:
        """Bytes read and written."""
        return 2 * self.block_bytes * self.layers * self.pairs

    @property
    def rate(self) -> float:
        """Bytes read and written by ours, in GB/s."""
        return self.moved / self.ours / 1e9

    @property
    def to_indexing(self) -> float:
        """How many times as fast as indexing."""
        return self.indexing / self.ours

    @property
    def to_one_copy(self) -> float:
        """The part of the speed of one copy of as many bytes."""
        return self.one_copy / self.ours


@dataclass(frozen=True, slots=True)
class Measured:
    """All rows of a device."""

    device: str
    torch: str
    rows: tuple[Row, ...]


def measure(
    device: str = "cpu",
    *,
    layers: int = LAYERS,
    blocks: Sequence[int] = BLOCK_BYTES,
    layer_bytes: int | None = None,
    rounds: int = ROUNDS,
    seed: int = 0,
) -> Measured:
    """Measure on "cpu" or "cuda". Raises `BadInput` where that cannot be done."""
    try:
        import torch
    except ImportError:
        raise BadInput("bench copy: it needs torch; pip install torch") from None
    if device == "cuda" and not torch.cuda.is_available():
        raise BadInput(f"--device cuda: torch {torch.__version__} sees no NVIDIA GPU here")
    if device not in LAYER_BYTES:
        raise BadInput(f"--device: expected cpu or cuda, got {device!r}")
    size = layer_bytes or LAYER_BYTES[device]
    rows = tuple(_row(device, block, layers, size, rounds, seed) for block in blocks)
    name = torch.cuda.get_device_name() if device == "cuda" else "cpu"
    return Measured(name, str(torch.__version__), rows)


def _row(
    device: str, block_bytes: int, layers: int, layer_bytes: int, rounds: int, seed: int
) -> Row:
    import torch

    num_blocks = layer_bytes // block_bytes
    ids = random.Random(seed).sample(range(1, num_blocks), 2 * (num_blocks // 4))
    pairs = list(zip(ids[::2], ids[1::2], strict=True))
    generator = torch.Generator().manual_seed(seed)
    shape = (num_blocks, block_bytes)
    first = [
        torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator).to(device)
        for _ in range(layers)
    ]
    second = [tensor.clone() for tensor in first]
    ours = _our_way(first, pairs)
    indexing = _indexing(second, pairs)
    room = torch.empty(layers * len(pairs) * block_bytes, dtype=torch.uint8, device=device)
    filled = torch.zeros_like(room)
    seconds = _take_turns([ours, indexing, lambda: room.copy_(filled)], device, rounds)
    if not all(map(torch.equal, first, second)):
        raise AssertionError("two ways to copy the same blocks left different bytes")
    return Row(block_bytes, layers, len(pairs), *seconds)


def _our_way(tensors: list[torch.Tensor], pairs: list[tuple[int, int]]) -> Way:
    """As a worker calls it: from the list of pairs to the bytes."""
    from kvspec.kernels.movers import CpuMover
    from kvspec.kernels.tensors import layout_of

    device, layout = layout_of(tensors)
    if device.type == "cpu":
        mover = CpuMover(layout)
        return lambda: mover.copy(pairs)
    from kvspec.kernels.cuda import CudaMover

    return CudaMover(layout, device).prepare(pairs).launch


def _indexing(tensors: list[torch.Tensor], pairs: list[tuple[int, int]]) -> Way:
    """The common way: an indexed read and an indexed write for each layer."""
    import torch

    lists = torch.tensor(pairs, dtype=torch.int64, device=tensors[0].device)
    sources, destinations = lists[:, 0].contiguous(), lists[:, 1].contiguous()

    def copy() -> None:
        for tensor in tensors:
            tensor.index_copy_(0, destinations, tensor.index_select(0, sources))

    return copy


def _take_turns(ways: Sequence[Way], device: str, rounds: int) -> list[float]:
    """The median seconds of each way, which take turns; a round before them does not count."""
    clock = _on_gpu if device == "cuda" else _on_cpu
    taken: list[list[float]] = [[] for _ in ways]
    for _ in range(rounds + 1):
        for way, times in zip(ways, taken, strict=True):
            times.append(clock(way))
    return [statistics.median(times[1:]) for times in taken]


def _on_cpu(way: Way) -> float:
    began = time.perf_counter()
    way()
    return time.perf_counter() - began


def _on_gpu(way: Way) -> float:
    import torch

    began, ended = (torch.Event("cuda", enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    began.record()
    way()
    ended.record()
    torch.cuda.synchronize()
    return float(began.elapsed_time(ended)) / 1000


# --- told -----------------------------------------------------------------------------------------


def as_data(measured: Measured) -> dict[str, object]:
    """For a report in JSON: seconds, bytes, and the ratios."""
    derived = ("moved", "rate", "to_indexing", "to_one_copy")
    rows = [asdict(row) | {name: getattr(row, name) for name in derived} for row in measured.rows]
    return {"device": measured.device, "torch": measured.torch, "rows": rows}


def as_markdown(measured: Measured, command: str) -> str:
    """A table, with the command that made it."""
    head = (
        f"`{command}`, on {measured.device} with torch {measured.torch}. Medians of one run in "
        "which the ways take turns; bytes are those read and written.\n\n"
        "| block in a layer | layers | pairs | ours, GB/s | times indexing | part of one copy |\n"
        "|---:|---:|---:|---:|---:|---:|\n"
    )
    return head + "".join(
        f"| {row.block_bytes:,} | {row.layers} | {row.pairs} | {row.rate:.1f} "
        f"| {row.to_indexing:.2f} | {row.to_one_copy:.0%} |\n"
        for row in measured.rows
    )


def tell(measured: Measured) -> str:
    """The slowest ratios in one line."""
    indexing = min(row.to_indexing for row in measured.rows)
    one_copy = min(row.to_one_copy for row in measured.rows)
    return (
        f"copies on {measured.device}: at least {indexing:.2f} times as fast as indexing, at least "
        f"{one_copy:.0%} of one copy of as many bytes"
    )
