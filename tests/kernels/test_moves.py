"""Every byte of every storage is right after a step's fills and copies, whoever moves them."""

from __future__ import annotations

from pathlib import Path

from hypothesis import example, given, settings

from kvspec.kernels.host import HostMover
from kvspec.kernels.layout import Layout, Segment
from kvspec.kernels.movers import CpuMover

from .cases import Case, cases, plainly, play
from .sanitized import Sanitized

CHAIN = Case(5, ((0, 80),), (Segment(0, 0, 16, 16),), ((1, 2), (2, 3), (3, 1)))

few = settings(max_examples=150, deadline=None, derandomize=True)


@given(cases())
@example(CHAIN)
@few
def test_the_cpu_path_moves_exactly_the_bytes_named(case: Case) -> None:
    assert play(case, lambda layout, _: CpuMover(layout)) == plainly(case)


@given(cases())
@example(CHAIN)
@few
def test_the_host_twin_moves_exactly_the_bytes_named(twin: Path, case: Case) -> None:
    def make(layout: Layout, case: Case) -> HostMover:
        return HostMover(layout, twin, reversed=case.reversed, grid=case.grid)

    assert play(case, make) == plainly(case)


@given(cases())
@example(CHAIN)
@few
def test_the_host_twin_does_so_under_sanitizers(sanitized: Sanitized, case: Case) -> None:
    assert sanitized.play(case) == plainly(case)
