"""The state machine: deterministic, and reaching what it is for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kvspec.errors import ClauseBroken
from kvspec.machine import cache_machine, run_machine
from kvspec.spec.case import Ledger
from kvspec.spec.clauses import Profile
from kvspec.targets import BUILT_IN, canary, find_factory

TestReference = cache_machine("reference").TestCase
"""As users write it in their own tests."""


@pytest.mark.parametrize("target", sorted(BUILT_IN))
@pytest.mark.parametrize("profile", list(Profile))
def test_conforms(target: str, profile: Profile) -> None:
    run = run_machine(target, find_factory(target), profile=profile, examples=30, seed=1)
    assert run.examples >= 30
    assert run.events > 1000


PROGRAM = """
import sys
if sys.argv[1]:
    __import__(sys.argv[1])
from kvspec.machine import run_machine
from kvspec.spec.case import Ledger
from kvspec.targets import find_factory
ledger = Ledger()
run = run_machine("reference", find_factory("reference"), ledger=ledger, examples=150, seed=0)
print(run, sorted(ledger.exercised.items()), sorted(ledger.marks.items()))
"""


def test_a_seed_gives_the_same_run_in_every_process(tmp_path: Path) -> None:
    """Whatever the hash seed, the working directory and the modules imported before."""
    outputs = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM, module],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            cwd=tmp_path if module else None,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed, module in (("1", ""), ("2", "kvspec.scenarios"))
    ]
    assert outputs[0] == outputs[1]
    assert "MachineRun" in outputs[0]


def test_a_planted_fault_is_found() -> None:
    with pytest.raises(ClauseBroken) as broken:
        run_machine("canary", canary, examples=100, profile=Profile.ACCOUNTING)
    assert broken.value.violation.clause.id == "EVICT.TAKEN"


def test_rare_states_are_reached() -> None:
    ledger = Ledger()
    run_machine("reference", find_factory("reference"), ledger=ledger, examples=150, seed=2)
    for mark in (
        "copy-on-write by hitter",
        "copy-on-write by owner",
        "deferral",
        "refusal",
        "withdrawn chunk",
        "promotion",
        "eviction",
        "hand-off offered",
    ):
        assert ledger.marks[mark], mark
