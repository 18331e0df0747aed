"""A folder of vectors: written whole, always the same, never over anything else; read strictly."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kvspec.vectors.folder import INVALIDATED, MANIFEST, case_text, read_folder, write_folder
from kvspec.vectors.model import FORMAT, Case, vector_schema
from kvspec.vectors.sources import vectors
from tests.cli.run import ROOT, run, start

S7 = Path("small/worked/S7.json")


def few() -> tuple[Case, ...]:
    """Two cases; they are not made before a test asks."""
    return tuple(case for case in vectors() if case.id in ("small/worked/S7", "tiny/pair/08"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two cases."""
    write_folder(tmp_path / "vectors", few())
    return tmp_path / "vectors"


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


# --- writing --------------------------------------------------------------------------------------


def test_what_is_written_is_read_again(folder: Path) -> None:
    read = read_folder(folder)
    assert (read.cases, read.invalid) == (few(), {})
    assert set(contents(folder)) == {MANIFEST, INVALIDATED, *(f"{case.id}.json" for case in few())}


def test_the_command_writes_the_same_bytes_in_every_process(tmp_path: Path) -> None:
    steps = sum(len(case.steps) for case in vectors())
    for name in ("one", "two"):
        ran = start("vectors", "write", tmp_path / name)
        assert ran.status == 0, ran
        assert ran.verdict.endswith(f"/{name}: {len(vectors())} vectors, {steps} steps ({FORMAT})")
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_an_older_folder_gives_way_and_an_empty_one(tmp_path: Path, folder: Path) -> None:
    write_folder(folder, few()[:1])
    assert [case.id for case in read_folder(folder).cases] == ["small/worked/S7"]
    (tmp_path / "empty").mkdir()
    write_folder(tmp_path / "empty", few())
    assert len(read_folder(tmp_path / "empty").cases) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "vectors"]


@pytest.mark.parametrize("name", ["notes.txt", "small/worked/mine.json", MANIFEST])
def test_a_folder_of_something_else_is_left_alone(tmp_path: Path, folder: Path, name: str) -> None:
    place = folder if name != MANIFEST else tmp_path / "other"
    (place / name).parent.mkdir(parents=True, exist_ok=True)
    (place / name).write_text("{}")
    before = contents(place)
    assert run("vectors", "write", place).is_refused()
    assert contents(place) == before
    assert not list(tmp_path.glob(".*"))


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    assert run("vectors", "write", tmp_path / "file").is_refused()
    assert run("vectors", "run", tmp_path / "file").is_refused()
    assert (tmp_path / "file").read_text() == "mine"


# --- reading --------------------------------------------------------------------------------------

Change = Callable[[dict[str, Any]], None]


def rewrite(folder: Path, change: Change, path: Path = S7) -> None:
    """Change a file, and the digest that the manifest has of a case."""
    data = json.loads((folder / path).read_text())
    change(data)
    text = json.dumps(data)
    (folder / path).write_text(text)
    if path == S7:
        manifest = json.loads((folder / MANIFEST).read_text())
        for listed in manifest["cases"]:
            if listed["path"] == path.as_posix():
                listed["sha256"] = hashlib.sha256(text.encode()).hexdigest()
        (folder / MANIFEST).write_text(json.dumps(manifest))


def put(*path: str | int, value: Any) -> Change:
    """Set one value."""

    def change(data: Any) -> None:
        for part in path[:-1]:
            data = data[part]
        data[path[-1]] = value

    return change


ALLOWED = ("steps", 2, "allowed", 0)
PLACES = {"field": "refcounts", "is": {"places": [[0, "$1"]]}, "clause": "REF.COUNT"}
BAD_CASES: dict[str, tuple[Change, str]] = {
    "another format": (put("format", value="kvspec-vectors/9"), "expected kvspec-vectors/1"),
    "an unknown field": (put("colour", value=1), "unknown field colour"),
    "an unknown event": (put("steps", 0, "event", "event", value="dance"), "'dance'"),
    "a number for a name": (put("steps", 0, "forget", value=[3]), "steps[0].forget[0]: expected"),
    "an unknown predicate": (put(*ALLOWED, "is", value={"about": 3}), "unknown field about"),
    "two predicates": (
        put(*ALLOWED, "is", value={"fresh": "$1", "distinct": True}),
        "exactly one of one_of, fresh",
    ),
    "none": (put(*ALLOWED, "is", value={"one_of": [{"clause": "A.B"}]}), "got none"),
    "an unknown clause": (put(*ALLOWED, "clause", value="NO.SUCH"), "no clause NO.SUCH"),
    "an unknown field of the answer": (put(*ALLOWED, "field", value="mood"), "no field mood"),
    "an unbound name": (put(*ALLOWED, "is", value="$99"), "$99 stands for no block"),
    "a predicate that does not fit": (put(*ALLOWED, "is", value={"shape": []}), "cannot be said"),
    "places in a mapping": (
        put("steps", 3, "books", 0, value=PLACES),
        "cannot be said",
    ),
    "a bad configuration": (put("configuration", "num_blocks", value=1), "configuration"),
    "a bad size": (put("configuration", "hash_unit", value=3), "block_size must be a multiple"),
}


