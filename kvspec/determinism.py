"""Making a seed enough: what Hypothesis draws must not depend on which modules are imported.

Hypothesis mixes constants from the source of imported local modules into what it generates, so a
run would change with the working directory and with what was imported before. It offers no switch;
this replaces the function that collects them (Hypothesis 6.131 and later), while a run lasts.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

from hypothesis.internal.conjecture import providers


@contextmanager
def independent_of_imports() -> Iterator[None]:
    """Let Hypothesis find no constants in local modules."""
    with ExitStack() as stack:
        if hasattr(providers, "_get_local_constants"):
            nothing = type(providers.GLOBAL_CONSTANTS)()
            stack.enter_context(patch.object(providers, "_get_local_constants", lambda: nothing))
            cache = type(providers.CONSTANTS_CACHE)(1024)
            stack.enter_context(patch.object(providers, "CONSTANTS_CACHE", cache))
        yield
