"""`make mutation`: mutate, hunt, and hold what survives against the reasons.

    python -m tests.mutation                                  # everything: an hour or more
    python -m tests.mutation --package spec --module lookup   # one module
    python -m tests.mutation --results FILE                   # go on where FILE ends

Exit status: 0 all well, 1 a survivor without a reason, a stale reason or a score below 90 %, 2 what
was asked for cannot be done.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from .hunt import Result, Unsound, all_of, hunt_all
from .mutants import modules
from .report import Unusable, as_line, as_markdown, read_reasons, read_results, report, verdict

PACKAGES = ("optimized", "spec")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        print(f"mutation: {message}", file=sys.stderr)
        raise SystemExit(2)


def main(arguments: list[str]) -> int:
    """Run the command; its exit status."""
    # Here and not above: a process that hunts imports this module too, and must load nothing early.
    from kvspec.errors import BadInput
    from kvspec.files import require_writable, write_whole
    from kvspec.mutants.hunt import cores

    parser = _Parser("python -m tests.mutation", description="Mutate, and hunt the mutants.")
    parser.add_argument("--package", choices=PACKAGES, help="only this one")
    parser.add_argument("--module", action="append", default=[], help="only this one of it")
    parser.add_argument("--workers", type=int, default=0, help="processes; 0 for one a core")
    parser.add_argument("--results", type=Path, help="a line of JSON a mutant, as it is hunted")
    parser.add_argument("--markdown", type=Path, help="write the page of the book")
    asked = parser.parse_args(arguments)
    packages = (asked.package,) if asked.package else PACKAGES
    for name in asked.module:
        if len(packages) > 1 or name not in modules(packages[0]):
            parser.error(f"--module {name}: expected --package and a module of it that is mutated")
    if asked.workers < 0:
        parser.error(f"--workers must be at least 0, got {asked.workers}")
    results: list[Result] = []
    try:
        for option, path in (("--results", asked.results), ("--markdown", asked.markdown)):
            if path is not None:
                require_writable(option, path)
        reasons = read_reasons()
        known = read_results(asked.results) if asked.results and asked.results.exists() else {}
        for package in packages:
            mutants = all_of(package, asked.module)
            left = [mutant for mutant in mutants if mutant.key not in known]
            log = _logger(asked.results, len(left))
            hunted = hunt_all(package, left, asked.workers or cores(), log)
            found = {result.mutant.key: result for result in hunted}
            results += [found.get(m.key) or Result(m, known.get(m.key)) for m in mutants]
    except (BadInput, Unusable, Unsound) as error:
        parser.error(str(error))
    told = report(results, reasons)
    if asked.markdown is not None:
        write_whole(asked.markdown, as_markdown(told, _command(packages, asked.module)))
    for complaint in told.complaints:
        print(complaint)
    print(verdict(told))
    return 1 if told.complaints else 0


def _logger(path: Path | None, total: int) -> Callable[[Result], None]:
    """Keeps each result as it comes, and says on a terminal how many there are."""
    done = 0

    def log(result: Result) -> None:
        nonlocal done
        done += 1
        if path is not None:
            with path.open("a", encoding="utf-8") as file:
                file.write(as_line(result))
        if sys.stderr.isatty():
            print(f"{done}/{total} {result.mutant}", file=sys.stderr)

    return log


def _command(packages: tuple[str, ...], names: list[str]) -> str:
    words = ["python -m tests.mutation"]
    words += [f"--package {packages[0]}"] if len(packages) == 1 else []
    return " ".join([*words, *(f"--module {name}" for name in names)])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
