"""A fault planted in the kernel source is seen: by a wrong byte or by a sanitizer."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kvspec.kernels.host import HostMover, NoCompiler, build, sources
from kvspec.kernels.layout import Layout, Segment, Storage

from .cases import Case, plainly
from .faults import planted
from .sanitized import Sanitized, SanitizerReport

NORESERVE = 0x4000  # Linux's MAP_NORESERVE, which Python names from 3.13 on
PAGE = 8192 + 37
ODD = Case(4, ((1, 4 * (PAGE + 11)),), (Segment(0, 3, PAGE + 11, PAGE),), ((1, 3),))
CHAIN = Case(5, ((0, 400),), (Segment(0, 0, 80, 64),), ((1, 2), (2, 3)))
SHIFTED = Case(5, ((0, 36 * 5),), (Segment(0, 0, 36, 36),), ((4, 1),))


@contextmanager
def running(texts: dict[str, str], folder: Path) -> Iterator[Sanitized]:
    try:
        process = Sanitized(build(texts, folder, sanitizers=True))
    except NoCompiler as reason:
        pytest.skip(str(reason))
    try:
        yield process
    finally:
        process.close()


def is_caught(fault: str, case: Case, folder: Path) -> bool:
    """Whether the case tells the faulty twin from the right one."""
    with running(sources(), folder) as right:
        assert right.play(case) == plainly(case)
    with running(planted(fault), folder) as wrong:
        try:
            return wrong.play(case) != plainly(case)
        except SanitizerReport:
            return True


def test_an_off_by_one_tail_is_caught(tmp_path: Path) -> None:
    assert is_caught("off-by-one tail", ODD, tmp_path)


def test_a_dropped_guard_is_caught(tmp_path: Path) -> None:
    assert is_caught("dropped guard", ODD, tmp_path)


def test_a_wrong_stride_is_caught(tmp_path: Path) -> None:
    assert is_caught("wrong stride", ODD, tmp_path)


def test_a_chain_that_is_not_simultaneous_is_caught(tmp_path: Path) -> None:
    assert is_caught("chain in order", CHAIN, tmp_path)


def test_an_unaligned_vector_access_is_caught_by_the_sanitizer(tmp_path: Path) -> None:
    with (
        running(planted("source alignment alone"), tmp_path) as wrong,
        pytest.raises(SanitizerReport, match="misaligned address"),
    ):
        wrong.play(SHIFTED)


def copies_far(library: Path) -> bool:
    """Whether a copy is right between blocks on both sides of 2^32 bytes, in a sparse pool."""
    stride, num_blocks = 2**20, 4200
    with mmap.mmap(-1, stride * num_blocks, flags=mmap.MAP_PRIVATE | NORESERVE) as pool:
        window = ctypes.c_char.from_buffer(pool)
        base = ctypes.addressof(window)
        layout = Layout(num_blocks, (Storage(base, len(pool)),), (Segment(0, 5, stride, 40),))
        data = {block: bytes([block % 251]) * 40 for block in (1, 2047, 2049, 4097, 4199)}
        for block, content in data.items():
            pool[block * stride + 5 : block * stride + 45] = content
        HostMover(layout, library).copy([(1, 4098), (4199, 2), (4097, 2048), (2049, 4100)])
        read = [pool[b * stride + 5 : b * stride + 45] for b in (4098, 2, 2048, 4100)]
        del window
    return read == [data[1], data[4199], data[4097], data[2049]]


def test_a_32_bit_offset_is_caught(tmp_path: Path, twin: Path) -> None:
    assert copies_far(twin)
    assert not copies_far(build(planted("32-bit offset"), tmp_path))
