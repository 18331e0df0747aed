"""Whatever the kernels do to memory beyond what the plain worker does breaks DATA.KERNEL."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch

from kvspec.codec import trace_text
from kvspec.driver import Driver
from kvspec.errors import BadInput, ClauseBroken
from kvspec.kernels.store import TorchStore
from kvspec.machine import run_machine
from kvspec.memory import StoreKind, kind_here
from kvspec.scenarios import SCENARIOS, run_scenario
from kvspec.scenarios.play import cache, full
from kvspec.session import Session
from kvspec.spec.case import Ledger
from kvspec.spec.clauses import DATA_KERNEL
from kvspec.spec.types import BlockId
from kvspec.targets import find_factory
from tests.cli.run import run

OPTIMIZED = find_factory("optimized")


def started(store: StoreKind = StoreKind.TORCH) -> Driver:
    """A session with a request whose first step is not yet executed."""
    driver = Driver(Session("optimized", OPTIMIZED, cache(full(4)), store=store))
    driver.submit("a", (0, 1, 2, 3, 4))
    driver.begin()
    driver.admit("a")
    driver.dispatch()
    return driver


def second(driver: Driver) -> TorchStore:
    """What the kernels wrote to."""
    memory = driver.session.memory
    assert memory is not None
    assert isinstance(memory.second, TorchStore)
    return memory.second


def test_a_step_is_compared_as_a_whole() -> None:
    driver = started()
    driver.run()
    assert driver.session.ledger.exercised[DATA_KERNEL.id] == 1
    assert second(driver).read(BlockId(1), 0, 64) != second(driver).read(BlockId(3), 0, 64)


@pytest.mark.parametrize("storage", [0, 1])
def test_a_guard_byte_that_changed_is_told(storage: int) -> None:
    driver = started()
    second(driver).tensors[storage][0] ^= 1
    with pytest.raises(ClauseBroken) as broken:
        driver.run()
    assert broken.value.violation.clause is DATA_KERNEL
    assert str(broken.value.violation.observed).startswith(f"guard byte 0 of storage {storage}")


def test_a_block_that_no_step_named_may_not_change() -> None:
    driver = started()
    second(driver).write(BlockId(9), 3, b"\x01")
    with pytest.raises(ClauseBroken) as broken:
        driver.run()
    assert broken.value.violation.clause is DATA_KERNEL
    assert str(broken.value.violation.observed).startswith("block 9, byte 3: 0x01, not ")


def test_a_list_that_cannot_be_carried_out_is_a_broken_clause_and_no_traceback() -> None:
    driver = started()
    memory = driver.session.memory
    assert memory is not None
    work = driver.state.in_flight[0]
    object.__setattr__(work, "copies", ((BlockId(1), BlockId(5)), (BlockId(2), BlockId(5))))
    with pytest.raises(ClauseBroken) as broken:
        driver.run()
    assert broken.value.violation.clause is DATA_KERNEL
    assert "block 5 is also the destination" in str(broken.value.violation.observed)


@pytest.mark.skipif(shutil.which("g++") is None, reason="the host twin needs g++")
def test_the_cuda_source_moves_the_bytes_of_the_machine() -> None:
    ledger = Ledger()
    run_machine("optimized", OPTIMIZED, ledger=ledger, store=StoreKind.HOST, examples=40)
    assert ledger.exercised[DATA_KERNEL.id] > 200


def test_the_plain_worker_alone_exercises_nothing_of_the_kernels() -> None:
    ledger = Ledger()
    run_scenario(SCENARIOS["S7"], "optimized", OPTIMIZED, ledger=ledger, store=StoreKind.PLAIN)
    assert ledger.exercised[DATA_KERNEL.id] == 0
    assert ledger.exercised["DATA.BYTES"] > 0


def test_without_torch_auto_is_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kvspec.memory.find_spec", lambda name: None)
    assert kind_here(StoreKind.AUTO) is StoreKind.PLAIN
    monkeypatch.undo()
    assert kind_here(StoreKind.AUTO) is StoreKind.TORCH


# --- as options -----------------------------------------------------------------------------------


def test_a_plain_check_says_what_it_left_out(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    done = run("check", "--store", "plain", "--examples", "1", "--json", report)
    assert done.status == 0
    assert "the plain worker alone moved bytes" in report.read_text()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_a_gpu_that_is_not_there_is_refused() -> None:
    assert run("check", "--store", "cuda").is_refused()
    assert "sees no NVIDIA GPU" in run("check", "--store", "cuda").stderr


def test_a_workload_moves_no_bytes(tmp_path: Path) -> None:
    line = '{"timestamp": 0, "input_length": 512, "output_length": 1, "hash_ids": [1]}\n'
    (tmp_path / "w.jsonl").write_text(line)
    done = run("replay", tmp_path / "w.jsonl", "--store", "host")
    assert done.is_refused()
    assert "which moves no bytes" in done.stderr


def test_recorded_events_are_replayed_on_a_store(tmp_path: Path) -> None:
    driver = started()
    driver.run()
    events = (driver.session.config, *driver.session.events)
    trace = tmp_path / "trace.jsonl"
    trace.write_text(trace_text(events, tuple(driver.session.observations)))
    assert run("replay", trace, "--store", "torch").status == 0


def test_no_compiler_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kvspec.kernels.host.shutil.which", lambda name: None)
    monkeypatch.setattr("kvspec.kernels.host.load", _no_compiler)
    with pytest.raises(BadInput, match=r"--store host: .*g\+\+"):
        started(StoreKind.HOST)


def _no_compiler(library: Path | None = None) -> None:
    from kvspec.kernels.host import build, sources

    build(sources())
