"""The command line: a function for each command, which reads options and prints.

Exit status: 0 conforms; 1 a clause is broken; 2 the command, the input or the target could not be
used. The last line on standard output is a one-line verdict; errors are one line on standard error.
"""

from __future__ import annotations

import math
import os
import shlex
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress
from typer.core import TyperGroup

from kvspec.spec.clauses import Profile

from . import check as checks
from . import explain as explaining
from . import replays
from . import report as rep
from .bench import copy as copies
from .bench import wire
from .codec import read_trace
from .errors import BadInput, ClauseBroken, KvspecError, TargetHung
from .failure import FOLDER, find_subject
from .files import require_apart, require_folder, require_writable, write_whole
from .memory import StoreKind
from .prove import proof, search, worlds
from .wire import smoke as smokes
from .wire.engine import strictly

UNUSABLE, INTERRUPTED = 2, 130
"""Exit statuses besides those of a verdict."""


class _Commands(TyperGroup):
    """Ends every command with a verdict line and an exit status, whatever happened in it."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command line."""
        try:
            status = super().main(
                args, prog_name, complete_var, False, windows_expand_args, **extra
            )
        except (KvspecError, TargetHung) as error:
            status = _unusable(str(error))
        except (KeyboardInterrupt, typer.Abort):
            status = INTERRUPTED
        except BrokenPipeError:  # whoever read our output is gone
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            status = UNUSABLE
        except Exception as error:
            status = _unusable(_usage(error) or _internal(error))
        if status == INTERRUPTED:
            print("unusable: interrupted before a verdict", flush=True)
        if not standalone_mode:
            return status
        sys.exit(status or 0)


def _unusable(reason: str) -> int:
    reason = " ".join(reason.split())
    print(f"kvspec: {reason}", file=sys.stderr)
    print(f"unusable: {reason}", flush=True)
    return UNUSABLE


def _usage(error: Exception) -> str:
    """What typer says of a command line that it cannot read, or nothing."""
    told = getattr(error, "format_message", None)
    return f"{told()} (see kvspec --help)" if told else ""


def _internal(error: Exception) -> str:
    traceback.print_exception(error)
    return f"an error in kvspec itself, please report it: {type(error).__name__}: {error}"


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=False,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Hold a paged KV-cache with prefix sharing to its executable specification.",
)


def main() -> None:
    """Run the command line of this process."""
    app()


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"kvspec {rep.VERSION}")
        raise typer.Exit


@app.callback()
def kvspec(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show it.")
    ] = False,
) -> None:
    """Hold a paged KV-cache with prefix sharing to its executable specification."""


TargetOption = Annotated[
    str,
    typer.Option(
        help="optimized, reference, package.module:factory, or cmd:PROGRAM ARGS.", metavar="T"
    ),
]
StrictOption = Annotated[
    bool, typer.Option("--strict", help="Hold the answers of a program to the published schema.")
]
ProfileOption = Annotated[
    Profile | None,
    typer.Option(help="What to hold it to; by default all that the target shows."),
]
StoreOption = Annotated[
    StoreKind,
    typer.Option(help="What moves bytes beside the plain worker; auto: torch where installed."),
]


