"""Loading a package with some of its text changed, as a private copy beside the real one.

Nothing is written to disk and the real modules are left alone: the copy lives under a module name
of its own. Its assertions are compiled away, since a fault is to be seen by the judge from what the
manager answers, and not by the manager itself.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module, resources
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from types import CodeType, ModuleType

from kvspec.errors import BadInput


@dataclass(frozen=True, slots=True)
class Edit:
    """In a module of the package, `old` is replaced by `new`; it must stand there exactly once."""

    module: str
    old: str
    new: str


class DoesNotApply(BadInput):
    """A patch names text that is not there, or that is there more than once."""


@cache
def sources(package: str) -> Mapping[str, str]:
    """The text of each module of a package, by its name inside the package."""
    folder = resources.files(package)
    texts = {
        file.name.removesuffix(".py"): file.read_text(encoding="utf-8")
        for file in sorted(folder.iterdir(), key=lambda file: file.name)
        if file.name.endswith(".py")
    }
    return texts


def patched(package: str, edits: Iterable[Edit], what: str) -> dict[str, str]:
    """The package's text with the edits made, in their order. Raises `DoesNotApply`."""
    texts = dict(sources(package))
    for edit in edits:
        text = texts.get(edit.module)
        if text is None:
            raise DoesNotApply(f"mutant {what}: {package} has no module {edit.module}")
        found = text.count(edit.old)
        if found != 1:
            line = edit.old.strip().splitlines()[0]
            raise DoesNotApply(
                f"mutant {what}: {package}.{edit.module} has its text {found} times, not once "
                f"(it begins {line!r}); the code moved: write the patch anew"
            )
        texts[edit.module] = text.replace(edit.old, edit.new)
    return texts


class _Copy(InspectLoader, MetaPathFinder):
    """Finds and loads the modules of one copy."""

    def __init__(self, name: str, texts: Mapping[str, str]) -> None:
        self.name, self.texts = name, texts

    def find_spec(
        self, fullname: str, path: object = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module, if it is one of the copy's."""
        head, _, tail = fullname.partition(".")
        if head != self.name or (tail or "__init__") not in self.texts:
            return None
        return spec_from_loader(fullname, self, is_package=not tail)

    def is_package(self, fullname: str) -> bool:
        """Only the copy itself is one."""
        return fullname == self.name

    def get_source(self, fullname: str) -> str:
        """The text of a module."""
        return self.texts[fullname.partition(".")[2] or "__init__"]

    def get_code(self, fullname: str) -> CodeType:
        """The module compiled, without its assertions."""
        return compile(self.get_source(fullname), f"<{fullname}>", "exec", optimize=1)


def load_copy(name: str, texts: Mapping[str, str]) -> ModuleType:
    """Import a package from text, under a top-level name that nothing else has."""
    finder = _Copy(name, texts)
    for module in [module for module in sys.modules if module.partition(".")[0] == name]:
        del sys.modules[module]
    sys.meta_path.insert(0, finder)
    try:
        for module in sorted(texts):
            import_module(name if module == "__init__" else f"{name}.{module}")
        return sys.modules[name]
    finally:
        sys.meta_path.remove(finder)
