"""The base class of adapters, what is declared unsupported, and the coverage gate."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kvspec.adapter import Adapter, Manager, Unsupported
from kvspec.capabilities import (
    CAPABILITIES,
    CONFIG_FEATURES,
    EVENT_FEATURES,
    LACKABLE,
    Tally,
    coverage,
    features,
    fitted,
    lacking,
)
from kvspec.check import Options, check
from kvspec.errors import EventUnsupported, TargetUnusable
from kvspec.machine import run_machine
from kvspec.reference.manager import Manager as Reference
from kvspec.scenarios import SCENARIOS
from kvspec.session import Session
from kvspec.spec import events as ev
from kvspec.spec.types import Config, Connector, Group, GroupKind, RequestId, Token
from kvspec.targets import PROBE, Target, find_factory
from tests.cli.run import ROOT, run

EXAMPLES = ROOT / "examples" / "python"
A = RequestId("a")


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.syspath_prepend(EXAMPLES)
    yield "tiny_adapter:TinyAdapter"
    for name in ("tiny_adapter", "tiny_cache"):
        sys.modules.pop(name, None)


class Bare(Adapter):
    """Nothing is written."""


class NoSalt(Reference):
    """The reference, that finds out about salts when it is asked."""

    def submit(self, request: Any, tokens: Any, salt: Any = None, *more: Any) -> ev.Done:
        if salt is not None:
            raise Unsupported("no salts")
        return super().submit(request, tokens, salt, *more)


class NoPlainSubmit(Reference):
    """A target that nothing can be asked of."""

    def submit(self, *_: Any) -> ev.Done:
        raise Unsupported("no requests")


class ShowsButCannot(Reference):
    """It promises books and has none."""

    def snapshot(self) -> ev.Books:
        raise Unsupported("tomorrow")


class SaysNothing(Reference):
    """Methods that return None where there is nothing to say."""

    def process(self) -> Any:
        super().process()

    def finish(self, request: RequestId) -> Any:
        super().finish(request)


class Narrow(Reference):
    """A target that declares much as lacking and would fail on it."""

    def configure(self, config: Config) -> ev.Capabilities:
        assert len(config.groups) == 1
        assert config.connector is Connector.NONE
        assert not config.deferral
        super().configure(config)
        lacks = ("several_groups", "uniform_connector", "diverging_connector", "deferral")
        return ev.Capabilities("narrow", shows=ev.SHOWABLE, lacks=(*lacks, "salt", "delay_caching"))

    def submit(self, request: Any, tokens: Any, salt: Any = None, *more: Any) -> ev.Done:
        assert salt is None
        return super().submit(request, tokens, salt, *more)

    def allocate(self, *arguments: Any) -> ev.Grant:
        assert not arguments[-1], "delay_caching"
        return super().allocate(*arguments)


def test_the_example_conforms_and_what_it_lacks_is_told(tiny: str, tmp_path: Path) -> None:
    ran = run("check", "--target", tiny, "--examples", "60", "--failures", tmp_path)
    assert ran.status == 0, ran
    assert "conforms (accounting)" in ran.verdict
    assert "the target lacks several_groups: feature unequal_blocks" in ran.stdout


def test_the_examples_machine_is_given_only_what_it_can_do(tiny: str) -> None:
    tally = Tally()
    done = run_machine(tiny, find_factory(tiny), ledger=tally, examples=20)
    assert done.events > 600
    assert "feature salt" not in tally.used


def test_a_method_that_must_be_written_is_named() -> None:
    with pytest.raises(TargetUnusable, match=r"Bare has no method open\(config\): write it"):
        Target("bare", Bare, PROBE)


def test_events_without_a_method_are_lacked() -> None:
    assert "lookup" in Bare._unwritten()
    assert "abort" not in Bare._unwritten()
    assert set(Bare._unwritten()) <= set(LACKABLE)


def test_every_target_has_the_methods_of_the_protocol(tiny: str) -> None:
    for name in ("reference", "optimized", tiny):
        assert isinstance(find_factory(name)(), Manager)


def test_an_unsupported_event_is_skipped_and_counted() -> None:
    tally = Tally()
    session = Session("t", NoSalt, PROBE, ledger=tally)
    with pytest.raises(EventUnsupported, match="no salts"):
        session.send(ev.Submit(A, (Token(1),), salt="s"))
    assert session.events == []
    assert session.skipped == {"submit": 1}
    assert "no salts" in tally.missed["feature salt"]
    session.send(ev.Submit(A, (Token(1),)))
    assert len(session.events) == 1


def test_what_is_unsupported_is_reported_and_the_rest_is_judged() -> None:
    report = check(Options("tests.adapter.test_adapter:NoSalt", examples=120))
    assert report.verdict == "conforms"
    reasons = {c.id: c.reason for c in report.capabilities if not c.used}
    assert "no salts" in reasons["feature salt"]
    assert all(s.passed or "no salts" in s.skipped for s in report.scenarios)


@pytest.mark.parametrize(
    ("factory", "event", "says"),
    [
        (NoPlainSubmit, ev.Submit(A, (Token(1),)), "submit: no requests; nothing can be judged"),
        (ShowsButCannot, ev.Snapshot(), "it says that it shows"),
    ],
)
def test_what_cannot_be_done_without_is_no_skip(factory: Any, event: ev.Event, says: str) -> None:
    with pytest.raises(TargetUnusable, match=says) as caught:
        Target("t", factory, PROBE).ask(event)
    assert not isinstance(caught.value, EventUnsupported)


def test_nothing_to_say_may_be_said_by_none() -> None:
    assert Target("t", SaysNothing, PROBE).ask(ev.Process()) == ev.Done()
    run_machine("t", SaysNothing, examples=3)


def test_a_target_is_spared_what_it_lacks() -> None:
    tally = Tally()
    run_machine("t", Narrow, ledger=tally, examples=40)
    assert tally.used["feature lookahead_tokens"]
    assert not tally.used["feature delay_caching"]
    assert not tally.used["feature deferral"]


@pytest.mark.parametrize("feature", CONFIG_FEATURES)
def test_a_fitted_configuration_lacks_nothing(feature: str) -> None:
    groups = (
        Group(GroupKind.FULL, 4, eagle=True),
        Group(GroupKind.FULL, 8, zeroed=True),
        Group(GroupKind.MAMBA_ALIGN, 8),
    )
    for connector in Connector:
        config = Config(9, 2, groups, 16, False, connector, True, 3)
        assert lacking(fitted(config, (feature,)), (feature,)) == ""
        assert lacking(fitted(config, CONFIG_FEATURES), CONFIG_FEATURES) == ""


def test_features_are_seen() -> None:
    assert features(ev.Submit(A, (Token(1),), salt="s")) == ["salt"]
    assert features(ev.Allocate(A, 1, 2, 3, True)) == [
        "external_tokens",
        "lookahead_tokens",
        "delay_caching",
    ]
    assert set(EVENT_FEATURES).isdisjoint(ev.EVENT_NAMES.values())


def test_the_gate_asks_for_every_capability_or_a_reason(tmp_path: Path) -> None:
    ran = run("check", "--target", "reference", "--examples", "1", "--gate", "--failures", tmp_path)
    assert ran.is_refused()
    assert "coverage gate: never used, and nothing says why: " in ran.stderr


def test_the_kit_makes_use_of_every_capability() -> None:
    """What the drivers never send is not tested by anybody: 250 examples reach all of it."""
    tally = Tally()
    run_machine("optimized", find_factory("optimized"), ledger=tally, examples=250)
    open_ends = [c.id for c in coverage(tally, ev.Capabilities("t", shows=ev.SHOWABLE))]
    assert open_ends == list(CAPABILITIES)
    assert [name for name in CAPABILITIES if not tally.used[name]] == []


def test_scenarios_alone_use_most_of_the_events() -> None:
    report = check(Options("reference", examples=1))
    assert report.verdict == "conforms"
    assert len(report.scenarios) == len(SCENARIOS)
    assert sum(bool(c.used) for c in report.capabilities) > 35
