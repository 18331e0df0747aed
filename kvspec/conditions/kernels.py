"""Where the bytes of a copy lie: the contracts of `kvspec.kernels.arithmetic`, one a function.

They stand in that module's own docstrings, since kernels/ knows nothing of the toolkit.
"""

from __future__ import annotations

import inspect

from kvspec.kernels import arithmetic

from .model import UNBOUNDED, add

BOUNDS = {"width": "widths 1, 2, 4, 8 and 16", "per_entry": "7 sizes of an entry, up to 1000 tiles"}
"""By parameter: what z3 has to know to divide by it."""

for _, contract in inspect.getmembers(arithmetic, inspect.isfunction):
    if contract.__module__ == arithmetic.__name__:
        bounds = [BOUNDS[p] for p in inspect.signature(contract).parameters if p in BOUNDS]
        add("kernels", contract, ("DATA.KERNEL",), ", ".join(bounds) or UNBOUNDED)
