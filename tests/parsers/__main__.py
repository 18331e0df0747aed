"""Search for an input that nobody should be able to trip us with: `make fuzz-parsers`.

Each entry is searched in a process of its own by libFuzzer (package atheris), guided by the lines
of kvspec that an input reaches. An input that raises, takes 10 seconds or needs more than 1 GiB
ends the search of its entry and is kept. Exit status 1 when there is one.
"""

from __future__ import annotations

import re
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

SLOWEST, MOST_MEMORY = 10, 1024
"""Seconds and MiB that one input may take."""


def search(name: str, options: list[str]) -> None:
    """The whole life of a process that searches one entry; libFuzzer ends it."""
    atheris: Any = import_module("atheris")
    with atheris.instrument_imports(include=["kvspec"]):
        from kvspec import targets

        from .entries import ENTRIES
    from .change import changed

    targets._limited = lambda call, target, event: call()  # libFuzzer needs the alarm

    def mutate(data: bytes, most: int, seed: int) -> bytes:
        rng = Random(seed)
        return changed(data, rng)[:most] if rng.randrange(4) else atheris.Mutate(data, most)

    def one(data: bytes) -> None:
        entry.feed(data)

    entry = ENTRIES[name]
    corpus = Path(options[-1])
    for number, seed in enumerate(entry.seeds()):
        (corpus / f"seed{number}").write_bytes(seed)
    atheris.Setup([name, *options], one, custom_mutator=mutate)
    atheris.Fuzz()


def run(name: str, given: Namespace) -> tuple[str, bool]:
    """Search one entry; a line that tells of it, and whether nothing was found."""
    folder = Path(given.folder) / name
    corpus = folder / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    options = [
        f"-max_total_time={given.seconds}",
        f"-seed={given.seed + 1}",
        f"-timeout={SLOWEST}",
        f"-rss_limit_mb={MOST_MEMORY}",
        f"-artifact_prefix={folder}/",
        "-max_len=65536",
        "-print_final_stats=1",
        str(corpus),
    ]
    command = [sys.executable, "-m", "tests.parsers", "--search", name, *options]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    said = done.stdout + done.stderr
    (folder / "log.txt").write_text(said)
    inputs, memory = (
        int(found[1]) if (found := re.search(rf"stat::{stat}:\s+(\d+)", said)) else 0
        for stat in ("number_of_executed_units", "peak_rss_mb")
    )
    fine = done.returncode == 0 and inputs > 0
    told = "nothing found" if fine else f"FOUND, see {folder}/log.txt"
    return f"{name:10} {inputs:9,} inputs, at most {memory} MiB: {told}", fine


def main() -> int:
    """Search all entries, two at a time."""
    if sys.argv[1:2] == ["--search"]:
        search(sys.argv[2], sys.argv[3:])
        return 0
    from .entries import ENTRIES  # a search imports it by itself, to see which lines are reached

    parser = ArgumentParser(prog="python -m tests.parsers", description=__doc__)
    parser.add_argument("--seconds", type=int, default=600, help="for each entry")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", default=".venv/parsers", help="for inputs, found ones and logs")
    parser.add_argument("names", nargs="*", metavar="ENTRY", help=f"out of {', '.join(ENTRIES)}")
    given = parser.parse_args()
    if unknown := set(given.names) - set(ENTRIES):
        parser.error(f"there is no entry {min(unknown)}; choose from {', '.join(ENTRIES)}")
    with ThreadPoolExecutor(2) as both:
        told = list(both.map(lambda name: run(name, given), given.names or ENTRIES))
    print("\n".join(line for line, _ in told))
    return 0 if all(fine for _, fine in told) else 1


if __name__ == "__main__":
    sys.exit(main())
