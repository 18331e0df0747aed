"""Print the book of clauses from the code that judges, at each build of the docs.

mkdocs runs this (mkdocs.yml, `hooks`). The page lives in memory only: nothing is written into
docs/, so no copy can fall behind the clauses.
"""

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterable
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from kvspec.spec import clauses
from kvspec.spec.clauses import CLAUSES, Clause

PAGE = "clauses.md"

INTRODUCTION = """\
# The clauses

Each rule that an implementation is held to, under the id that reports print. This page is printed
from `kvspec.spec.clauses` when the docs are built. A target is held to the clauses of its own
profile and of those before it: soundness, accounting, exact. The predicate compares what was
observed with what the judge worked out as allowed.
"""


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    files.append(File.generated(config, PAGE, content=book(CLAUSES.values())))
    return files


def book(chapter_order: Iterable[Clause]) -> str:
    """Write all clauses as one page, a chapter for each family, in the order given."""
    families: dict[str, list[Clause]] = {}
    for clause in chapter_order:
        families.setdefault(clause.family, []).append(clause)
    titles = family_titles()
    parts = [INTRODUCTION]
    for family, members in families.items():
        title = f"{family}: {titles[family]}" if family in titles else family
        parts.append(f"## {title} {{ #{family} }}\n")
        parts.extend(map(section, members))
    return "\n".join(parts)


def family_titles() -> dict[str, str]:
    """Read what each family is about from the ruled comments of the module of clauses.

    Such a comment names one family or several: `# --- REF, FREE: counts, free list ---`.
    """
    ruled = r"^# --- ([A-Z, ]+): (.+?)(?: \(design [^)]*\))? -*$"
    titles: dict[str, str] = {}
    for families, title in re.findall(ruled, inspect.getsource(clauses), flags=re.MULTILINE):
        names, parts = families.split(", "), title.split(", ")
        about = parts if len(parts) == len(names) else [title] * len(names)
        titles |= zip(names, about, strict=True)
    return titles


def section(clause: Clause) -> str:
    """Write one clause under a heading (and an anchor) equal to its id."""
    lines = [
        f"### {clause.id} {{ #{clause.id} }}",
        "",
        f"**{clause.statement}**",
        "",
        clause.why,
        "",
        f"- Profile: {clause.profile.value}",
    ]
    if clause.follows_from:
        links = ", ".join(f"[{id}](#{id})" for id in clause.follows_from)
        lines.append(f"- Follows from: {links}")
    if clause.reports:
        lines.append(f"- Seen in: {'; '.join(clause.reports)}")
    lines += ["", "```python", predicate_source(clause.holds), "```", ""]
    return "\n".join(lines)


def predicate_source(holds: Callable[..., Any]) -> str:
    """Show a predicate as it is written; of a lambda, the lambda alone and not the call around."""
    if holds.__name__ != "<lambda>":
        return textwrap.dedent(inspect.getsource(holds)).rstrip()
    source = inspect.getsource(inspect.getmodule(holds) or clauses)
    first_line = holds.__code__.co_firstlineno
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Lambda) and node.lineno == first_line:
            return textwrap.dedent(ast.get_source_segment(source, node, padded=True) or "")
    raise LookupError(f"no lambda on line {first_line} of {inspect.getsourcefile(holds)}")
