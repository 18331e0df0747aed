"""Files: read line by line and strictly, written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from .errors import BadInput

MAX_LINE = 16 * 2**20
"""Bytes of the longest line that is read: enough for a prompt of a million tokens."""

AnyPath = str | os.PathLike[str]


def read_lines(path: AnyPath) -> Iterator[tuple[str, Any]]:
    """Each line's place, in words, and its JSON value. Raises `BadInput`."""
    try:
        with open(path, "rb") as file:
            number = 0
            while line := file.readline(MAX_LINE + 1):
                number += 1
                where = f"{path} line {number}"
                if len(line) > MAX_LINE:
                    raise BadInput(f"{where}: expected at most {MAX_LINE} bytes, got more")
                yield where, _decode(line, where)
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:  # a path with a null byte
        raise BadInput(f"{path!r}: cannot be read: {error}") from None


def _decode(line: bytes, where: str) -> Any:
    try:
        line.decode()
        return msgspec.json.decode(line)
    except UnicodeDecodeError as error:
        raise BadInput(f"{where}: expected UTF-8, got byte {line[error.start]:#04x}") from None
    except (msgspec.MsgspecError, RecursionError) as error:
        cut = not line.endswith(b"\n")
        what = "the line is cut off" if cut else str(error).splitlines()[0]
        raise BadInput(f"{where}: expected one JSON object, got none: {what}") from None


def write_whole(path: AnyPath, text: str) -> None:
    """Write a file beside its place, then rename: whoever reads it finds all of it or none."""
    place = Path(path).resolve()
    try:
        handle, beside = tempfile.mkstemp(prefix=f".{place.name[:80]}.", dir=place.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(beside, 0o666 & ~_umask())
            os.replace(beside, place)
        except BaseException:
            Path(beside).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise BadInput(f"{path}: cannot be written: {error.strerror or error}") from None


def require_writable(option: str, path: AnyPath) -> None:
    """Refuse a place for a file that could not be written there, before any work is done."""
    try:
        place = Path(path).resolve()
        if place.is_dir():
            raise BadInput(f"{option} {path}: is a folder; name a file")
        if place.exists() and not place.is_file():
            raise BadInput(f"{option} {path}: is no regular file; name one")
        if not place.parent.is_dir():
            folder = Path(path).parent
            raise BadInput(f"{option} {path}: there is no folder {folder}; make it first")
        with tempfile.TemporaryFile(dir=place.parent):
            pass
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise BadInput(f"{option} {path}: cannot be written: {reason}") from None


def require_apart(paths: dict[str, AnyPath | None]) -> None:
    """Refuse two options that name one file: the later would be written over the earlier."""
    seen: dict[Path, str] = {}
    for option, path in paths.items():
        if path is None:
            continue
        other = seen.setdefault(Path(path).resolve(), option)
        if other != option:
            raise BadInput(f"{option} {path}: is the same file as {other}; name another")


def require_folder(option: str, path: AnyPath) -> None:
    """Refuse a place for a folder that could not be made there, before any work is done."""
    place = Path(path).absolute()
    above = next(p for p in (place, *place.parents) if p.exists())
    if not above.is_dir():
        raise BadInput(f"{option} {path}: {above} is a file; name a folder")
    if not os.access(above, os.W_OK | os.X_OK):
        raise BadInput(f"{option} {path}: nothing can be written in {above}")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
