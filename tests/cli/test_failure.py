"""Failures: told in words, kept as files, written as Python."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

from kvspec import failure as fail
from kvspec.errors import BadInput
from kvspec.failure import Failure, Subject, as_python, keep, replay_command, say, tell
from kvspec.spec import clauses, types
from kvspec.spec import events as ev
from kvspec.spec.case import Violation
from kvspec.spec.clauses import Profile
from kvspec.spec.types import BlockId, Config, Group, GroupKind, RequestId
from kvspec.targets import canary
from tests.codec.strategies import EVENTS

SUBJECT = Subject("kvspec.targets:canary", canary)
CONFIG = Config(4, 1, (Group(GroupKind.FULL, 2),), 8)
FAILURE = Failure(
    Violation(clauses.EVICT_TAKEN, [(0, b"\x1b\x0f")], None, "key of block 1"),
    (CONFIG, ev.BeginStep(), ev.Evict((BlockId(1),))),
)


@given(EVENTS)
def test_an_event_written_as_python_is_the_same_event(event: ev.Event) -> None:
    assert eval(as_python(event), {"ev": ev, **vars(types)}) == event


@given(EVENTS)
def test_an_event_is_told_on_one_line(event: ev.Event) -> None:
    assert "\n" not in repr(fail.tell_event(event))
    assert fail.tell_event(event).startswith(ev.EVENT_NAMES[type(event)])


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (b"\x1b" * 32, "1b1b1b1b1b1b1b1b"),
        (frozenset({3, 1, 2}), "{1, 2, 3}"),
        ({1: (2,)}, "{1: (2,)}"),
        (None, "None"),
        (GroupKind.FULL, "full"),
        (ev.Hit(((),), 4), "Hit(blocks=((),), num_tokens=4)"),
        ([True, "a"], "[True, a]"),
    ],
)
def test_values_are_said_plainly(value: object, said: str) -> None:
    assert say(value) == said


def test_a_failure_tells_all_there_is_to_tell(tmp_path: Path) -> None:
    text = tell(keep(FAILURE, SUBJECT, tmp_path), SUBJECT)
    for part in (
        f"EVICT.TAKEN: {clauses.EVICT_TAKEN.statement}",
        "observed  [(0, 1b0f)] (key of block 1)",
        "allowed   None",
        "step      2 of this trace:",
        "configure num_blocks=4 hash_unit=1 groups=(Group(kind=full, block_size=2),)",
        "->   2  evict blocks=(1,)",
        f"vector   {tmp_path}",
        "command  kvspec replay ",
    ):
        assert part in text


def test_a_long_trace_and_a_long_value_are_cut_in_the_telling() -> None:
    events = (CONFIG, *(ev.BeginStep(),) * 500)
    text = tell(Failure(Violation(clauses.EVICT_TAKEN, "x" * 10_000, None), events), SUBJECT)
    assert "... 450 more" in text
    assert "(10000 characters)" in text
    assert len(text) < 5000


def test_the_command_names_a_profile_only_where_it_is_not_the_default() -> None:
    assert replay_command(FAILURE, SUBJECT).endswith("--target kvspec.targets:canary")
    exact = Subject("reference", canary, Profile.EXACT)
    assert replay_command(FAILURE, exact).endswith("--target reference")
    sound = Subject("a b:c", canary, Profile.SOUNDNESS)
    assert replay_command(FAILURE, sound).endswith("--target 'a b:c' --profile soundness")


def test_what_is_kept_is_never_written_over(tmp_path: Path) -> None:
    first = keep(FAILURE, SUBJECT, tmp_path)
    other = keep(
        Failure(FAILURE.violation, (CONFIG, ev.Reset())), Subject("reference", canary), tmp_path
    )
    again = keep(FAILURE, SUBJECT, tmp_path)
    assert first.trace == again.trace != other.trace
    assert len(list(tmp_path.iterdir())) == 2  # and nothing half-written beside them


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BadInput, match="cannot be written"):
        keep(FAILURE, SUBJECT, tmp_path / "file")


def test_odd_names_do_not_break_the_kept_test(tmp_path: Path) -> None:
    odd = ev.Submit(RequestId('"""\\\n\'{}'), ())
    kept = keep(Failure(FAILURE.violation, (CONFIG, odd)), SUBJECT, tmp_path)
    assert kept.test is not None
    compile(kept.test.read_text(), "kept", "exec")
