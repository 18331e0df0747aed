"""Targets that are made for less than everything: what they decline is passed over, and said."""

from __future__ import annotations

from kvspec.check import Options, check
from kvspec.reference.manager import Manager
from kvspec.spec import events as ev
from kvspec.spec.types import Config, RequestId


class FullOnly(Manager):
    """Knows full attention only."""

    def configure(self, config: Config) -> ev.Capabilities:
        if any(group.recurrent for group in config.groups):
            raise ev.Rejected("full attention only")
        super().configure(config)
        return ev.Capabilities("full only", shows=ev.SHOWABLE)


class Forgetful(Manager):
    """Shows nothing, and never hits: allowed in the soundness profile."""

    def configure(self, config: Config) -> ev.Capabilities:
        super().configure(config)
        return ev.Capabilities("forgetful", lacks=("lookup_for_connector", "truncate"))

    def lookup(self, request: RequestId) -> ev.Hit:
        self.last_lookup = None
        return ev.Hit(((),) * len(self.config.groups), 0)


def test_a_declined_configuration_is_passed_over() -> None:
    report = check(Options("tests.cli.test_declined:FullOnly", examples=60))
    assert report.verdict == "conforms"
    skipped = [s for s in report.scenarios if s.skipped]
    assert {s.id for s in report.scenarios if s.passed} >= {"A2", "A3", "A5", "A8", "G1"}
    assert all("full attention only" in s.skipped for s in skipped)


def test_soundness_leaves_the_values_of_scenarios_open() -> None:
    report = check(Options("tests.cli.test_declined:Forgetful", examples=60))
    assert report.verdict == "conforms"
    assert any("soundness leaves it open" in s.skipped for s in report.scenarios)
