"""A program that goes wrong gives one clear error, in time, whatever it does."""

from __future__ import annotations

import gc
import pickle
import shlex
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kvspec.errors import ConfigDeclined, TargetUnusable
from kvspec.spec import events as ev
from kvspec.spec.types import RequestId, Token
from kvspec.targets import PROBE, Target, TargetFault
from kvspec.wire import child, engine
from tests.cli.run import run

SCRIPT = Path(__file__).with_name("bad_child.py")
SUBMIT = ev.Submit(RequestId("a"), (Token(1),))


def bad(way: str, *options: str) -> str:
    words = [*options, sys.executable, "-S", "-E", str(SCRIPT), way]
    return f"cmd:{shlex.join(words)}"


@pytest.fixture(autouse=True)
def no_child_is_left() -> Iterator[None]:
    yield
    engine.find_command.cache_clear()


def target(way: str, *options: str) -> Target:
    name = bad(way, *options)
    return Target(name, engine.Pool(engine.parse_command(name)), PROBE)


AT_SUBMIT = {
    "hang": ("no answer (0.4 seconds)", "flush standard output"),
    "die": ("killed by SIGABRT", "assertion failed: refs[3] == 1 | in free()"),
    "exit": ("the program ended (exit status 0)", "its standard error is empty"),
    "close": ("closed its output but goes on", "keep standard output open"),
    "flood": ("an answer without end (more than ", "print one line for each line read"),
    "flood errors": ("exit status 4", "the last words"),
    "garbage": ("no answer (", "free list: [1, 2, 3]"),
    "binary": ("the line is no answer", "logs go to standard error"),
    "unfinished": ('did not end (0.4 seconds: {"result":)', "line feed"),
    "twice": ('it said more than was asked ({"result":{}})', "one line for each"),
    "number": ("expected object, got int", "nothing but answers"),
    "two fields": ("got result and error", "docs/protocol.md"),
    "wrong type": ("expected str, got int - at error: {", "docs/protocol.md"),
    "unsupported": ("it does not support submit: no requests here", "nothing can be judged"),
}


@pytest.mark.parametrize("way", AT_SUBMIT)
def test_what_goes_wrong_at_an_event_is_told_at_once(way: str) -> None:
    began = time.monotonic()
    subject = target(way, "--seconds=0.4" if way in ("hang", "unfinished") else "--seconds=20")
    with pytest.raises(TargetUnusable) as caught:
        subject.ask(SUBMIT)
    text = str(caught.value)
    for said in AT_SUBMIT[way]:
        assert said in text
    if way != "unsupported":
        assert "at submit, event 1 after configure" in text
        assert "likely: " in text
        assert "hint: " in text
    assert time.monotonic() - began < 10
    assert len(text) < 1600


AT_START = {
    "no start": "does not answer start as kvspec/1 does (error: what is start?)",
    "banner": "the line is no answer (no JSON object",
    "other protocol": "kvspec/2",
    "misspelt": "missing required field name",
}


@pytest.mark.parametrize("way", AT_START)
def test_what_goes_wrong_at_the_start_is_told(way: str) -> None:
    with pytest.raises(TargetUnusable) as caught:
        target(way)
    assert "at start: " in str(caught.value)
    assert AT_START[way] in str(caught.value)


def test_what_is_said_out_of_turn_is_seen_at_the_next_line() -> None:
    subject = target("late")
    subject.ask(SUBMIT)
    time.sleep(0.3)
    with pytest.raises(TargetUnusable, match=r"more than was asked .*DEBUG: submitted"):
        subject.ask(SUBMIT)


def test_a_fault_reaches_the_process_that_started_the_run() -> None:
    with pytest.raises(TargetUnusable) as caught:
        target("die").ask(SUBMIT)
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is type(caught.value)
    assert str(again) == str(caught.value)


def test_a_program_that_does_not_read_is_no_deadlock() -> None:
    subject = target("deaf", "--seconds=0.5")
    long = ev.Submit(RequestId("a"), (Token(2**31 - 1),) * 100_000)
    with pytest.raises(TargetUnusable, match=r"does not read its input .*bytes left to read"):
        subject.ask(long)


