"""What a mutant is: a semantic fault, as small patches on a copy of a package of ours."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from kvspec.spec.clauses import Profile

from .load import Edit, load_copy, patched

OPTIMIZED, REFERENCE, KERNELS = "kvspec.optimized", "kvspec.reference", "kvspec.kernels"

HIDE_BOOKS = {
    OPTIMIZED: Edit("manager", 'Capabilities("optimized", shows=ev.SHOWABLE)', 'Capabilities("")'),
    REFERENCE: Edit("manager", 'Capabilities("reference", shows=ev.SHOWABLE)', 'Capabilities("")'),
}
"""What makes a manager show nothing, so that it is held to soundness alone."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One fault. `clause` is the rule it breaks, `atlas` the rows that it re-enacts.

    `package` is what is patched: the optimized manager, or the reference where the fault needs a
    plain list. By default it is judged as any target that shows its books; with `hidden` it shows
    none, `exact` compares it with the reference. With `worker` the plain worker is faulty instead,
    and with the kernels as `package` what moves bytes beside it, under the unchanged optimized
    manager.
    """

    id: str
    clause: str
    title: str
    edits: tuple[Edit, ...]
    atlas: tuple[str, ...] = ()
    package: str = OPTIMIZED
    hidden: bool = False
    exact: bool = False
    worker: bool = False

    @property
    def is_target(self) -> bool:
        """Whether the manager is faulty, rather than what it commands."""
        return not self.worker and self.package != KERNELS

    @property
    def all_edits(self) -> Iterator[Edit]:
        """The fault, and what hides the books."""
        yield from self.edits
        if self.hidden:
            yield HIDE_BOOKS[self.package]

    @property
    def profile(self) -> Profile | None:
        """What it is held to; None for whatever it shows."""
        return Profile.EXACT if self.exact else None

    def text(self) -> dict[str, str]:
        """The patched package. Raises `DoesNotApply`."""
        return patched(self.package, self.all_edits, self.id)

    def load(self) -> ModuleType:
        """The patched package, imported under a name of its own. Raises `DoesNotApply`."""
        texts = self.text()
        for compiled in ("cuda", "host"):  # those begin with the CUDA source, not with Python
            texts.pop(compiled, None)
        return load_copy("_kvspec_mutant_" + self.id.replace("-", "_"), texts)

    def manager(self) -> Any:
        """The class of the faulty manager. Raises `DoesNotApply`."""
        return self.load().manager.Manager
