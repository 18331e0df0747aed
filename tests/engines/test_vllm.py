"""What is said of vLLM in docs/findings holds for the version that is installed, if one is."""

from __future__ import annotations

from pathlib import Path

import pytest

from kvspec.codec import read_trace
from kvspec.errors import ClauseBroken, ConfigDeclined
from kvspec.failure import find_subject
from kvspec.memory import StoreKind
from kvspec.recorded import replay_recorded
from kvspec.scenarios import SCENARIOS, run_scenario
from kvspec.spec.clauses import Profile

pytest.importorskip("vllm", reason="vLLM is not installed here: make engines, docs/engines.md")

from kvspec.engines import vllm

FINDINGS = Path(__file__).parents[2] / "docs" / "findings"
RELOADED = "kvspec.engines.vllm:ReloadedAdapters"

BROKEN: dict[str, dict[str, tuple[str, str]]] = {
    "withdrawn": dict.fromkeys(("0.28.0", "0.33.0"), ("REG.WITHDRAWN", "DATA.READ")),
    "salt-or-adapter": {"0.28.0": ("HIT.LENGTH", "DATA.READ"), "0.33.0": ("", "")},
    "reloaded": dict.fromkeys(("0.28.0", "0.33.0"), ("HIT.LENGTH", "DATA.READ")),
    "short-count": dict.fromkeys(("0.28.0", "0.33.0"), ("LIVE.ANSWER", "LIVE.ANSWER")),
    "untrimmed": {"0.28.0": ("HIT.SHAPE", "HIT.SHAPE"), "0.33.0": ("declined", "declined")},
    "two-keys": {"0.28.0": ("REG.PROMOTED", ""), "0.33.0": ("declined", "declined")},
}
"""By finding and version: the clause broken in accounting and in soundness, or nothing."""

pytestmark = pytest.mark.skipif(
    vllm.Vllm.version not in BROKEN["withdrawn"],
    reason=f"nothing is said of vLLM {vllm.Vllm.version}",
)


def broken(name: str, profile: Profile) -> str:
    """The clause that a trace breaks, nothing, or that it cannot be played."""
    target = RELOADED if name == "reloaded" else "vllm"
    path = FINDINGS / f"{name}.jsonl"
    subject = find_subject(target, profile, StoreKind.PLAIN)
    try:
        replay_recorded(path, read_trace(path), subject)
    except ClauseBroken as found:
        return found.violation.clause.id
    except ConfigDeclined:
        return "declined"
    return ""


@pytest.mark.parametrize("name", BROKEN)
def test_a_finding_repeats(name: str) -> None:
    for _ in range(2):
        found = tuple(broken(name, p) for p in (Profile.ACCOUNTING, Profile.SOUNDNESS))
        assert found == BROKEN[name][vllm.Vllm.version]


@pytest.mark.parametrize("name", ["D1"])
def test_scenarios_are_played(name: str) -> None:
    subject = find_subject("vllm", store=StoreKind.PLAIN)
    play = run_scenario(SCENARIOS[name], "vllm", subject.factory, store=StoreKind.PLAIN)
    assert play.session.events
