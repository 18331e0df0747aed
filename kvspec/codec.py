"""The JSON form of events and observations (design section 3), read strictly.

An event is one object: `"event"` first, then its fields by name; a field equal to its default is
left out. A trace is a file with one event a line, `configure` first; a line may carry what the
target answered under `"observed"`, an object with the observation's fields by name. An error names
the file, the line, the field and what was expected.

The forms are derived from the dataclasses of `kvspec.spec`, so neither can drift from the other.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from itertools import zip_longest
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from kvspec.spec import events as ev
from kvspec.spec import types as t
from kvspec.spec.types import MAX_ID_LENGTH, MAX_TOKEN

from .errors import BadInput
from .files import read_lines, write_whole

MAX_POOL = 2**22
"""The largest pool, in blocks: a larger number is a mistake that would only fill the memory."""

MAX_MODEL_LEN = 2**24
"""The longest request, in tokens: as for `MAX_POOL`."""

_NUMBER = Annotated[int, Meta(ge=0, le=MAX_TOKEN)]
_ID = Annotated[str, Meta(max_length=MAX_ID_LENGTH)]
_CAPPED: dict[tuple[type, str], Any] = {
    (t.Config, "num_blocks"): Annotated[int, Meta(ge=2, le=MAX_POOL)],
    (t.Config, "max_model_len"): Annotated[int, Meta(ge=1, le=MAX_MODEL_LEN)],
}
_KINDS: dict[str, Any] = {name: kind for kind, name in ev.EVENT_NAMES.items()}
_CHOICES = {"kind": [k.value for k in t.GroupKind], "connector": [c.value for c in t.Connector]}

# --- forms: msgspec structs that refuse unknown fields, made from the dataclasses -----------------


@cache
def form_of(kind: Any, event: str | None = None) -> Any:
    """The struct with a dataclass's fields; an event's is tagged with its wire name."""
    hints = get_type_hints(kind)
    text = _ID if event or kind in (t.Adapter, t.Media) else str
    struct_fields: list[Any] = []
    for field in fields(kind):
        limited = _CAPPED.get((kind, field.name)) or _strict(hints[field.name], text)
        default = () if field.default is MISSING else (field.default,)
        struct_fields.append((field.name, limited, *default))
    tag: dict[str, Any] = {"tag_field": "event", "tag": event} if event else {}
    return msgspec.defstruct(
        kind.__name__,
        struct_fields,
        namespace={"__doc__": kind.__doc__},
        forbid_unknown_fields=True,
        omit_defaults=True,
        **tag,
    )


def _strict(hint: Any, text: Any) -> Any:
    """The same type with bounds on its numbers and texts, and structs for dataclasses."""
    if hasattr(hint, "__supertype__"):  # a NewType: our ids and tokens
        return _ID if hint is t.RequestId else _strict(hint.__supertype__, text)
    if hint is int:
        return _NUMBER
    if hint is str:
        return text
    if is_dataclass(hint) and isinstance(hint, type):
        return form_of(hint)
    arguments = tuple(a if a is ... else _strict(a, text) for a in get_args(hint))
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return Union[arguments]  # noqa: UP007  the members are known at run time only
    if origin is tuple:
        return tuple.__class_getitem__(arguments)
    if origin is not None and issubclass(origin, Mapping):
        return dict.__class_getitem__(arguments)
    return hint


def schema() -> dict[str, Any]:
    """The JSON schema of the event language."""
    return schema_of("kvspec event", [form_of(kind, name) for name, kind in _KINDS.items()])


def schema_of(title: str, forms: list[Any]) -> dict[str, Any]:
    """The JSON schema of an object that has one of these forms."""
    (one,), definitions = msgspec.json.schema_components(
        [Union[tuple(forms)]],  # noqa: UP007
        ref_template="#/$defs/{name}",
    )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        **one,
        "$defs": definitions,
    }


# --- one event, one observation -------------------------------------------------------------------


def event_to_json(event: ev.Event) -> dict[str, Any]:
    """The JSON form of an event, as built-in values."""
    kind: Any = type(event)
    return _builtins(msgspec.convert(event, form_of(kind, _name(event)), from_attributes=True))


def event_from_json(data: object, where: str = "event") -> ev.Event:
    """The event of a JSON form. Raises `BadInput`; `where` says what was read."""
    if not isinstance(data, dict):
        raise BadInput(f"{where}: expected an object with a field event, got {_show(data)}")
    name = data.get("event")
    if not isinstance(name, str) or name not in _KINDS:
        got = _show(name) if "event" in data else "none"
        known = ", ".join(_KINDS)
        raise BadInput(f"{where}: event: expected one of {known}; got {got}")
    kind = _KINDS[name]
    event: ev.Event = _convert(data, form_of(kind, name), kind, f"{where}: {name}")
    return event


def observation_to_json(observation: ev.Observation) -> dict[str, Any]:
    """The JSON form of an observation, as built-in values."""
    kind: Any = type(observation)
    return _builtins(
        msgspec.convert(observation, form_of(kind), from_attributes=True, str_keys=True)
    )


def observation_from_json(data: object, event: ev.Event, where: str = "observed") -> ev.Observation:
    """What a target answered an event, of its JSON form. Raises `BadInput`."""
    if not isinstance(data, dict):
        raise BadInput(f"{where}: expected an object, got {_show(data)}")
    kind: Any = ev.Rejection if set(data) == {"reason"} else ev.ANSWERS[type(event)]
    observation: ev.Observation = _convert(data, form_of(kind), kind, where)
    return observation


def _builtins(form: Any) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(form, str_keys=True)
    return plain


def _convert(data: dict[Any, Any], form: Any, kind: Any, where: str) -> Any:
    """Check against the strict form, then make the dataclass, which may refuse as well."""
    try:
        checked = msgspec.convert(data, form, str_keys=True)
        return msgspec.convert(checked, kind, from_attributes=True)
    except msgspec.ValidationError as error:
        raise BadInput(_explain(str(error), data, where)) from None
    except RecursionError:
        raise BadInput(f"{where}: expected flat fields, got deeply nested ones") from None


def _explain(text: str, data: object, where: str) -> str:
    """Say where, what field, what was expected and what was found."""
    what, _, path = text.partition(" - at ")
    path = path.replace("`", "").replace("key in $.", "key of ").replace("$.", "").strip("$ ")
    field = path.rpartition(".")[2]
    what = what.replace("`", "")
    if what.startswith("Invalid enum value"):
        what = f"expected one of {', '.join(_CHOICES[field])}; got {_show(_at(data, path))}"
    elif "unknown field" in what:
        what = what.replace("Object contains unknown field", "no such field:")
    elif "missing required field" in what:
        what = what.replace("Object missing required field", "missing field")
    else:
        what = what.replace("Expected", "expected")
        if what.startswith("expected") and "got" not in what and "key of" not in path:
            what += f", got {_show(_at(data, path))}"
    # what a dataclass refuses begins with the event's name, as `where` does
    what = what.removeprefix(f"{where.rpartition(': ')[2]}: ")
    return f"{where}: {path}: {what}" if path else f"{where}: {what}"


def _at(data: Any, path: str) -> Any:
    """The value at a path as msgspec writes it, such as `groups[0].kind`."""
    for name, index in re.findall(r"(\w+)|\[(\d+)\]", path):
        if isinstance(data, dict) and name in data:
            data = data[name]
        elif isinstance(data, list | tuple) and index and int(index) < len(data):
            data = data[int(index)]
        else:
            return data
    return data


def _show(value: object) -> str:
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    try:
        text = msgspec.json.encode(value).decode()
    except (msgspec.MsgspecError, UnicodeError, TypeError, OverflowError):
        text = ascii(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


# --- traces ---------------------------------------------------------------------------------------


def read_trace(path: str | os.PathLike[str]) -> list[ev.Event]:
    """The events of a trace; the first is the configuration. Raises `BadInput`."""
    events: list[ev.Event] = []
    for where, data in read_lines(path):
        observed = data.pop("observed", MISSING) if isinstance(data, dict) else MISSING
        event = event_from_json(data, where)
        if bool(events) == isinstance(event, t.Config):
            expected = "configure first" if not events else "configure on the first line only"
            raise BadInput(f"{where}: event: expected {expected}, got {_name(event)}")
        if observed is not MISSING:
            observation_from_json(observed, event, f"{where}: {_name(event)}: observed")
        events.append(event)
    if not events:
        raise BadInput(f"{path} line 1: expected the event configure, got an empty file")
    return events


def write_trace(
    path: str | os.PathLike[str],
    events: Iterable[ev.Event],
    observations: Iterable[ev.Observation] | None = None,
) -> None:
    """Write a trace; `observations` answer the events after `configure`, in order."""
    write_whole(path, trace_text(events, observations))


def trace_text(
    events: Iterable[ev.Event], observations: Iterable[ev.Observation] | None = None
) -> str:
    """The text of a trace. An observation that has no form, such as a block -1, is left out."""
    config, *rest = events
    lines = [event_to_json(config)]
    for event, observed in zip_longest(rest, observations or ()):
        lines.append(event_to_json(event))
        if observed is not None:
            with suppress(msgspec.ValidationError):
                lines[-1]["observed"] = observation_to_json(observed)
    return "".join(f"{msgspec.json.encode(line).decode()}\n" for line in lines)


def _name(event: ev.Event) -> str:
    return ev.EVENT_NAMES[type(event)]
