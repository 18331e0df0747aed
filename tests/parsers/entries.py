"""What is read from outside, and what must hold of any input.

An entry is fed bytes. It may refuse them with an error meant for the user, in one printable line;
whatever else it raises is a fault of ours. Where the input is taken, what it says is carried out:
our own managers then have to conform.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import msgspec

from kvspec.codec import read_trace, trace_text
from kvspec.errors import ClauseBroken, InvalidInput, KvspecError
from kvspec.explain import explain
from kvspec.failure import Failure, Subject, find_subject, pytest_text, tell
from kvspec.files import MAX_LINE, write_whole
from kvspec.memory import StoreKind
from kvspec.recorded import is_recorded, probe_target, replay_recorded
from kvspec.replay import replay_config, replay_workload
from kvspec.scenarios import SCENARIOS, run_scenario
from kvspec.session import Session
from kvspec.spec import events as ev
from kvspec.spec.types import Config
from kvspec.targets import find_factory
from kvspec.vectors.folder import INVALIDATED, MANIFEST, files_of, read_folder
from kvspec.vectors.play import play
from kvspec.vectors.sources import vectors
from kvspec.wire import engine, faults
from kvspec.wire import messages as m
from kvspec.wire.serve import Server, serve
from kvspec.workload import generated_workload, read_workload

MOST_BLOCKS, MOST_LENGTH, MOST_TOKENS = 4096, 2**14, 2**14
"""Of a cache and of a workload that are carried out: larger ones are only slow."""

LONGEST = 20_000
"""Characters of an error: it may show what a target said, up to a limit."""

FOLDER = TemporaryDirectory(prefix="kvspec-parsers.")
PLACE = Path(FOLDER.name)
OURS = find_subject("optimized", store=StoreKind.PLAIN)


class Unseemly(AssertionError):
    """An error that is not one printable line, or an answer that is none."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A place where bytes come in. `seeds` are good inputs; `feed` raises for a fault of ours.

    `feed` returns whether the input was taken.
    """

    name: str
    feed: Callable[[bytes], bool]
    seeds: Callable[[], list[bytes]]


def seemly(error: KvspecError | InvalidInput) -> None:
    """An error's text is one printable line that ends. Raises `Unseemly`."""
    text = str(error)
    if not text or len(text) > LONGEST or not text.isprintable():
        raise Unseemly(f"of {type(error).__name__}: {text[:500]!a}") from error


def _refuses(feed: Callable[[bytes], None]) -> Callable[[bytes], bool]:
    """The feed of an entry from one that raises what is meant for the user."""

    def taken(data: bytes) -> bool:
        try:
            feed(data)
        except (KvspecError, InvalidInput) as error:
            seemly(error)
            return False
        return True

    return taken


def _small(config: Config) -> bool:
    return config.num_blocks <= MOST_BLOCKS and config.max_model_len <= MOST_LENGTH


# --- files ----------------------------------------------------------------------------------------


@cache
def _dialogues() -> tuple[tuple[ev.Event, ...], ...]:
    """The events of some scenarios, the configuration first; together they have every kind."""
    factory, found, kinds = find_factory("reference"), [], set[type]()
    for scenario in SCENARIOS.values():
        session = run_scenario(scenario, "reference", factory, store=StoreKind.PLAIN).session
        if more := set(map(type, session.events)) - kinds:
            kinds |= more
            found.append((session.config, *session.events))
    return tuple(found)


def _trace(data: bytes) -> None:
    """A file for `kvspec replay` and `kvspec explain`: taken, it is judged."""
    path = PLACE / "trace.jsonl"
    path.write_bytes(data)
    if not is_recorded(path):
        return _workload(data)
    events = read_trace(path)
    config = events[0]
    assert isinstance(config, Config)
    again = PLACE / "again.jsonl"
    write_whole(again, trace_text(events))
    assert read_trace(again) == events
    if not _small(config):
        return
    replay_recorded(path, events, OURS)
    for event in events:
        if isinstance(event, ev.Submit):
            explain(path, events, event.request, OURS)
            break


def _trace_seeds() -> list[bytes]:
    return [trace_text(events).encode() for events in _dialogues()]


def _workload(data: bytes) -> None:
    path = PLACE / "workload.jsonl"
    path.write_bytes(data)
    arrivals = list(read_workload(path, 50))
    if sum(a.input_length + a.output_length for a in arrivals) <= MOST_TOKENS:
        config = replay_config(blocks=64, max_model_len=MOST_TOKENS)
        replay_workload(arrivals, "optimized", find_factory("optimized"), config)


def _workload_seeds() -> list[bytes]:
    lines = [msgspec.json.encode(arrival) for arrival in generated_workload(0, 3)]
    return [b"\n".join(lines[n : n + 3]) for n in range(0, len(lines), 3)]


