"""The form of the files of a folder of vectors, from which the published schema is derived."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, Literal, Union

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from kvspec.codec import form_of
from kvspec.files import write_whole
from kvspec.spec import events as ev
from kvspec.spec.clauses import CLAUSES
from kvspec.spec.types import Config

FORMAT: Literal["kvspec-vectors/1"] = "kvspec-vectors/1"
"""Raised whenever a runner written for the number before could misread a folder."""

Name = Annotated[str, Meta(pattern=r"^\$[1-9][0-9]*$")]
"""The name of a block."""

DigestName = Annotated[str, Meta(pattern=r"^d[1-9][0-9]*$")]
Clause = Annotated[str, Meta(pattern=r"^[A-Z]+\.[A-Z_]+$")]
CaseId = Annotated[str, Meta(pattern=r"^[a-z]+/[a-z-]+/[A-Za-z0-9.-]+$")]
Size = Annotated[int, Meta(ge=0)]


class Predicate(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """What is allowed where the rules leave a choice; exactly one field besides `clause` is there.

    docs/vectors.md says what each of them means. `clause` takes the place of that of the check.
    """

    one_of: tuple[Value, ...] | UnsetType = UNSET
    fresh: Name | UnsetType = UNSET
    bags: tuple[tuple[Item, ...], ...] | UnsetType = UNSET
    blocks: tuple[Name, ...] | UnsetType = UNSET
    places: tuple[tuple[Size, Name], ...] | UnsetType = UNSET
    copies: tuple[tuple[Name, Item], ...] | UnsetType = UNSET
    bounds: Bounds | UnsetType = UNSET
    number: Number | UnsetType = UNSET
    shape: tuple[tuple[bool, ...], ...] | UnsetType = UNSET
    map: tuple[tuple[str, Value], ...] | UnsetType = UNSET
    key: tuple[Size, DigestName] | UnsetType = UNSET
    pool_without: tuple[Name, ...] | UnsetType = UNSET
    order: tuple[Name, ...] | UnsetType = UNSET
    distinct: Literal[True] | UnsetType = UNSET
    unchanged: Literal[True] | UnsetType = UNSET
    clause: Clause | UnsetType = UNSET


Atom = Union[bool, int, Name, Predicate]  # noqa: UP007  a union that refers to itself by name
Item = Union[bool, int, Name, Predicate, tuple[Atom, ...]]  # noqa: UP007
Value = Union[bool, int, Name, Predicate, tuple[Item, ...]]  # noqa: UP007
"""A pattern: a value, a block's name, a predicate, or a list of patterns."""


class Bounds(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The bounds of a set of blocks."""

    least: tuple[Name, ...] = ()
    most: tuple[Name, ...] | UnsetType = UNSET


class Number(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The bounds of a number."""

    least: int
    most: int | UnsetType = UNSET


class Check(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A field of an answer (with `of`, of one block), what it may be, and by which rule."""

    field: str
    is_: Value = msgspec.field(name="is")
    clause: Clause
    of: Name | UnsetType = UNSET


class Evict(Struct, forbid_unknown_fields=True, tag_field="event", tag="evict"):
    """The event `evict`, its blocks by name."""

    blocks: tuple[Name, ...]


NOT_SENT = ("configure", "evict", "snapshot")
_KINDS: dict[str, Any] = {name: kind for kind, name in ev.EVENT_NAMES.items()}
_EVENTS = [Evict, *(form_of(kind, name) for name, kind in _KINDS.items() if name not in NOT_SENT)]
Event: Any = Union[tuple(_EVENTS)]  # noqa: UP007  the members are known at run time only


class Step(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """An event, the answers allowed, and the books that may be shown after it.

    `refused`: the event is an error, by this clause. `may_skip`: an engine that does not have the
    event can do without it here. `forget`: names that mean nothing after this step.
    """

    event: Event
    may_skip: bool = False
    refused: Clause | UnsetType = UNSET
    allowed: tuple[Check, ...] = ()
    books: tuple[Check, ...] = ()
    forget: tuple[Name, ...] = ()


class Source(Struct, forbid_unknown_fields=True):
    """Where a case comes from: a worked example, a row of the atlas, a walk in a tiny world."""

    kind: Literal["scenario", "atlas", "graph"]
    id: str


class Case(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """One vector. `refused`: its last event is refused, by this clause."""

    format: str
    id: CaseId
    title: str
    source: Source
    clauses: tuple[Clause, ...]
    needs: tuple[str, ...]
    configuration: form_of(Config)  # type: ignore[valid-type]
    steps: tuple[Step, ...]
    refused: Clause | UnsetType = UNSET


class Listed(Struct, forbid_unknown_fields=True):
    """A case of a folder: its file, relative to the folder, and the SHA-256 of its bytes."""

    id: CaseId
    path: str
    sha256: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]


class Rule(Struct, forbid_unknown_fields=True):
    """A clause that cases name. `profile`: the least at which an engine is held to it."""

    statement: str
    profile: Literal["soundness", "accounting"]


class Manifest(Struct, forbid_unknown_fields=True):
    """The file `manifest.json`."""

    format: str
    kvspec: str
    clauses: dict[Clause, Rule]
    cases: tuple[Listed, ...]


class Invalid(Struct, forbid_unknown_fields=True):
    """A case that was found wrong."""

    id: CaseId
    why: str


class Invalidated(Struct, forbid_unknown_fields=True):
    """The file `invalidated.json`: cases that a runner passes over."""

    format: str
    invalidated: tuple[Invalid, ...]


def rules() -> dict[str, Rule]:
    """Every clause that a case could name."""
    return {
        c.id: Rule(c.statement, c.profile.value)
        for c in CLAUSES.values()
        if c.profile.value != "exact"
    }


def write_schema(folder: Path) -> Path:
    """Write the schema; `python -m kvspec.vectors.model FOLDER` does that."""
    path = folder / "vector.json"
    text = msgspec.json.format(msgspec.json.encode(vector_schema()), indent=2).decode()
    write_whole(path, f"{text}\n")
    return path


def vector_schema() -> dict[str, Any]:
    """The JSON schema of a case; those of the two other files are among its definitions."""
    (case, *_), definitions = msgspec.json.schema_components(
        [Case, Manifest, Invalidated], ref_template="#/$defs/{name}"
    )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"{FORMAT}: a case; manifest.json is #/$defs/Manifest, "
        "invalidated.json is #/$defs/Invalidated",
        **case,
        "$defs": definitions,
    }


if __name__ == "__main__":
    print(write_schema(Path(*sys.argv[1:2])))
