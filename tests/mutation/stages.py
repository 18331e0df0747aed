"""What is run against a mutant, cheapest first. Each is a check that a user or CI runs.

A mutant is killed when one of them sees it:

- `import`: it cannot be loaded.
- `scenarios`: those of `kvspec check`, in the exact profile: a clause is broken, a value is another
  than the scenario says, or what is observed is not what the reference shows.
- `structures`: `tests/optimized/test_structures.py`. `rules`: `tests/rules`, `tests/judge` and the
  tests of what the spec's types refuse.
- `walks`: the walks of `tests/optimized`, where both managers answer alike and the judge agrees.
- `machine`: the state machine of `kvspec check`, and its replay, in the exact profile.

`optimized/` is loaded without its assertions for all but `structures` and `walks`, so that what the
drivers of `kvspec check` see of a fault is what its answers show.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module

import pytest

from .mutants import ROOT, Mutant
from .world import look

EXAMPLES, STEPS = 100, 40
"""Runs of the machine, and rules in each."""

WALKS, MOVES = 100, 100
"""Walks, as many as in the tests, and moves in each."""

OTHER_PROCESS = ("D8",)
"""Scenarios that start processes of their own, in which nothing is mutated."""

OTHER_TESTS = ("test_same_in_every_process",)
"""Tests that do the same."""

SOLVED = "tests/rules/test_conditions.py"
"""Tests left out since they ask a solver, for minutes."""


@dataclass(frozen=True, slots=True)
class Stage:
    """`run` returns what was seen; `bare`: the package has no assertions; `seconds` of CPU."""

    name: str
    run: Callable[[], str | None]
    seconds: int
    bare: bool = False


def imports() -> str | None:
    """Everything that the mutated module is part of can be loaded."""
    for name in ("kvspec.optimized.manager", "kvspec.reference.manager", "kvspec.scenarios"):
        import_module(name)
    return None


def scenarios() -> str | None:
    """Each scenario, until one shows the mutant."""
    from kvspec.errors import ClauseBroken, ScenarioFailed
    from kvspec.memory import StoreKind
    from kvspec.optimized.manager import Manager
    from kvspec.scenarios import SCENARIOS, run_scenario
    from kvspec.spec.clauses import Profile

    for scenario in SCENARIOS.values():
        if scenario.id in OTHER_PROCESS:
            continue
        try:
            run_scenario(
                scenario, "optimized", Manager, profile=Profile.EXACT, store=StoreKind.PLAIN
            )
        except ClauseBroken as broken:
            return f"{scenario.id}: {broken.violation.clause.id}"
        except ScenarioFailed as failed:
            return f"{scenario.id}: {failed}"
        except Exception as error:
            return f"{scenario.id}: {type(error).__name__}: {error}"
    return None


def walks() -> str | None:
    """Random walks of both managers side by side."""
    from kvspec.spec.case import Ledger
    from tests.optimized.walk import Walk

    for seed in range(WALKS):
        try:
            Walk(seed, Ledger(), Counter()).go(MOVES)
        except Exception as error:
            return f"walk {seed}: {type(error).__name__}: {str(error)[-200:]}"
    return None


def machine() -> str | None:
    """A short replay, then the state machine."""
    from kvspec.errors import ClauseBroken
    from kvspec.machine import run_machine
    from kvspec.memory import StoreKind
    from kvspec.optimized.manager import Manager
    from kvspec.replay import replay_config, replay_workload
    from kvspec.scheduler import Limits
    from kvspec.spec.clauses import Profile
    from kvspec.workload import generated_workload

    try:
        replay_workload(
            generated_workload(0),
            "optimized",
            Manager,
            replay_config(blocks=256),
            Limits(max_output=8),
            profile=Profile.EXACT,
        )
        run_machine(
            "optimized",
            Manager,
            profile=Profile.EXACT,
            store=StoreKind.PLAIN,
            examples=EXAMPLES,
            steps=STEPS,
            seed=0,
        )
    except ClauseBroken as broken:
        return broken.violation.clause.id
    return None


def _tests(*paths: str) -> Callable[[], str | None]:
    """Tests, until one fails."""

    def run() -> str | None:
        from hypothesis import Phase, settings

        from kvspec.determinism import independent_of_imports

        plan = settings(
            database=None,
            deadline=None,
            print_blob=False,
            report_multiple_bugs=False,
            phases=(Phase.explicit, Phase.generate),
        )
        settings.register_profile("mutation", plan)
        first = _FirstFailure()
        arguments = [*(str(ROOT / path) for path in paths), "-x", "-q", "--no-header"]
        arguments += ["-p", "no:cacheprovider", "-p", "no:xdist", "-k"]
        arguments += [" and ".join(f"not {name}" for name in OTHER_TESTS)]
        arguments += ["--hypothesis-profile=mutation", "--hypothesis-seed=0"]
        arguments += [f"--ignore={ROOT / SOLVED}"]
        with independent_of_imports():
            status = pytest.main([*arguments, f"--rootdir={ROOT}"], plugins=[first])
        return (first.failed or f"pytest ended with {status}") if status else None

    return run


class _FirstFailure:
    """Runs the tests with worked values first, and remembers which test failed."""

    failed = ""

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Tests are about to run."""
        items.sort(key=lambda item: hasattr(getattr(item, "obj", None), "hypothesis"))

    def pytest_runtest_logreport(self, report: object) -> None:
        """A test ended."""
        if getattr(report, "failed", False) and not self.failed:
            self.failed = str(getattr(report, "nodeid", "")).rpartition("::")[2]


STAGES: dict[str, Sequence[Stage]] = {
    "optimized": (
        Stage("import", imports, 20, bare=True),
        Stage("scenarios", scenarios, 20, bare=True),
        Stage("structures", _tests("tests/optimized/test_structures.py"), 20),
        Stage("walks", walks, 60),
        Stage("machine", machine, 120, bare=True),
    ),
    "spec": (
        Stage("import", imports, 20),
        Stage("scenarios", scenarios, 20),
        Stage("rules", _tests("tests/rules", "tests/judge"), 60),
        Stage("walks", walks, 60),
        Stage("machine", machine, 120),
    ),
}
"""By package, cheapest first."""


@dataclass(frozen=True, slots=True)
class Kill:
    """Which stage saw a mutant, and what it saw."""

    stage: str
    seen: str


def hunt(mutant: Mutant, stages: Sequence[Stage]) -> Kill | None:
    """Run the stages until one sees the mutant."""
    for stage in stages:
        seen = look(mutant, mutant.package, stage.bare, stage.run, stage.seconds)
        if seen is not None:
            return Kill(stage.name, seen)
    return None
