"""A target behind the wire is judged as it is in process; the server survives any line."""

from __future__ import annotations

import io
import json
import shlex
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvspec.codec import event_to_json
from kvspec.errors import BadInput, ClauseBroken
from kvspec.machine import run_machine
from kvspec.scenarios import SCENARIOS, run_scenario
from kvspec.spec import events as ev
from kvspec.spec.clauses import Profile
from kvspec.targets import PROBE, find_factory
from kvspec.wire import messages as m
from kvspec.wire.serve import Server, main, serve
from kvspec.wire.smoke import smoke
from tests.cli.run import run
from tests.codec.strategies import ANSWERED, EVENTS

SCHEMAS = Path(m.__file__).parents[1] / "schema"


def served(target: str, *options: str) -> str:
    words = [*options, sys.executable, "-m", "kvspec.wire.serve", target]
    return f"cmd:{shlex.join(words)}"


def server(target: str = "reference") -> Server:
    capabilities = ev.Capabilities(target, shows=ev.SHOWABLE)
    return Server(target, find_factory(target), capabilities)


def test_a_conforming_target_conforms_over_the_wire() -> None:
    name = served("optimized", "--strict")
    factory = find_factory(name)
    done = run_machine(name, factory, profile=Profile.EXACT, examples=10, seed=3)
    assert done.events > 300
    for scenario in ("S7", "S9", "S14", "A3"):
        run_scenario(SCENARIOS[scenario], name, factory, profile=Profile.EXACT)


def test_a_broken_target_is_broken_over_the_wire() -> None:
    name = served("kvspec.targets:canary")
    with pytest.raises(ClauseBroken) as caught:
        run_scenario(SCENARIOS["A3"], name, find_factory(name))
    assert caught.value.violation.clause.id == "EVICT.TAKEN"


def test_smoke_names_each_step() -> None:
    steps = list(smoke(served("reference")))
    assert [step.what for step in steps] == [
        "start",
        "configure, full attention",
        "configure, hybrid",
        "configure again",
        "stop",
    ]
    assert steps[2].result == "33 events answered"


def test_the_smoke_command_says_what_comes_next() -> None:
    ran = run("smoke", "--target", "kvspec.targets:canary")
    assert ran.status == 0
    assert ran.verdict.endswith("now run kvspec check --target kvspec.targets:canary")


def test_a_target_that_cannot_be_found_ends_the_server(capfd: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert main(["nope"]) == 2
    assert "target 'nope' is unknown" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"", "expected one JSON object a line, got none"),
        (b"\xff", "got none: "),
        (b"[" * 100_000, "expected one JSON object"),
        (b"[]", "expected an object with a field event"),
        (b'{"event":"sumbit"}', "event: expected one of configure, submit"),
        (b'{"event":"reset"}', "expected start first"),
        (b'{"event":"start","protocol":"kvspec/9"}', "kvspec/9"),
        (b'{"event":"start","colour":1}', "unknown field"),
        (b'{"event":"stop","now":true}', "unknown field"),
    ],
)
def test_a_line_that_is_no_question_gets_an_error(line: bytes, says: str) -> None:
    answer = server().answer(line)
    assert list(answer) == ["error"]
    assert says in answer["error"]


def test_events_come_after_start_and_configure() -> None:
    one = server()
    assert "result" in one.answer(m.START)
    assert one.answer(b'{"event":"reset"}') == {
        "error": "expected configure before any other event"
    }
    assert one.answer(m.event_line(PROBE))["result"]["shows"] == ev.SHOWABLE
    assert one.answer(b'{"event":"reset"}') == {"result": {"done": True}}
    assert one.answer(b'{"event":"submit","request":"a"}')["error"].endswith("missing field tokens")


def test_a_line_without_end_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kvspec.wire.serve.MAX_LINE", 100)
    asked, answers = io.BytesIO(b"x" * 1000 + b"\n" + m.STOP + b"\nmore\n"), io.BytesIO()
    serve(server(), asked, answers)
    first, second = answers.getvalue().splitlines()
    assert b"at most 100 bytes" in first
    assert second == b'{"result":{}}'


def test_the_published_schemas_are_those_of_the_code() -> None:
    for name, schema in m.schemas().items():
        published = json.loads((SCHEMAS / f"{name}.json").read_text())
        assert published == json.loads(msgspec.json.encode(schema)), (
            "run: python -m kvspec.wire.messages kvspec/schema"
        )


# --- any line, in both directions ----------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
FIELDS = st.sampled_from(["result", "unsupported", "rejected", "error", "granted", "blocks", "x"])
LINES = st.one_of(
    st.binary(max_size=60),
    JSON.map(lambda value: json.dumps(value).encode()),
    st.dictionaries(FIELDS, JSON, max_size=3).map(lambda value: json.dumps(value).encode()),
)


@given(line=LINES, name=st.sampled_from(m.NAMES), strict=st.booleans())
def test_any_answer_is_read_or_refused(line: bytes, name: str, strict: bool) -> None:
    try:
        field, _ = m.read_answer(line, name, strict)
    except BadInput:
        return
    assert field in ("result", "unsupported", "rejected", "error")


@given(asked=ANSWERED, strict=st.booleans())
def test_what_is_written_is_read_again(
    asked: tuple[ev.Event, ev.Observation], strict: bool
) -> None:
    event, observed = asked
    name = ev.EVENT_NAMES[type(event)]
    if name == "configure" or isinstance(observed, ev.Rejection):
        return
    from kvspec.codec import observation_to_json

    line = msgspec.json.encode({"result": observation_to_json(observed)})
    assert m.read_answer(line, name, strict) == ("result", observed)


@given(event=EVENTS)
def test_an_event_is_one_line(event: ev.Event) -> None:
    line = m.event_line(event)
    assert b"\n" not in line
    assert json.loads(line) == json.loads(msgspec.json.encode(event_to_json(event)))


MUTATED = st.tuples(EVENTS, st.integers(0, 200), st.binary(max_size=3)).map(
    lambda parts: (lambda line: line[: parts[1]] + parts[2] + line[parts[1] + 1 :])(
        m.event_line(parts[0])
    )
)


@given(lines=st.lists(st.one_of(LINES, MUTATED, EVENTS.map(m.event_line)), max_size=4))
def test_any_question_is_answered(lines: list[bytes]) -> None:
    one = server()
    one.answer(m.START)
    one.answer(m.event_line(PROBE))
    for line in lines:
        answer: dict[str, Any] = one.answer(line)
        assert len(answer) == 1
        msgspec.json.encode(answer)
