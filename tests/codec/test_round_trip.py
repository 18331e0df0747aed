"""What is written is read back as it was, and read strictly."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvspec import codec
from kvspec.errors import BadInput
from kvspec.files import MAX_LINE
from kvspec.spec import events as ev
from kvspec.spec.types import BlockId, Config, Group, GroupKind, RequestId

from .strategies import ANSWERED, EVENTS

CONFIG = Config(4, 1, (Group(GroupKind.FULL, 2),), 8)
LOOKUP = ev.Lookup(RequestId("a"))
CONFIGURE = codec.trace_text([CONFIG])

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def encoded(value: object) -> object:
    """As a line of a file carries it."""
    return msgspec.json.decode(msgspec.json.encode(value))


@given(EVENTS)
def test_an_event_comes_back_as_it_was(event: ev.Event) -> None:
    assert codec.event_from_json(encoded(codec.event_to_json(event))) == event


@given(ANSWERED)
def test_an_observation_comes_back_as_it_was(pair: tuple[ev.Event, ev.Observation]) -> None:
    event, observation = pair
    form = encoded(codec.observation_to_json(observation))
    assert codec.observation_from_json(form, event) == observation


@given(events=st.lists(EVENTS.filter(lambda e: not isinstance(e, Config)), max_size=5))
def test_a_trace_comes_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, events: list[ev.Event]
) -> None:
    path = tmp_path_factory.getbasetemp() / "trace.jsonl"
    codec.write_trace(path, [CONFIG, *events])
    assert codec.read_trace(path) == [CONFIG, *events]


def test_the_form_has_the_event_first_and_leaves_defaults_out() -> None:
    event = ev.Allocate(RequestId("a"), 3)
    text = codec.trace_text([CONFIG, event])
    assert text.splitlines()[1] == '{"event":"allocate","request":"a","num_new_tokens":3}'


def test_observations_are_written_beside_their_events(tmp_path: Path) -> None:
    hit = ev.Hit(((BlockId(1),),), 2)
    codec.write_trace(tmp_path / "t", [CONFIG, LOOKUP, ev.BeginStep()], [hit])
    lines = (tmp_path / "t").read_text().splitlines()
    assert json.loads(lines[1])["observed"] == {"blocks": [[1]], "num_tokens": 2}
    assert "observed" not in lines[2]
    assert codec.read_trace(tmp_path / "t") == [CONFIG, LOOKUP, ev.BeginStep()]


def test_an_observation_without_a_form_is_left_out() -> None:
    text = codec.trace_text([CONFIG, LOOKUP], [ev.Hit(((BlockId(-1),),), 2)])
    assert "observed" not in text


def test_the_schema_names_every_event_and_closes_every_object() -> None:
    schema = codec.schema()
    assert set(schema["discriminator"]["mapping"]) == set(ev.EVENT_NAMES.values())
    objects = [d for d in schema["$defs"].values() if d.get("type") == "object"]
    assert all(d["additionalProperties"] is False for d in objects)
    assert schema["$defs"]["Submit"]["properties"]["request"]["maxLength"] == 256


# --- strictness -----------------------------------------------------------------------------------

BROKEN_LINES = {
    "an event that is none": (
        '{"event":"alocate"}',
        'event: expected one of configure, .*"alocate"',
    ),
    "no event": ('{"request":"a"}', "event: expected one of .*got none"),
    "a missing field": ('{"event":"lookup"}', "lookup: missing field request"),
    "an unknown field": ('{"event":"lookup","request":"a","x":1}', "lookup: no such field: x"),
    "a wrong type": ('{"event":"lookup","request":3}', "lookup: request: expected str, got int"),
    "a float": (
        '{"event":"allocate","request":"a","num_new_tokens":1.0}',
        "allocate: num_new_tokens: expected int, got float",
    ),
    "a negative length": (
        '{"event":"allocate","request":"a","num_new_tokens":-1}',
        "allocate: num_new_tokens: expected int >= 0, got -1",
    ),
    "a huge length": (
        '{"event":"allocate","request":"a","num_new_tokens":1' + "0" * 30 + "}",
        "allocate: num_new_tokens: expected int <= 2147483647, got 1000",
    ),
    "a token out of range": (
        '{"event":"submit","request":"a","tokens":[0,2147483648]}',
        r"submit: tokens\[1\]: expected int <= 2147483647, got 2147483648",
    ),
    "a long id": (
        '{"event":"lookup","request":"' + "a" * 257 + '"}',
        "lookup: request: expected str of length <= 256",
    ),
    "a wrong observation": (
        '{"event":"lookup","request":"a","observed":{"blocks":3}}',
        "lookup: observed: blocks: expected array, got int",
    ),
    "no observation": ('{"event":"process","observed":null}', "observed: expected an object"),
    "a second configure": (CONFIGURE.strip(), "configure on the first line only"),
    "no object": ("[]", "expected an object with a field event, got a list"),
    "an empty line": ("", "expected one JSON object"),
    "no JSON": ("{event}", "expected one JSON object"),
    "deep nesting": ("[" * 100_000, "expected one JSON object"),
    "two values": ("{} {}", "expected one JSON object"),
}


@pytest.mark.parametrize("case", BROKEN_LINES)
def test_a_broken_line_is_named(tmp_path: Path, case: str) -> None:
    line, says = BROKEN_LINES[case]
    path = tmp_path / "trace.jsonl"
    path.write_text(f"{CONFIGURE}{line}\n")
    with pytest.raises(BadInput, match=rf"trace.jsonl line 2: .*{says}") as caught:
        codec.read_trace(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "line 1: expected the event configure, got an empty file"),
        (b'{"event":"process"}\n', "line 1: event: expected configure first, got process"),
        (CONFIGURE.encode()[:-9], "line 1: .*the line is cut off"),
        (b'{"event":"\xff"}\n', "line 1: expected UTF-8, got byte 0xff"),
        (b'{"event":"configure","num_blocks":4194305}', "num_blocks: expected int <= 4194304"),
        (CONFIGURE.replace('"full"', '"half"').encode(), "kind: expected one of full, mamba_align"),
        (CONFIGURE.replace(":2}", ":0}").encode(), "block_size must be a multiple of hash_unit"),
    ],
)
def test_a_broken_first_line_is_named(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_bytes(content)
    with pytest.raises(BadInput, match=says):
        codec.read_trace(path)


def test_a_line_that_is_too_long_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text(CONFIGURE + " " * (MAX_LINE + 1))
    with pytest.raises(BadInput, match=f"line 2: expected at most {MAX_LINE} bytes"):
        codec.read_trace(path)


@pytest.mark.parametrize("name", ["missing", ".", "a\0b"])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadInput, match="cannot be read"):
        codec.read_trace(f"{tmp_path}/{name}")


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be written"):
        codec.write_trace(tmp_path / "no" / "trace", [CONFIG])
    (tmp_path / "taken").mkdir()
    with pytest.raises(BadInput, match="cannot be written"):
        codec.write_trace(tmp_path / "taken", [CONFIG])
    assert [p.name for p in tmp_path.iterdir()] == ["taken"]


# --- fuzz -----------------------------------------------------------------------------------------


def refusal(read: Callable[[], object]) -> str:
    """What is said when it is refused; nothing but `BadInput` may come out of reading."""
    try:
        read()
    except BadInput as error:
        return str(error)
    return ""


@given(JSON)
def test_any_json_is_an_event_or_refused(data: object) -> None:
    assert "\n" not in refusal(lambda: codec.event_from_json(data))


@given(EVENTS, JSON, st.text(), st.data())
def test_a_damaged_event_is_an_event_or_refused(
    event: ev.Event, value: object, extra: str, data: st.DataObject
) -> None:
    form = codec.event_to_json(event)
    form[data.draw(st.sampled_from([*sorted(form), extra]))] = value
    assert "\n" not in refusal(lambda: codec.event_from_json(form))


@settings(max_examples=200)
@given(
    st.binary() | EVENTS.map(lambda e: codec.trace_text([CONFIG, e]).encode()),
    st.binary(max_size=3),
    st.data(),
)
def test_any_bytes_are_a_trace_or_refused(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, damage: bytes, data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(content)))
    path = tmp_path_factory.getbasetemp() / "fuzz.jsonl"
    path.write_bytes(content[:at] + damage + content[at + data.draw(st.integers(0, 3)) :])
    said = refusal(lambda: codec.read_trace(path))
    assert not said or "fuzz.jsonl line " in said
