"""Hunting many mutants, in several processes that each fork one for a look at a mutant."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

from .mutants import Mutant, modules, mutants_of
from .stages import STAGES, Kill, hunt
from .world import look, preload


class Unsound(Exception):
    """A stage sees something where nothing is mutated: its kills would say nothing."""


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a mutant; `kill` is None where it survived."""

    mutant: Mutant
    kill: Kill | None


def all_of(package: str, only: Iterable[str] = ()) -> list[Mutant]:
    """The mutants of a package, or of some modules of it."""
    names = list(only) or modules(package)
    return [mutant for name in names for mutant in mutants_of(package, name)]


def hunt_all(
    package: str,
    mutants: Sequence[Mutant],
    workers: int,
    log: Callable[[Result], None] = lambda _: None,
    *,
    stages: Sequence[str] = (),
) -> list[Result]:
    """Hunt mutants of one package; the results are in their order. Raises `Unsound`.

    `stages` names those that are run, all where none is named.
    """
    names = tuple(stages) or tuple(stage.name for stage in STAGES[package])
    context = multiprocessing.get_context("spawn")
    results: list[Result] = []
    if not mutants:
        return results
    with ProcessPoolExecutor(workers, context, preload, (package,)) as pool:
        for name, seen in zip(names, pool.map(_sound, [package] * 9, names), strict=True):
            if seen is not None:
                raise Unsound(f"{name} of {package} sees, with nothing mutated: {seen}")
        # A mutant carries the text of its module: send what finds it again.
        places = {m.key: (m.package, m.module, at) for m, at in _numbered(mutants)}
        where = [places[mutant.key] for mutant in mutants]
        kills = pool.map(_hunt, where, [names] * len(where))
        for mutant, kill in zip(mutants, kills, strict=True):
            results.append(Result(mutant, kill))
            log(results[-1])
    return results


def _numbered(mutants: Sequence[Mutant]) -> list[tuple[Mutant, int]]:
    """Each mutant of the modules that these are of, with its place in its module."""
    places = dict.fromkeys((mutant.package, mutant.module) for mutant in mutants)
    return [(m, at) for place in places for at, m in enumerate(mutants_of(*place))]


def _hunt(where: tuple[str, str, int], names: tuple[str, ...]) -> Kill | None:
    package, module, at = where
    stages = [stage for stage in STAGES[package] if stage.name in names]
    return hunt(mutants_of(package, module)[at], stages)


def _sound(package: str, name: str) -> str | None:
    for stage in STAGES[package]:
        if stage.name == name:
            return look(None, package, stage.bare, stage.run, stage.seconds)
    return "no stage has this name"
