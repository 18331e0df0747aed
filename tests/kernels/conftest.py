"""The twin, built once a process; without g++ what needs it is skipped, with the reason."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kvspec.kernels.host import NoCompiler, build, sources

from .sanitized import Sanitized


@pytest.fixture(scope="session")
def twin() -> Path:
    """The library without sanitizers."""
    try:
        return build(sources())
    except NoCompiler as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def sanitized() -> Iterator[Sanitized]:
    """A process that runs the twin under AddressSanitizer and UndefinedBehaviorSanitizer."""
    try:
        process = Sanitized(build(sources(), sanitizers=True))
    except NoCompiler as reason:
        pytest.skip(str(reason))
    yield process
    process.close()