def _vectors(data: bytes) -> None:
    """A folder of one case. The first byte says which case, and which file the rest of it is."""
    which, data = (data[:1] or b"\x00")[0], data[1:]
    texts = {name: text.encode() for name, text in _folders()[which // 4 % len(_folders())].items()}
    name = (*texts, [*texts][2])[which % 4]
    if name not in (MANIFEST, INVALIDATED):
        before, after = sha256(texts[name]).hexdigest(), sha256(data).hexdigest()
        texts[MANIFEST] = texts[MANIFEST].replace(before.encode(), after.encode())
    texts[name] = data
    place = PLACE / "vectors"
    for path, text in texts.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_bytes(text)
    for case in read_folder(place).cases:
        if case.configuration.num_blocks <= MOST_BLOCKS:
            play(case, "reference", find_factory("reference"))


@cache
def _folders() -> list[dict[str, str]]:
    return [files_of([case]) for case in vectors()[::12]]


def _vector_seeds() -> list[bytes]:
    cases = [
        bytes([4 * number + 2]) + list(texts.values())[2].encode()
        for number, texts in enumerate(_folders())
    ]
    manifest, invalidated, *_ = _folders()[0].values()
    return [b"\x00" + manifest.encode(), b"\x01" + invalidated.encode(), *cases]


# --- the wire, both directions --------------------------------------------------------------------


class _Modest:
    """The optimized manager, for caches that are not only large."""

    def __init__(self) -> None:
        self.manager: Any = find_factory("optimized")()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.manager, name)

    def configure(self, config: Config) -> ev.Capabilities:
        if not _small(config):
            raise ev.Rejected("it is too large")
        found: ev.Capabilities = self.manager.configure(config)
        return found


def _questions(data: bytes) -> None:
    """What an engine that kvspec serves is asked: one answer a line, each of the published form."""
    capabilities = probe_target(Subject("modest", _Modest)).capabilities
    questions, answers = BytesIO(data), BytesIO()
    serve(Server("modest", _Modest, capabilities), questions, answers)
    asked = data[: questions.tell()].removesuffix(b"\n").split(b"\n") if questions.tell() else []
    said = answers.getvalue().splitlines()
    if len(said) != len(asked):
        raise Unseemly(f"{len(said)} answers to {len(asked)} lines")
    for line, answer in zip(asked, said, strict=True):
        field, value = m.read_answer(answer, _name(line) if b"result" in answer else "stop", True)
        if field != "result" and not (value and len(value) <= m.MOST_SAID):
            raise Unseemly(f"{field}: {ascii(value)[:500]}")


def _name(line: bytes) -> str:
    name: str = json.loads(line)["event"]
    return name


def _question_seeds() -> list[bytes]:
    seeds = []
    for events in _dialogues():
        lines = [m.START, *map(m.event_line, events), m.STOP]
        seeds.append(b"\n".join(lines) + b"\n")
    return seeds


class _Scripted:
    """A child that says the lines of an input, whatever it is asked."""

    def __init__(self, target: str, lines: list[bytes]) -> None:
        self.target, self.lines, self.step = target, lines, "start"
        self.usable = True

    def exchange(self, line: bytes, step: str, seconds: float) -> bytes:
        self.step = step
        if not self.lines:
            raise self.fault(faults.DIED, "exit status 0")
        answer = self.lines.pop(0)
        if len(answer) > MAX_LINE:
            raise self.fault(faults.FLOODED)
        return answer

    def fault(self, fault: faults.Fault, detail: str = "") -> faults.WireFault:
        self.usable = False
        return faults.WireFault(self.target, self.step, fault, detail, "")

    def kill(self) -> None:
        self.usable = False


def _answers(data: bytes) -> None:
    """What an engine says to a fixed dialogue, which the first byte picks: told, or judged."""
    which, *lines = data[:1] or b"\x00", *data[1:].split(b"\n")
    config, *events = _dialogues()[which[0] // 2 % len(_dialogues())]
    assert isinstance(config, Config)
    target = "cmd:--strict scripted" if which[0] % 2 else "cmd:scripted"
    pool = engine.Pool(engine.parse_command(target))
    with patch.object(engine, "Child", lambda name, _: _Scripted(name, lines)):
        try:
            session = Session(target, pool, config, store=StoreKind.PLAIN)
            for event in events:
                if not session.lacks(event):
                    session.send(event)
        except ClauseBroken as broken:
            _told(Failure(broken.violation, broken.events, broken.observations), target)


def _told(failure: Failure, target: str) -> None:
    """A failure can be told, kept and read again, whatever was observed."""
    subject = Subject(target, find_factory("reference"))
    tell(failure, subject)
    compile(pytest_text(failure, subject), "test", "exec")
    path = PLACE / "failure.jsonl"
    write_whole(path, trace_text(failure.events, failure.observations))
    assert tuple(read_trace(path)) == failure.events


def _answer_seeds() -> list[bytes]:
    """The dialogues as kvspec serves the optimized manager, snapshots between."""
    seeds = []
    for number, (config, *rest) in enumerate(_dialogues()):
        server = Server(OURS.target, OURS.factory, probe_target(OURS).capabilities)
        asked = [m.START, m.event_line(config)]
        for event in rest:
            asked += [m.event_line(event), m.event_line(ev.Snapshot())]
        text = b"\n".join(msgspec.json.encode(server.answer(line)) for line in asked)
        seeds += [bytes([2 * number]) + text, bytes([2 * number + 1]) + text]
    return seeds


ENTRIES = {
    entry.name: entry
    for entry in (
        Entry("trace", _refuses(_trace), _trace_seeds),
        Entry("workload", _refuses(_workload), _workload_seeds),
        Entry("vectors", _refuses(_vectors), _vector_seeds),
        Entry("questions", _refuses(_questions), _question_seeds),
        Entry("answers", _refuses(_answers), _answer_seeds),
    )
}
