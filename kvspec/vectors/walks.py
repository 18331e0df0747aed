"""Walks through the tiny worlds that show all that each of them can show (`kvspec.prove.paths`).

To find them every state has to be visited, which takes a minute, so they are kept in `walks.json`;
the test that exhausts the worlds compares. `python -m kvspec.vectors.walks` writes the file anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec

from kvspec.codec import event_from_json, event_to_json
from kvspec.failure import find_subject
from kvspec.files import write_whole
from kvspec.prove.paths import covering
from kvspec.prove.search import cores, explore
from kvspec.prove.worlds import SMALL, WORLDS
from kvspec.spec import events as ev

Walks = Mapping[str, list[tuple[ev.Event, ...]]]
"""By world the events of each walk, the configuration first."""

NAME = "walks.json"


def walks() -> Walks:
    """Those that are kept."""
    data = msgspec.json.decode((resources.files(__package__) / NAME).read_bytes())
    return {world: [tuple(_walk(world, walk)) for walk in kept] for world, kept in data.items()}


def _walk(world: str, events: Iterable[Any]) -> Iterable[ev.Event]:
    yield WORLDS[world].config
    for event in events:
        yield event_from_json(event, NAME)


def as_kept(found: Iterable[tuple[ev.Event, ...]]) -> list[list[dict[str, Any]]]:
    """Walks of one world, without its configuration, as the file has them."""
    return [[event_to_json(event) for event in events] for events in found]


def main() -> None:
    """Visit every state of the small worlds and write the walks."""
    lines = []
    for world in SMALL:
        explored = explore(world, find_subject("optimized"), workers=cores())
        kept = as_kept(walk.events for walk in covering(explored))
        rows = ",\n  ".join(msgspec.json.encode(walk).decode() for walk in kept)
        lines.append(f' "{world.id}": [\n  {rows}\n ]')
    write_whole(Path(__file__).with_name(NAME), "{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