@pytest.mark.parametrize("what", BAD_CASES)
def test_a_bad_case_is_refused(folder: Path, what: str) -> None:
    change, said = BAD_CASES[what]
    rewrite(folder, change)
    ran = run("vectors", "run", folder)
    assert ran.is_refused()
    assert said in ran.stderr
    assert f"{folder / S7}: " in ran.stderr


def test_damage_is_told(folder: Path) -> None:
    damaged = {
        S7: ("is not as manifest.json has it (sha256)", b"{}"),
        Path(MANIFEST): ("expected JSON, got none", b'{"format": '),
        Path(INVALIDATED): ("expected JSON, got none", b"\xff"),
    }
    for path, (said, data) in damaged.items():
        copied = folder.with_name(f"of {path.name}")
        shutil.copytree(folder, copied)
        (copied / path).write_bytes(data)
        ran = run("vectors", "run", copied)
        assert ran.is_refused()
        assert said in ran.stderr
        (copied / path).unlink()
        ran = run("vectors", "run", copied)
        assert ran.is_refused()
        assert path.name in ran.stderr


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (put("cases", 0, "path", value="../../etc/passwd"), "expected the path small/worked/S7"),
        (put("cases", value=[]), "expected at least one"),
        (put("format", value=1), "format: expected kvspec-vectors/1, got 1"),
        (put("cases", 0, "id", value="tiny/pair/09"), "expected the path tiny/pair/09.json"),
    ],
)
def test_a_bad_manifest_is_refused(folder: Path, change: Change, said: str) -> None:
    rewrite(folder, change, Path(MANIFEST))
    ran = run("vectors", "run", folder)
    assert ran.is_refused()
    assert said in ran.stderr


def test_a_case_that_was_found_wrong_is_passed_over(folder: Path) -> None:
    wrong = [{"id": "small/worked/S7", "why": "the wrong block"}]
    rewrite(folder, put("invalidated", value=wrong), Path(INVALIDATED))
    ran = run("vectors", "run", folder)
    assert ran.status == 0
    assert "invalidated: the wrong block" in ran.stdout
    assert "1 of 2 vectors passed, 1 passed over" in ran.verdict
    rewrite(folder, put("invalidated", 0, "id", value="tiny/a/1"), Path(INVALIDATED))
    ran = run("vectors", "run", folder)
    assert ran.is_refused()
    assert "there is no case tiny/a/1" in ran.stderr


# --- the documents --------------------------------------------------------------------------------


def test_the_published_schema_is_that_of_the_code() -> None:
    published = json.loads((ROOT / "kvspec" / "schema" / "vector.json").read_text())
    assert published == json.loads(msgspec.json.encode(vector_schema())), (
        "run: python -m kvspec.vectors.model kvspec/schema"
    )


def test_the_format_document_shows_a_case_as_it_is() -> None:
    document = (ROOT / "docs" / "vectors.md").read_text()
    text = case_text(few()[1])
    assert f"```json\n{text}```" in document
    assert msgspec.json.decode(text, type=Case) == few()[1]
    predicates = vector_schema()["$defs"]["Predicate"]["properties"].keys() - {"clause"}
    assert all(f'| `{{"{name}":' in document for name in predicates)
    steps = sum(len(case.steps) for case in vectors())
    assert f"{len(vectors())} cases, {steps:,} steps" in document


def test_ids_differ_and_clauses_are_those_of_the_checks() -> None:
    ids = [case.id for case in vectors()]
    assert len(set(ids)) == len(ids)
    assert all(case.refused in case.clauses for case in vectors() if case.refused)
