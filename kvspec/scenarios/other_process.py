"""The same few events in another process, with another seed of Python's own hash.

    python -m kvspec.scenarios.other_process TARGET

prints the keys that the target shows.
"""

from __future__ import annotations

import os
import subprocess
import sys

import msgspec

from kvspec.spec import events as ev
from kvspec.spec.case import Ledger
from kvspec.spec.types import Adapter, Identity
from kvspec.targets import TIME_LIMIT, find_factory

from .play import P6, Play, Unsupported, cache, full, mamba

ShownKeys = list[tuple[int, str]]
"""(group, what the target calls the digest), sorted."""

IDENTITY = Identity(salt="a", adapter=Adapter("b", 1))


def show_keys(play: Play) -> ShownKeys:
    """What the keys of one prompt with an identity are called."""
    play.start(cache(full(2), mamba(4)))
    play.prefill("a", P6, identity=IDENTITY)
    books = play.session.target.ask(ev.Snapshot())
    assert isinstance(books, ev.Books)
    shown = books.keys or {}
    return sorted((int(group), name) for keys in shown.values() for group, name in keys)


def show_keys_elsewhere(target: str) -> ShownKeys:
    """As `show_keys`, in a child. Raises `Unsupported` where it cannot make the target."""
    seed = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    command = [sys.executable, "-m", __name__, target]
    path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
    try:
        child = subprocess.run(
            command,
            capture_output=True,
            timeout=6 * TIME_LIMIT,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": path},
        )
        return msgspec.json.decode(child.stdout.splitlines()[-1], type=ShownKeys)
    except (OSError, subprocess.SubprocessError, msgspec.MsgspecError, IndexError) as error:
        raise Unsupported("another process could not make the target by its name") from error


def main() -> None:
    """Print the keys, the last line of standard output."""
    target = sys.argv[1]
    keys = show_keys(Play(target, find_factory(target), None, Ledger()))
    print(msgspec.json.encode(keys).decode())


if __name__ == "__main__":
    main()
