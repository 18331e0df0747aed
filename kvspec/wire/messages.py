"""The lines of kvspec/1 (docs/protocol.md): what is asked, and the forms of what is answered.

Every line is one object. A question carries `"event"`: `start`, the events of the language, or
`stop`. An answer has one field: `result`, `unsupported`, `rejected` or `error`.
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from kvspec.codec import form_of, schema_of
from kvspec.errors import BadInput
from kvspec.files import write_whole
from kvspec.spec import events as ev
from kvspec.spec.types import MAX_ID_LENGTH

PROTOCOL: Literal["kvspec/1"] = "kvspec/1"

MOST_SAID = 4096
"""Characters of a reason or an error."""

Text = Annotated[str, Meta(max_length=MAX_ID_LENGTH)]
Reason = Annotated[str, Meta(max_length=MOST_SAID)]


class Start(Struct, forbid_unknown_fields=True, tag_field="event", tag="start"):
    """The first line: the protocol that the rest is written in."""

    protocol: Literal["kvspec/1"] = PROTOCOL


class Stop(Struct, forbid_unknown_fields=True, tag_field="event", tag="stop"):
    """The last line: answer it and exit with status 0."""


class Shown(Struct, forbid_unknown_fields=True, omit_defaults=True, frozen=True):
    """What an engine can do: the books it shows, the events and features it lacks."""

    shows: tuple[Text, ...] = ()
    lacks: tuple[Text, ...] = ()


class Started(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The answer to `start`: who answers, and what it can do whatever the configuration."""

    protocol: Literal["kvspec/1"]
    name: Text
    language: Text
    version: Text = ""
    tracker: Text = ""
    capabilities: Shown = Shown()


class Configured(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The answer to `configure`: what the engine can do here, where that differs from `start`."""

    shows: tuple[Text, ...] | UnsetType = UNSET
    lacks: tuple[Text, ...] | UnsetType = UNSET


class Stopped(Struct, forbid_unknown_fields=True):
    """The answer to `stop`."""


NAMES = ("start", *ev.EVENT_NAMES.values(), "stop")
"""Every value of `"event"`, in the order in which a conversation may have them."""

_OWN: dict[str, Any] = {"start": Started, "configure": Configured, "stop": Stopped}
_KINDS: dict[str, Any] = {name: kind for kind, name in ev.EVENT_NAMES.items()}
START, STOP = msgspec.json.encode(Start()), msgspec.json.encode(Stop())


def observation_of(name: str) -> Any:
    """The type that answers an event of this name."""
    return _OWN.get(name) or ev.ANSWERS[_KINDS[name]]


@cache
def result_form(name: str, strict: bool) -> Any:
    """The type of a result: where strict, bounded and without unknown fields."""
    kind = observation_of(name)
    if name in _OWN:
        return kind if strict else _lenient(kind)
    return form_of(kind) if strict else kind


def _lenient(kind: Any) -> Any:
    """The same struct, that passes over fields it does not know."""
    fields = [
        (f.name, _lenient(Shown) if f.name == "capabilities" else f.type, f.default)
        if not f.required
        else (f.name, f.type)
        for f in msgspec.structs.fields(kind)
    ]
    return msgspec.defstruct(kind.__name__, fields)


@cache
def answer_form(name: str, strict: bool) -> Any:
    """The type of an answer to an event of this name."""
    reason: Any = (Reason if strict else str) | UnsetType
    result = result_form(name, strict) | UnsetType
    fields = [("result", result, UNSET)]
    fields += [(other, reason, UNSET) for other in ("unsupported", "rejected", "error")]
    return msgspec.defstruct(
        f"{name.title().replace('_', '')}Answer", fields, forbid_unknown_fields=strict
    )


@cache
def _decoder(name: str, strict: bool) -> Any:
    return msgspec.json.Decoder(answer_form(name, strict))


def read_answer(line: bytes, name: str, strict: bool = False) -> tuple[str, Any]:
    """Which field an answer has, and its value; a result as the observation, or own struct.

    Raises `BadInput`.
    """
    try:
        answer = _decoder(name, strict).decode(line)
        said = [(f, v) for f in _FIELDS if (v := getattr(answer, f)) is not UNSET]
        if len(said) != 1:
            raise BadInput(
                "expected one of the fields result, unsupported, rejected, error; "
                f"got {' and '.join(f for f, _ in said) or 'none of them'}"
            )
        field, value = said[0]
        if strict and field == "result" and name not in _OWN:
            value = msgspec.convert(value, observation_of(name), from_attributes=True)
        return field, value
    except UnicodeDecodeError:
        raise BadInput("expected UTF-8, got other bytes") from None
    except RecursionError:
        raise BadInput("expected flat fields, got deeply nested ones") from None
    except msgspec.ValidationError as error:
        text = str(error).replace("`", "").replace("$.", "")
        raise BadInput(f"of the wrong form: {text[0].lower()}{text[1:]}") from None
    except msgspec.DecodeError as error:
        raise BadInput(f"no JSON object: {error}") from None


_FIELDS = ("result", "unsupported", "rejected", "error")


# --- the published schemas ------------------------------------------------------------------------


def schemas() -> dict[str, dict[str, Any]]:
    """The JSON schemas of both directions, by the name of their file in kvspec/schema/."""
    forms = [form_of(kind, name) for name, kind in _KINDS.items()]
    return {
        "event": schema_of("kvspec event", forms),
        "question": schema_of("kvspec/1 question", [Start, Stop, *forms]),
        "answer": _answer_schema(),
    }


def _answer_schema() -> dict[str, Any]:
    """A definition for each event, `AllocateAnswer`; an answer has exactly one field."""
    found, definitions = msgspec.json.schema_components(
        [answer_form(name, True) for name in NAMES], ref_template="#/$defs/{name}"
    )
    for reference in found:
        definition = definitions[reference["$ref"].rpartition("/")[2]]
        definition |= {"minProperties": 1, "maxProperties": 1}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "kvspec/1 answers: the one to `allocate` is #/$defs/AllocateAnswer, and so on",
        "$defs": definitions,
    }


def write_schemas(folder: Path) -> list[Path]:
    """Write the schemas; `python -m kvspec.wire.messages FOLDER` does that."""
    paths = []
    for name, schema in schemas().items():
        text = msgspec.json.format(msgspec.json.encode(schema), indent=2).decode()
        paths.append(folder / f"{name}.json")
        write_whole(paths[-1], f"{text}\n")
    return paths


def event_line(event: ev.Event) -> bytes:
    """The line of an event, without its end."""
    kind: Any = type(event)
    form = form_of(kind, ev.EVENT_NAMES[kind])
    return msgspec.json.encode(msgspec.convert(event, form, from_attributes=True))


if __name__ == "__main__":
    for written in write_schemas(Path(*sys.argv[1:2])):
        print(written)