def test_a_program_that_cannot_be_started_is_named(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("no program")
    for name, why in ((f"{tmp_path}/none", "No such file"), (f"{plain}", "Permission denied")):
        with pytest.raises(TargetUnusable, match=f"cannot be started .{why}"):
            Target("t", engine.Pool(engine.parse_command(f"cmd:{name}")), PROBE)


def test_an_error_is_the_engines_fault_and_the_conversation_goes_on() -> None:
    subject = target("error")
    with pytest.raises(TargetFault, match="free list lost block 3"):
        subject.ask(SUBMIT)
    assert subject.ask(ev.BeginStep()) == ev.Done()


def test_a_configuration_can_be_declined() -> None:
    with pytest.raises(ConfigDeclined, match="no caches on Wednesdays"):
        target("declines")


def test_unknown_fields_are_refused_where_strict() -> None:
    target("unknown field")
    with pytest.raises(TargetUnusable, match="unknown field colour"):
        target("unknown field", "--strict")


@pytest.mark.parametrize(
    ("way", "says"), [("bad end", "exit status 3"), ("stays", "it still runs")]
)
def test_a_program_has_to_end_when_it_is_told(
    way: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child, "GOODBYE", 0.3)
    pool = engine.Pool(engine.parse_command(bad(way)))
    Target("t", pool, PROBE)
    with pytest.raises(TargetUnusable, match=f"at stop: .*{says}"):
        pool.stop()


def test_a_dead_program_is_started_again() -> None:
    pool = engine.Pool(engine.parse_command(bad("exit")))
    for _ in range(2):
        with pytest.raises(TargetUnusable, match="exit status 0"):
            Target("t", pool, PROBE).ask(SUBMIT)
    pool.close()


def test_two_caches_of_one_command_do_not_mix_and_a_few_are_kept() -> None:
    pool = engine.Pool(engine.parse_command(bad("fine")))
    alive = [Target("t", pool, PROBE) for _ in range(engine.MOST_CHILDREN)]
    assert len({subject.manager._line for subject in alive}) == engine.MOST_CHILDREN
    newest = Target("t", pool, PROBE)
    assert newest.ask(SUBMIT) == ev.Done()
    with pytest.raises(TargetUnusable, match="serves another cache by now"):
        alive[0].ask(SUBMIT)
    del alive, newest
    gc.collect()
    again = Target("t", pool, PROBE)
    assert len(pool._lines) == engine.MOST_CHILDREN
    assert again.ask(SUBMIT) == ev.Done()
    pool.close()


@pytest.mark.parametrize("command", ["check", "smoke"])
@pytest.mark.parametrize("way", ["die", "garbage", "no start"])
def test_the_command_ends_with_2_and_one_line(tmp_path: Path, command: str, way: str) -> None:
    options: list[str | Path] = []
    if command == "check":
        options = ["--examples", "2", "--failures", tmp_path / "f"]
    ran = run(command, "--target", bad(way), *options)
    assert ran.status == 2
    assert ran.stderr.startswith("kvspec: target cmd:")
    assert ran.stderr.count("\n") == 1
    assert ran.verdict == f"unusable: {ran.stderr.removeprefix('kvspec: ').rstrip()}"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("cmd:", "names no program"),
        ("cmd:   ", "names no program"),
        ("cmd:--strict", "names no program"),
        ("cmd:--quick ./engine", "not --quick"),
        ("cmd:--seconds=0 ./engine", "not --seconds=0"),
        ("cmd:--seconds=nan ./engine", "not --seconds=nan"),
        ("cmd:--seconds=x ./engine", "not --seconds=x"),
        ("cmd:'./engine", "cannot be split into words: No closing quotation"),
    ],
)
def test_a_command_that_makes_no_sense_is_refused(name: str, says: str) -> None:
    ran = run("smoke", "--target", name)
    assert ran.is_refused()
    assert says in ran.stderr
