"""Write the page of conditions at each build of the docs (mkdocs.yml, `hooks`)."""

import inspect
from collections.abc import Iterable

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from kvspec.conditions import CONDITIONS, Condition

PAGE = "conditions.md"

INTRODUCTION = """\
# The conditions

What is confirmed of the rules themselves, by symbolic execution: [how, and how far to trust
it](prove.md#conditions-on-the-rules). This page is printed from `kvspec.conditions` when the docs
are built. *Bound* is what the arguments are held to besides what makes them meaningful; all other
numbers are any integers. Conditions marked `deep` take longer to confirm.
"""


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    files.append(File.generated(config, PAGE, content=page(CONDITIONS.values())))
    return files


def page(conditions: Iterable[Condition]) -> str:
    """A chapter for each noun, a row for each condition."""
    nouns: dict[str, list[Condition]] = {}
    for condition in conditions:
        nouns.setdefault(condition.id.partition(".")[0], []).append(condition)
    parts = [INTRODUCTION]
    for noun, members in nouns.items():
        parts.append(f"## {noun} {{ #{noun} }}\n")
        parts.append("| condition | what holds | bound | clauses |\n|---|---|---|---|")
        parts.extend(map(row, members))
        parts.append("")
    return "\n".join(parts)


def row(condition: Condition) -> str:
    """One condition: a kernel's contract is its `post:` lines, the others are told in words."""
    clauses = ", ".join(f"[{id}](clauses.md#{id})" for id in condition.clauses)
    deep = " `deep`" if condition.slow else ""
    cells = [f"`{condition.id}`{deep}", told(condition), condition.bound, clauses]
    return f"| {' | '.join(cells)} |"


def told(condition: Condition) -> str:
    """What holds; of a kernel's function, whose docstring says what it gives, its contract too."""
    if not condition.id.startswith("kernels."):
        return condition.statement
    lines = (inspect.getdoc(condition.function) or "").splitlines()
    posts = [line.strip().removeprefix("post: ") for line in lines if "post: " in line]
    return f"{condition.statement} {', '.join(f'`{post}`' for post in posts)}"
