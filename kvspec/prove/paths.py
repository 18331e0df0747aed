"""A few paths through a world that show all that it can show: what vectors are made of."""

from __future__ import annotations

from pathlib import Path

from kvspec.codec import trace_text
from kvspec.errors import BadInput
from kvspec.files import write_whole

from .node import Cover
from .search import Explored, Walk


def covering(explored: Explored) -> list[Walk]:
    """Walks that together cover every (event, clause, branch) of the graph, each needed.

    The walk that shows most of what is left is taken again and again; ties go to the one found
    first. Then any whose share the others cover is left out.
    """
    walks = list(dict.fromkeys(explored.covers.values()))
    left, chosen = set(explored.covers), list[Walk]()
    while left:
        best = max(walks, key=lambda walk: len(left & walk.covered))
        left -= best.covered
        chosen.append(best)
    for walk in list(chosen):
        others: set[Cover] = set().union(*(w.covered for w in chosen if w is not walk))
        if walk.covered <= others:
            chosen.remove(walk)
    return chosen


def write_paths(explored: Explored, folder: Path) -> list[Path]:
    """Write each walk as a trace that `kvspec replay` takes. Raises `BadInput`."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"--paths {folder}: cannot be made: {error.strerror or error}") from None
    places = []
    for number, walk in enumerate(covering(explored), start=1):
        place = folder / f"{explored.world.id}-{number:02}.jsonl"
        write_whole(place, trace_text((explored.world.config, *walk.events)))
        places.append(place)
    return places
