"""`kvspec prove`: what it prints, keeps and exits with."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from kvspec.codec import read_trace
from kvspec.conditions import CONDITIONS, Condition
from kvspec.errors import ClauseBroken
from kvspec.failure import find_subject
from kvspec.prove import proof
from kvspec.prove.paths import covering, write_paths
from kvspec.prove.search import explore
from kvspec.prove.worlds import WORLDS
from kvspec.reference.manager import Manager
from kvspec.shrink import run_events
from kvspec.spec import events as ev
from kvspec.spec.types import Config, Step
from kvspec.targets import find_factory
from tests.cli.run import run

HERE = "tests.prove.test_command"

SHORTEST = [
    "configure", "submit", "begin_step", "allocate", "end_step", "execute", "process",
    "begin_step", "preempt", "allocate",
]  # fmt: skip


class Blind(Manager):
    """Shows no pins."""

    def configure(self, config: Config) -> ev.Capabilities:
        super().configure(config)
        return ev.Capabilities("blind", shows=ev.SHOWABLE[:-1])


class Stubborn(Manager):
    """Takes no blocks back."""

    def configure(self, config: Config) -> ev.Capabilities:
        super().configure(config)
        return ev.Capabilities("stubborn", shows=ev.SHOWABLE, lacks=("detach",))


class LateFault(Manager):
    """Forgets to give a copy's endpoints back; nothing shows it before a copy was made."""

    def release_retained(self, fence: Step) -> ev.Released:
        ends = super().release_retained(fence)
        for block in ends.blocks[:1]:
            self.pool.hold(block)
        return ends


def test_conforming(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    ran = run("prove", "--world", "loose", "--workers", "1", "--json", report)
    assert ran.status == 0, ran
    assert ran.verdict == (
        "optimized conforms (exact): 1 world exhausted, 1,240 states, 10,516 transitions"
    )
    data = json.loads(report.read_text())
    assert data["verdict"] == "conforms"
    assert data["worlds"][0]["exhausted"] is True


def test_conditions_are_confirmed_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = {id: CONDITIONS[id] for id in ("hits.leaves_a_token", "keys.boundary_is_the_last")}
    monkeypatch.setattr(proof, "CONDITIONS", few)
    report = tmp_path / "report.json"
    walk = ("prove", "--symbolic", "--world", "loose", "--workers", "1", "--json", report)
    ran = run(*walk)
    assert ran.status == 0, ran
    assert ran.verdict.endswith("10,516 transitions, 2 conditions confirmed")
    assert [one["verdict"] for one in json.loads(report.read_text())["conditions"]] == [
        "confirmed",
        "confirmed",
    ]


def wrong(number: int) -> int:
    """Not so for 7.

    post: _ != 7
    """
    return number


def test_a_refuted_condition_stops_the_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    refuted = Condition("hits.wrong", wrong, ("HIT.LIMIT",), "no bound")
    monkeypatch.setattr(proof, "CONDITIONS", {refuted.id: refuted})
    ran = run("prove", "--symbolic", "--world", "loose")
    assert ran.status == 1, ran
    assert ran.verdict.startswith(
        "the rules are broken: condition hits.wrong is refuted: POST_FAIL: false when calling wrong"
    )


def test_without_crosshair_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "crosshair.core_and_libs", None)
    ran = run("prove", "--symbolic", "--world", "loose")
    assert ran.status == 2, ran
    assert ran.verdict.startswith("unusable: symbolic checks need CrossHair")
    assert ran.verdict.endswith("pip install crosshair-tool")


@pytest.mark.parametrize("workers", [1, 2])
def test_the_canary_is_caught_by_a_shortest_path(tmp_path: Path, workers: int) -> None:
    ran = run(
        "prove", "--target", "kvspec.targets:canary", "--world", "loose",
        "--workers", str(workers), "--failures", tmp_path,
    )  # fmt: skip
    assert ran.status == 1, ran
    assert ran.verdict == "kvspec.targets:canary is broken: EVICT.TAKEN"
    (trace,) = tmp_path.glob("EVICT.TAKEN-*/trace.jsonl")
    events = read_trace(trace)
    with pytest.raises(ClauseBroken, match=r"EVICT\.TAKEN"):
        run_events("canary", find_factory("kvspec.targets:canary"), None, tuple(events))
    assert f"command  kvspec replay {trace}" in ran.stdout
    # Nothing shorter: keyed, given back, taken again, each in a pass of its own.
    assert [ev.EVENT_NAMES[type(event)] for event in events] == SHORTEST
    assert run("replay", trace, "--target", "kvspec.targets:canary").status == 1


def test_a_fault_that_needs_a_copy_is_found(tmp_path: Path) -> None:
    target = f"{HERE}:LateFault"
    ran = run("prove", "--target", target, "--world", "alone", "--failures", tmp_path)
    assert ran.status == 1, ran
    assert ran.verdict.startswith(f"{target} is broken: ")


def test_a_world_too_large_claims_nothing() -> None:
    ran = run("prove", "--world", "loose", "--max-states", "100")
    assert ran.is_refused()
    assert ran.verdict == "unusable: world loose was not exhausted: it has more than 100 states"
    assert "not exhausted" in ran.stdout
    assert run("prove", "--world", "loose", "--max-seconds", "0.01").is_refused()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--world", "moon"), "--world moon: there is no such world"),
        (("--profile", "soundness"), "prove compares all books"),
        (("--max-seconds", "0"), "--max-seconds must be a number above 0"),
        (("--target", f"{HERE}:Blind"), "needs a target that shows all its books"),
        (("--target", f"{HERE}:Stubborn"), "a target that takes every event; it lacks detach"),
    ],
)  # fmt: skip
def test_bad_input(arguments: tuple[str, ...], told: str) -> None:
    ran = run("prove", "--world", "loose", *arguments)
    assert ran.is_refused()
    assert told in ran.verdict


def test_covering_paths_cover_and_replay(tmp_path: Path) -> None:
    """Few paths show all that the world can show, and both managers conform on each."""
    world = WORLDS["connector"]
    explored = explore(world, find_subject("optimized"))
    chosen = covering(explored)
    assert set().union(*(walk.covered for walk in chosen)) == set(explored.covers)
    assert len(chosen) < len(explored.covers) / 4
    for walk in chosen:
        others = set().union(*(other.covered for other in chosen if other is not walk))
        assert walk.covered - others
    places = write_paths(explored, tmp_path / "paths")
    assert len(places) == len(chosen)
    for place in places:
        events = tuple(read_trace(place))
        for target in ("reference", "optimized"):
            subject = find_subject(target)
            run_events(target, subject.factory, subject.profile, events)
    assert run("replay", places[0]).status == 0


def test_paths_are_written_by_the_command(tmp_path: Path) -> None:
    ran = run("prove", "--world", "loose", "--paths", tmp_path)
    assert ran.status == 0, ran
    assert list(tmp_path.glob("loose-*.jsonl"))
    assert run("prove", "--world", "loose", "--paths", tmp_path / "x" / "\0").status == 2


def test_a_target_without_known_books_is_searched_by_all_that_it_holds() -> None:
    """A manager that is not ours is told apart by its pickle; the same faults are found."""
    ran = run("prove", "--target", f"{HERE}:Wrapped", "--world", "loose", "--max-states", "300")
    assert ran.is_refused()
    assert "it has more than 300 states" in ran.verdict


class Wrapped:
    """A manager of which prove knows nothing."""

    def __init__(self) -> None:
        self._inner = Manager()

    def __getattr__(self, name: str) -> object:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._inner, name)
