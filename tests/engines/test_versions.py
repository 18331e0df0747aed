"""The versions of engines, and what is said where an engine is not there."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from kvspec.engines.vllm_versions import VERSIONS, version_of
from kvspec.errors import TargetUnusable
from tests.cli.run import run


@pytest.mark.parametrize(("text", "minor"), [("0.27.1", 27), ("0.28.0", 28), ("0.33.0rc1", 33)])
def test_a_version_is_known_by_its_minor_number(text: str, minor: int) -> None:
    assert version_of(text) is VERSIONS[minor]
    assert VERSIONS[minor].minor == minor


@pytest.mark.parametrize("text", ["0.26.0", "0.34.0", "1.28.0", "dev", "", "0.x"])
def test_a_version_that_nobody_tried_is_refused(text: str) -> None:
    with pytest.raises(TargetUnusable, match=r"the adapter knows 0\.27 to 0\.33"):
        version_of(text)


@pytest.mark.skipif(find_spec("vllm") is not None, reason="vLLM is installed here")
def test_an_engine_that_is_not_installed_is_said_to_be() -> None:
    ran = run("check", "--target", "vllm", "--examples", "1")
    assert ran.status == 2
    assert "No module named 'vllm'; make engines" in ran.stderr
    assert ran.stderr.count("\n") == 1
