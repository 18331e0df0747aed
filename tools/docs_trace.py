"""Write the traceability table at each build of the docs (mkdocs.yml, `hooks`)."""

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from kvspec.trace_reasons import reason_for
from kvspec.traceability import COLUMNS, table

PAGE = "traceability.md"

INTRODUCTION = """\
# Traceability

What stands behind each clause: the scenarios that reach a state in which it could fail, the rare
states in which it bites only or harder, the mutants filed under it, the rows of the atlas of public
faults that it is about, and the conditions on the rules that are [confirmed](conditions.md). The
table is worked out when the docs are built. An empty cell carries its reason in italics; one
without a reason fails the tests (`tests/traceability`).
"""

MOST = 8
"""Entries of a cell that are written out."""


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    files.append(File.generated(config, PAGE, content=page()))
    return files


def page() -> str:
    lines = [INTRODUCTION, f"| clause | {' | '.join(COLUMNS)} |", "|---" * (len(COLUMNS) + 1) + "|"]
    for id, row in table().items():
        cells = [cell(id, column, entries) for column, entries in row.items()]
        lines.append(f"| [{id}](clauses.md#{id}) | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def cell(id: str, column: str, entries: list[str]) -> str:
    """What stands there, or why nothing does."""
    if not entries:
        return f"*{reason_for(id, column)}*"
    more = f" and {len(entries) - MOST} more" if len(entries) > MOST else ""
    return ", ".join(entries[:MOST]) + more
