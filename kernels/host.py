"""The host twin: the CUDA source, compiled for the CPU by g++ and called in this process.

With `sanitizers` the library is built with AddressSanitizer and UndefinedBehaviorSanitizer. Their
run time must be loaded before anything else, so such a library works only in a process that was
started with `sanitizer_environment()`.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path

from .layout import Layout
from .movers import Pairs
from .plan import Geometry, Row, plan_copies, plan_fill

FOLDER = Path(__file__).resolve().parent
SOURCES = ("arithmetic.h", "block_moves.h", "block_moves.cu", "host_shim.h", "host_twin.cpp")
FLAGS = (
    "-std=c++17",
    "-shared",
    "-fPIC",
    "-fno-strict-aliasing",  # the same bytes are accessed in several widths
    "-Wall",
    "-Wextra",
    "-Werror",
    "-Wno-unknown-pragmas",
)
SANITIZERS = (
    "-O1",
    "-g",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all",
    "-fno-omit-frame-pointer",
)

U64 = ctypes.c_uint64


class NoCompiler(RuntimeError):
    """The twin cannot be built here; the text says why."""


def sources() -> dict[str, str]:
    """The text of the files that the twin is made of."""
    return {name: (FOLDER / name).read_text(encoding="utf-8") for name in SOURCES}


def build(
    texts: Mapping[str, str], folder: Path | None = None, *, sanitizers: bool = False
) -> Path:
    """Compile the twin, once for each text. Raises `NoCompiler`."""
    compiler = shutil.which("g++")
    if compiler is None:
        raise NoCompiler("the host twin needs g++, which is not installed")
    flags = (*FLAGS, *(SANITIZERS if sanitizers else ("-O3",)))
    folder = folder or Path(tempfile.gettempdir()) / f"kvspec-twin-{os.getuid()}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise NoCompiler(f"the folder {folder} belongs to someone else")
    library = folder / f"twin-{_digest(compiler, flags, texts)}.so"
    if not library.exists():
        with tempfile.TemporaryDirectory(dir=folder) as made:
            _compile(compiler, flags, texts, Path(made), library)
    return library


def _compile(
    compiler: str, flags: tuple[str, ...], texts: Mapping[str, str], made: Path, library: Path
) -> None:
    for name, text in texts.items():
        (made / name).write_text(text, encoding="utf-8")
    result = made / "twin.so"
    command = [compiler, *flags, "-o", str(result), str(made / "host_twin.cpp")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoCompiler(f"g++ cannot compile the host twin: {done.stderr.strip()[:2000]}")
    result.replace(library)


def _digest(compiler: str, flags: tuple[str, ...], texts: Mapping[str, str]) -> str:
    version = subprocess.run([compiler, "--version"], capture_output=True, check=False).stdout
    parts = [compiler, *flags, *(part for item in sorted(texts.items()) for part in item)]
    digest = hashlib.sha256(version)
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part.encode())
    return digest.hexdigest()[:24]


def sanitizer_environment() -> dict[str, str]:
    """What a process that loads a library built with sanitizers needs. Raises `NoCompiler`."""
    compiler = shutil.which("g++")
    if compiler is None:
        raise NoCompiler("the sanitizers come with g++, which is not installed")
    paths = []
    for name in ("libasan.so", "libubsan.so"):
        command = [compiler, f"-print-file-name={name}"]
        path = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
        if not Path(path).is_absolute():
            raise NoCompiler(f"g++ here has no {name}")
        paths.append(path)
    return {
        "LD_PRELOAD": " ".join(paths),
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=0",
    }


class _Moves(ctypes.Structure):
    _fields_ = (
        ("segments", ctypes.c_void_p),
        ("num_segments", U64),
        ("tiles_per_entry", U64),
        ("scratch", U64),
        ("slot_bytes", U64),
    )


@cache
def load(library: Path | None = None) -> ctypes.CDLL:
    """The library, by default that of the source as it is. Raises `NoCompiler`."""
    twin = ctypes.CDLL(str(library or build(sources())))
    lists = [_Moves, ctypes.c_void_p, U64]
    twin.host_stage.argtypes = twin.host_copy.argtypes = [*lists, U64, ctypes.c_int]
    twin.host_fill.argtypes = [*lists, ctypes.c_uint, U64, ctypes.c_int]
    twin.host_stage.restype = twin.host_copy.restype = twin.host_fill.restype = None
    twin.host_segment_of.argtypes = [_Moves, U64]
    twin.host_segment_of.restype = U64
    return twin


def arithmetic(twin: ctypes.CDLL, name: str, parameters: int) -> Callable[..., int]:
    """A function of arithmetic.h."""
    function = getattr(twin, name)
    function.argtypes, function.restype = [U64] * parameters, U64
    called: Callable[..., int] = function
    return called


def words(rows: Iterable[Row]) -> ctypes.Array[U64]:
    """Records as 64-bit words."""
    flat = [word for row in rows for word in row]
    return (U64 * len(flat))(*flat)


class HostMover:
    """Moves blocks in this process's memory with the twin of the CUDA kernels.

    `reversed` runs the threads in the opposite order; `grid` is a cap on their blocks. Neither may
    make a difference. Raises `NoCompiler`.
    """

    def __init__(
        self,
        layout: Layout,
        library: Path | None = None,
        *,
        reversed: bool = False,
        grid: int | None = None,
    ) -> None:
        self.geometry = Geometry(layout)
        self.twin = load(library)
        self.reversed = reversed
        self.cap = grid
        self._segments = words(self.geometry.segment_rows())

    def copy(self, pairs: Pairs) -> None:
        """Copy blocks; sources that are also destinations are staged first."""
        plan = plan_copies(self.geometry.layout, pairs)
        grid, rows = self._grid(len(plan.pairs)), words(plan.pairs)
        scratch = ctypes.create_string_buffer(self.geometry.scratch_bytes(plan.num_slots) + 16)
        moves = self.moves(ctypes.addressof(scratch))
        if plan.num_slots:
            self.twin.host_stage(moves, rows, len(plan.pairs), grid, self.reversed)
        self.twin.host_copy(moves, rows, len(plan.pairs), grid, self.reversed)

    def fill(self, blocks: Iterable[int], value: int) -> None:
        """Fill blocks with a byte value."""
        named = plan_fill(self.geometry.layout, blocks, value)
        grid, rows = self._grid(len(named)), words([named])
        self.twin.host_fill(self.moves(0), rows, len(named), value, grid, self.reversed)

    def moves(self, scratch: int) -> _Moves:
        """The record `Moves`, with the scratch area at an address."""
        geometry = self.geometry
        return _Moves(
            ctypes.addressof(self._segments),
            len(geometry.layout.segments),
            geometry.tiles_per_entry,
            -(-scratch // 16) * 16,
            geometry.slot_bytes,
        )

    def _grid(self, entries: int) -> int:
        grid = self.geometry.grid(entries)
        return grid if self.cap is None else min(grid, self.cap)
