"""`kvspec bench copy` measures what it says: the same bytes both ways, ratios of one run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from kvspec.bench import copy
from kvspec.errors import BadInput
from kvspec.kernels.movers import CpuMover, Pairs
from tests.cli.run import run


def small() -> copy.Measured:
    return copy.measure(layers=3, blocks=(64, 100), layer_bytes=2048, rounds=2)


def test_a_row_for_each_size_of_block_with_ratios_of_its_own_times() -> None:
    measured = small()
    assert [(row.block_bytes, row.pairs) for row in measured.rows] == [(64, 8), (100, 5)]
    for row in measured.rows:
        assert row.moved == 2 * row.block_bytes * 3 * row.pairs
        assert row.to_indexing == row.indexing / row.ours
        assert row.rate == pytest.approx(row.moved / row.ours / 1e9)
    assert "| 64 | 3 | 8 |" in copy.as_markdown(measured, "kvspec bench copy")


def test_a_mover_that_leaves_other_bytes_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    right = CpuMover.copy
    monkeypatch.setattr(CpuMover, "copy", lambda self, pairs: right(self, _but_one(pairs)))
    with pytest.raises(AssertionError, match="left different bytes"):
        small()


def _but_one(pairs: Pairs) -> Pairs:
    return list(pairs)[1:]


def test_figures_are_written_with_their_command(tmp_path: Path) -> None:
    table, data = tmp_path / "copy.md", tmp_path / "copy.json"
    options = ["--layers", "1", "--rounds", "1", "--json", str(data), "--markdown", str(table)]
    done = run("bench", "copy", *options)
    assert done.status == 0
    assert "kvspec bench copy --device cpu --layers 1 --rounds 1" in table.read_text()
    assert {row["layers"] for row in json.loads(data.read_text())["rows"]} == {1}
    assert done.verdict.startswith("copies on cpu: at least ")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_without_a_gpu_it_says_so() -> None:
    with pytest.raises(BadInput, match="sees no NVIDIA GPU"):
        copy.measure("cuda")


def test_another_device_is_refused() -> None:
    with pytest.raises(BadInput, match="expected cpu or cuda, got 'tpu'"):
        copy.measure("tpu")
