"""A folder of vectors: written whole beside its place, read strictly.

manifest.json            format, version, clauses, the cases with their digests
invalidated.json         cases found wrong after they were written
PRESET/FAMILY/CASE.json  one case each
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET

from kvspec.errors import BadInput
from kvspec.files import AnyPath, require_folder
from kvspec.report import VERSION

from . import model as m
from .matching import content_of
from .sources import INVALID

MANIFEST, INVALIDATED = "manifest.json", "invalidated.json"

MOST_BYTES = 16 * 2**20
"""Of one file: the largest case has a hundredth of that."""


@dataclass(frozen=True, slots=True)
class Folder:
    """What a folder holds. `invalid` says of cases why they are passed over."""

    place: AnyPath
    version: str
    cases: tuple[m.Case, ...]
    invalid: Mapping[str, str]


# --- writing --------------------------------------------------------------------------------------


def files_of(cases: Iterable[m.Case]) -> dict[str, str]:
    """The text of each file by its path in the folder."""
    texts = {f"{case.id}.json": case_text(case) for case in cases}
    listed = tuple(m.Listed(p.removesuffix(".json"), p, _digest(t)) for p, t in texts.items())
    manifest = m.Manifest(m.FORMAT, VERSION, m.rules(), listed)
    invalidated = m.Invalidated(m.FORMAT, INVALID)
    return {MANIFEST: _text(manifest), INVALIDATED: _text(invalidated), **texts}


def case_text(case: m.Case) -> str:
    """A case as JSON, each event and each check on a line of its own."""
    head = msgspec.to_builtins(case)
    steps = ",\n".join(map(_step_text, head.pop("steps")))
    lines = [f" {_json(name)}: {_json(value)},\n" for name, value in head.items()]
    return "{\n" + "".join(lines) + ' "steps": [\n' + steps + "\n ]\n}\n"


def _step_text(step: dict[str, Any]) -> str:
    parts = []
    for name, value in step.items():
        if name in ("allowed", "books"):
            checks = ",\n".join(f"    {_json(check)}" for check in value)
            parts.append(f"   {_json(name)}: [\n{checks}\n   ]")
        else:
            parts.append(f"   {_json(name)}: {_json(value)}")
    return "  {\n" + ",\n".join(parts) + "\n  }"


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _text(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=1).decode() + "\n"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def write_folder(place: AnyPath, cases: Iterable[m.Case]) -> int:
    """Write a folder, in the place of an earlier one if there is one; how many files. `BadInput`.

    It is written beside its place, then renamed. A folder that holds anything that is not of
    vectors is left alone.
    """
    path = Path(os.path.realpath(place))
    require_folder("vectors write", path)
    _require_replaceable(place, path)
    texts = files_of(cases)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _beside(path) as made:
            for name, text in texts.items():
                file = made / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(text.encode())
            made.chmod(0o755)
            _put(made, path)
    except OSError as error:
        raise BadInput(f"{place}: cannot be written: {error.strerror or error}") from None
    return len(texts)


def _require_replaceable(place: AnyPath, path: Path) -> None:
    """There is nothing, or nothing but what an earlier `vectors write` left there."""
    try:
        if not path.exists():
            return
        found = {p.relative_to(path).as_posix() for p in path.rglob("*") if _is_file(p)}
    except OSError as error:
        raise BadInput(f"{place}: cannot be read: {error.strerror or error}") from None
    if not found:
        return
    if MANIFEST not in found:
        raise BadInput(f"{place}: is a folder of something else; name another, or an empty one")
    manifest = _read(path / MANIFEST, m.Manifest)
    ours = {MANIFEST, INVALIDATED, *(listed.path for listed in manifest.cases)}
    if foreign := sorted(found - ours):
        raise BadInput(
            f"{place}: holds {foreign[0]}, which is no file of vectors; name another folder"
        )


def _is_file(path: Path) -> bool:
    return path.is_symlink() or not path.is_dir()


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix=f".{path.name[:80]}.", dir=path.parent))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _put(made: Path, path: Path) -> None:
    """Rename into place; what was there before is gone only when the new folder stands."""
    if not path.exists():
        os.rename(made, path)
        return
    with _beside(path) as old:
        os.rename(path, old / "old")
        try:
            os.rename(made, path)
        except OSError:
            os.rename(old / "old", path)
            raise


# --- reading --------------------------------------------------------------------------------------


def read_folder(place: AnyPath) -> Folder:
    """Read a folder, whole and strictly. Raises `BadInput`."""
    path = Path(place)
    if not path.is_dir():
        raise BadInput(f"{place}: there is no such folder; kvspec vectors write {place} makes it")
    if not (path / MANIFEST).is_file():
        raise BadInput(f"{place}: has no {MANIFEST}: it is no folder of vectors")
    manifest = _read(path / MANIFEST, m.Manifest)
    cases = tuple(_read_case(path, listed) for listed in manifest.cases)
    if not cases:
        raise BadInput(f"{path / MANIFEST}: cases: expected at least one")
    invalidated = _read(path / INVALIDATED, m.Invalidated).invalidated
    known = {case.id for case in cases}
    for one in invalidated:
        if one.id not in known:
            raise BadInput(f"{path / INVALIDATED}: there is no case {one.id}")
    return Folder(place, manifest.kvspec, cases, {one.id: one.why for one in invalidated})


def _read_case(folder: Path, listed: m.Listed) -> m.Case:
    path = folder / listed.path
    if listed.path != f"{listed.id}.json":
        raise BadInput(f"{folder / MANIFEST}: {listed.id}: expected the path {listed.id}.json")
    data = _bytes(path)
    if hashlib.sha256(data).hexdigest() != listed.sha256:
        raise BadInput(f"{path}: is not as {MANIFEST} has it (sha256); write the folder anew")
    case: m.Case = _decode(path, data, m.Case)
    if case.id != listed.id:
        raise BadInput(f"{path}: id: expected {listed.id}, got {case.id}")
    _check_predicates(path, case)
    return case


def _check_predicates(path: Path, case: m.Case) -> None:
    """Each predicate says one thing, and each clause is one."""
    known = m.rules()
    for number, step in enumerate(case.steps, start=1):
        if step.refused is not UNSET and step.refused not in known:
            raise BadInput(f"{path}: step {number}: there is no clause {step.refused}")
        for check in (*step.allowed, *step.books):
            where = f"{path}: step {number}: {check.field}"
            if check.clause not in known:
                raise BadInput(f"{where}: there is no clause {check.clause}")
            _check_pattern(where, check.is_)


def _check_pattern(where: str, pattern: Any) -> None:
    if isinstance(pattern, tuple):
        for one in pattern:
            _check_pattern(where, one)
    elif isinstance(pattern, m.Predicate):
        try:
            _, content = content_of(pattern)
        except BadInput as error:
            raise BadInput(f"{where}: {error}") from None
        _check_pattern(where, content)


def _read(path: Path, kind: Any) -> Any:
    return _decode(path, _bytes(path), kind)


def _bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror or error}") from None
    if len(data) > MOST_BYTES:
        raise BadInput(f"{path}: expected at most {MOST_BYTES} bytes, got more")
    return data


def _decode(path: Path, data: bytes, kind: Any) -> Any:
    """The file, if its format is the one that this kvspec knows."""
    try:
        said = msgspec.json.decode(data)
    except (UnicodeDecodeError, msgspec.MsgspecError, RecursionError) as error:
        raise BadInput(f"{path}: expected JSON, got none: {error}") from None
    version = said.get("format") if isinstance(said, dict) else None
    if version != m.FORMAT:
        got = "none" if version is None else ascii(version)[:80]
        raise BadInput(f"{path}: format: expected {m.FORMAT}, got {got}; write the folder anew")
    try:
        return msgspec.convert(said, kind, str_keys=True)
    except RecursionError:
        raise BadInput(f"{path}: expected flat fields, got deeply nested ones") from None
    except msgspec.ValidationError as error:
        raise BadInput(f"{path}: {_explain(str(error))}") from None


def _explain(text: str) -> str:
    """Where in the file, and what was expected there.

    >>> _explain("Expected `int`, got `str` - at `$.steps[0].forget`")
    'steps[0].forget: expected int, got str'
    """
    what, _, at = text.replace("`", "").partition(" - at ")
    return f"{at.lstrip('$.')}: {what[0].lower()}{what[1:]}".removeprefix(": ")
