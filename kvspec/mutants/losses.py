"""What taking clauses away came to: as JSON, as Markdown and as a table."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from kvspec.report import VERSION
from kvspec.spec.clauses import CLAUSES

from .catalogue import MUTANTS
from .liar import LIAR
from .without import EXAMPLES, Loss

WRONG_BOOKS = "books that are wrong exactly where the clause speaks of them"


def losses_as_json(losses: Sequence[Loss], seed: int) -> str:
    """All losses as JSON; fields may be added, never renamed."""
    data = {
        "kvspec": VERSION,
        "seed": seed,
        "examples": EXAMPLES,
        "clauses": [
            {
                "id": loss.clause,
                "passes": loss.passes,
                "follows_from": CLAUSES[loss.clause].follows_from,
                "seen": loss.seen,
                "seconds": round(loss.seconds, 1),
            }
            for loss in losses
        ],
    }
    return msgspec.json.format(msgspec.json.encode(data), indent=1).decode() + "\n"


def losses_as_markdown(losses: Sequence[Loss], command: str) -> str:
    """All losses as a page of the docs."""
    lines = [
        "# Without a clause",
        "",
        f"Written by `{command}`. {losses_line(losses)}.",
        "",
        f"Each clause is taken away from the judge in turn. The fault beside it then passes every "
        f"scenario and {EXAMPLES} runs of the state machine, and the whole judge sees it by that "
        "clause. A clause that follows from others only gives a fault a name of its own: what "
        "breaks it is seen without it, by the clauses named or by those that are told of its "
        "consequences.",
        "",
        "| without | this passes |",
        "|---|---|",
    ]
    for loss in losses:
        lines.append(f"| {loss.clause} | {_what(loss)} |")
    return "\n".join(lines) + "\n"


def _what(loss: Loss) -> str:
    if loss.passes == LIAR:
        return WRONG_BOOKS
    if loss.passes:
        return f"**{loss.passes}**: {MUTANTS[loss.passes].title}"
    follows = CLAUSES[loss.clause].follows_from
    reason = f"nothing: it follows from {', '.join(follows)}" if follows else "nothing"
    seen = "; ".join(f"{fault} is seen by {clause}" for fault, clause in loss.seen.items())
    return f"{reason} ({seen})" if seen else reason


def show_losses(losses: Sequence[Loss], console: Console) -> None:
    """Print all losses."""
    table = Table(box=SIMPLE, show_edge=False, pad_edge=False)
    for column in ("without", "this passes", "seconds"):
        table.add_column(column, justify="right" if column == "seconds" else "left")
    for loss in losses:
        table.add_row(loss.clause, _what(loss), f"{loss.seconds:.0f}")
    console.print(table)


def losses_line(losses: Sequence[Loss]) -> str:
    """All losses in one line."""
    passes = [loss for loss in losses if loss.passes]
    follows = [loss for loss in losses if not loss.passes and loss.explained]
    bare = [loss.clause for loss in losses if not loss.explained]
    line = (
        f"{len(passes)} of {len(losses)} clauses let a fault pass when they are taken away, "
        f"{len(follows)} follow from others"
    )
    return f"{line}; neither: {', '.join(bare)}" if bare else line