@app.command()
def check(
    target: TargetOption = "optimized",
    profile: ProfileOption = None,
    store: StoreOption = StoreKind.AUTO,
    examples: Annotated[
        int, typer.Option(min=1, max=10**6, help="Runs of the machine.")
    ] = checks.EXAMPLES,
    max_seconds: Annotated[float | None, typer.Option(help="Stop after this long.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="The same seed, the same check.")] = 0,
    json: Annotated[Path | None, typer.Option(help="Write the report as JSON.")] = None,
    junit: Annotated[Path | None, typer.Option(help="Write the report as JUnit XML.")] = None,
    failures: Annotated[Path, typer.Option(help="Where failures are kept.")] = FOLDER,
    strict: StrictOption = False,
    gate: Annotated[
        bool, typer.Option(help="Refuse a check that left something unused for no known reason.")
    ] = False,
) -> int:
    """Hold a target to every clause: scenarios, a short replay, the state machine."""
    _require_seconds(max_seconds)
    _require_places(failures, ("--json", json), ("--junit", junit))
    target = strictly(target) if strict else target
    options = checks.Options(target, profile, store, examples, max_seconds, seed, failures, gate)
    with _status() as log:
        report = checks.check(options, log)
    if json is not None:
        write_whole(json, rep.as_json(report))
    if junit is not None:
        write_whole(junit, rep.as_junit(report))
    rep.show(report, _console())
    if report.verdict == "unusable":
        return _unusable(report.reason)
    print(rep.verdict_line(report), flush=True)
    return report.status


@app.command()
def smoke(
    target: Annotated[str, typer.Option(help="cmd:PROGRAM ARGS, or any other.", metavar="T")],
) -> int:
    """Check the wiring of an engine before its behaviour: one short conversation, held to form."""
    console = _console()
    for step in smokes.smoke(target):
        console.print(f"{step.what:28}{step.result}", markup=False, soft_wrap=True)
    print(f"{target} is wired right: now run kvspec check --target {shlex.quote(target)}")
    return 0


@app.command()
def replay(
    trace: Annotated[Path, typer.Argument(help="A workload trace or a recorded event trace.")],
    target: TargetOption = "optimized",
    profile: ProfileOption = None,
    store: StoreOption = StoreKind.AUTO,
    blocks: Annotated[int | None, typer.Option(min=2, help="Size of the pool.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, max=2**31, help="Only so many lines.")] = None,
    judge: Annotated[bool, typer.Option(help="Judge each answer.")] = True,
    groups: Annotated[str | None, typer.Option(help="KIND:SIZE,... of a workload's cache.")] = None,
    hash_unit: Annotated[int | None, typer.Option(min=1, help="Tokens of a digest.")] = None,
    max_output: Annotated[int | None, typer.Option(min=0, help="Cap on sampled tokens.")] = None,
    token_budget: Annotated[int | None, typer.Option(min=1, help="Tokens of a step.")] = None,
    max_running: Annotated[int | None, typer.Option(min=1, help="Requests of a step.")] = None,
    snapshot_every: Annotated[int | None, typer.Option(min=1, help="Steps (events).")] = None,
    json: Annotated[Path | None, typer.Option(help="Write the report as JSON.")] = None,
    failures: Annotated[Path, typer.Option(help="Where failures are kept.")] = FOLDER,
    strict: StrictOption = False,
) -> int:
    """Replay a workload through a scheduler, or recorded events, and judge each answer."""
    _require_places(failures, ("--json", json), trace=trace)
    limits = {"max_output": max_output, "token_budget": token_budget, "max_running": max_running}
    asked = replays.Asked(
        trace=trace,
        subject=find_subject(strictly(target) if strict else target, profile, store),
        blocks=blocks,
        limit=limit,
        judged=judge,
        groups=groups,
        hash_unit=hash_unit,
        limits={name: value for name, value in limits.items() if value is not None},
        snapshot_every=snapshot_every,
        failures=failures,
    )
    with _progress() as progress:
        report = replays.replay(asked, progress)
    if json is not None:
        write_whole(json, rep.replay_json(report))
    rep.show_replay(report, _console())
    print(rep.replay_line(report), flush=True)
    return 1 if report.violations else 0


@app.command()
def mutants(
    ids: Annotated[
        list[str] | None, typer.Argument(help="Which mutants, or clauses; by default all.")
    ] = None,
    driver: Annotated[
        list[str] | None,
        typer.Option(help="scenarios, replay, machine (as in a check), vectors, walk; repeatable."),
    ] = None,
    all_drivers: Annotated[bool, typer.Option(help="Go on when one has seen the mutant.")] = False,
    shrink: Annotated[bool, typer.Option(help="Shrink the trace that shows it.")] = True,
    names: Annotated[bool, typer.Option("--list", help="Only name them.")] = False,
    without: Annotated[
        bool, typer.Option("--without", help="Take clauses away instead, one by one.")
    ] = False,
    workers: Annotated[int, typer.Option(min=0, help="Processes; 0 for one a core.")] = 0,
    seed: Annotated[int, typer.Option(min=0, help="The same seed, the same hunt.")] = 0,
    json: Annotated[Path | None, typer.Option(help="Write the matrix as JSON.")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Write the matrix as Markdown.")] = None,
) -> int:
    """Hold the spec to faulty managers: which of them the drivers see, and how soon."""
    from .mutants import command

    if names:
        command.list_mutants(_console())
        return 0
    require_apart({"--json": json, "--markdown": markdown})
    _require_reports(("--json", json), ("--markdown", markdown))
    plan = command.plan_of(driver or (), all_drivers=all_drivers, shrinks=shrink, seed=seed)
    asked = command.Asked(tuple(ids or ()), plan, workers, json, markdown)
    run = command.run_without if without else command.run
    return run(asked, _console(), Console(stderr=True))


@app.command()
def explain(
    trace: Annotated[Path, typer.Argument(help="A recorded event trace.")],
    request: Annotated[str, typer.Option(help="Whose hits.", metavar="R")],
    target: TargetOption = "optimized",
    json: Annotated[Path | None, typer.Option(help="Write the explanation as JSON.")] = None,
) -> int:
    """Say why each hit of a request was as long as it was, and who filled its blocks."""
    _require_places(FOLDER, ("--json", json), trace=trace)
    subject = find_subject(target)
    try:
        found = explaining.explain(trace, read_trace(trace), request, subject)
    except ClauseBroken as broken:
        print(f"{target} is broken: {broken.violation.clause.id}; see kvspec replay", flush=True)
        return 1
    if json is not None:
        write_whole(json, rep.json_text(explaining.as_data(found, request)))
    for line in explaining.tell(found, request):
        print(line)
    print(explaining.verdict(found, request), flush=True)
    return 0


@app.command()
def prove(
    target: TargetOption = "optimized",
    profile: ProfileOption = None,
    world: Annotated[list[str] | None, typer.Option(help="Only this one; may be repeated.")] = None,
    deep: Annotated[bool, typer.Option(help="What takes minutes as well.")] = False,
    symbolic: Annotated[
        bool, typer.Option("--symbolic", help="Confirm the conditions on the rules first.")
    ] = False,
    workers: Annotated[int | None, typer.Option(min=1, max=256, help="Processes.")] = None,
    unreduced: Annotated[bool, typer.Option(help="Count states without renaming too.")] = False,
    max_states: Annotated[
        int, typer.Option(min=1, help="Give up beyond so many.")
    ] = search.MOST_STATES,
    max_seconds: Annotated[float | None, typer.Option(help="Give up after this long.")] = None,
    paths: Annotated[
        Path | None, typer.Option(help="Write the paths that cover each world here.")
    ] = None,
    json: Annotated[Path | None, typer.Option(help="Write the report as JSON.")] = None,
    failures: Annotated[Path, typer.Option(help="Where failures are kept.")] = FOLDER,
) -> int:
    """Walk tiny worlds to the last state: every event sequence, each answer judged."""
    _require_seconds(max_seconds)
    _require_places(failures, ("--json", json))
    if paths is not None:
        require_folder("--paths", paths)
    asked = proof.Asked(
        subject=find_subject(target, profile),
        worlds=worlds.choose(world or [], deep),
        workers=workers or search.cores(),
        limits=search.Limits(max_states, max_seconds),
        unreduced=unreduced,
        paths=paths,
        failures=failures,
        conditions=proof.chosen(deep) if symbolic else (),
    )
    with _status() as log:
        report = proof.prove(asked, log)
    if json is not None:
        write_whole(json, proof.as_json(report))
    proof.show(report, _console())
    if report.verdict == "unusable":
        return _unusable(report.reason)
    print(proof.verdict_line(report), flush=True)
    return rep.EXIT[report.verdict]


vectors = typer.Typer(help="Cases in JSON that need no kvspec.", no_args_is_help=False)
app.add_typer(vectors, name="vectors")


@vectors.command("write")
def vectors_write(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A new folder, or an older one.")],
) -> int:
    """Write every vector, beside the place and then renamed."""
    from .vectors import command

    print(command.write(folder), flush=True)
    return 0


@vectors.command("run")
def vectors_run(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder of vectors.")],
    target: TargetOption = "optimized",
    json: Annotated[Path | None, typer.Option(help="Write the report as JSON.")] = None,
    strict: StrictOption = False,
) -> int:
    """Hold a target to the vectors of a folder."""
    from .vectors import command

    _require_reports(("--json", json))
    subject = find_subject(strictly(target) if strict else target)
    with _status() as log:
        ran = command.run(folder, subject, log)
    if json is not None:
        write_whole(json, command.as_json(ran))
    command.show(ran, _console())
    if ran.verdict == "unusable":
        return _unusable(f"target {target}: no vector of {folder} could be played on it")
    print(command.verdict_line(ran), flush=True)
    return rep.EXIT[ran.verdict]


bench = typer.Typer(help="Measure; each command says what.", no_args_is_help=False)
app.add_typer(bench, name="bench")


@bench.command("copy")
def bench_copy(
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    layers: Annotated[
        int, typer.Option(min=1, max=1024, help="Tensors of a pool.")
    ] = copies.LAYERS,
    rounds: Annotated[int, typer.Option(min=1, help="Turns of each way.")] = copies.ROUNDS,
    json: Annotated[Path | None, typer.Option(help="Write the figures as JSON.")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Write the table as Markdown.")] = None,
) -> int:
    """Blocks copied by our movers, beside indexing with torch on the same tensors."""
    require_apart({"--json": json, "--markdown": markdown})
    _require_reports(("--json", json), ("--markdown", markdown))
    measured = copies.measure(device, layers=layers, rounds=rounds)
    command = f"kvspec bench copy --device {device} --layers {layers} --rounds {rounds}"
    table = copies.as_markdown(measured, command)
    if json is not None:
        write_whole(json, rep.json_text(copies.as_data(measured)))
    if markdown is not None:
        write_whole(markdown, table)
    print(table)
    print(copies.tell(measured), flush=True)
    return 0


@bench.command("wire")
def bench_wire(target: TargetOption = "reference") -> int:
    """What the wire adds to an event: a target in this process, and the same behind the wire."""
    print(wire.tell(wire.measure(target)), flush=True)
    return 0


def _require_seconds(limit: float | None) -> None:
    if limit is not None and not (limit > 0 and math.isfinite(limit)):
        raise BadInput(f"--max-seconds must be a number above 0, got {limit}")


@contextmanager
def _progress() -> Iterator[replays.Progress]:
    """A bar on standard error, where that is a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda done, total: None
        return
    columns = (*Progress.get_default_columns(), MofNCompleteColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("replay", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _require_places(
    failures: Path, *reports: tuple[str, Path | None], trace: Path | None = None
) -> None:
    """Refuse places that cannot be written to before any work is done."""
    require_apart({"the trace": trace, **dict(reports), "--failures": failures})
    _require_reports(*reports)
    require_folder("--failures", failures)


def _require_reports(*reports: tuple[str, Path | None]) -> None:
    for option, path in reports:
        if path is not None:
            require_writable(option, path)


def _console() -> Console:
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 100
    return console


@contextmanager
def _status() -> Iterator[Any]:
    """Where a terminal shows what is being done."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _: None
        return
    with console.status("kvspec") as status:
        yield status.update


if __name__ == "__main__":
    main()
