"""The kernel compiles for both architectures without a GPU, and its body uses 16-byte accesses."""

from __future__ import annotations

import re
import subprocess
import sysconfig
from pathlib import Path

import pytest

KERNELS = ("stage_blocks", "copy_blocks", "fill_blocks")


def disassembled(arch: str, folder: Path) -> dict[str, str]:
    """The machine code of each kernel, in words."""
    cuda = pytest.importorskip("kvspec.kernels.cuda", reason="cuda-core is not installed")
    tool = Path(sysconfig.get_path("purelib"), "nvidia", "cu13", "bin", "nvdisasm")
    if not tool.exists():
        pytest.skip("nvidia-cuda-nvdisasm is not installed")
    binary = folder / f"{arch}.cubin"
    binary.write_bytes(cuda.compiled(arch).code)
    text = subprocess.run([tool, binary], capture_output=True, text=True, check=True).stdout
    parts = re.split(r"^\.text\.(\w+):$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_the_body_uses_16_byte_global_accesses(arch: str, tmp_path: Path) -> None:
    code = disassembled(arch, tmp_path)
    assert set(code) == set(KERNELS)
    for name in KERNELS:
        assert "STG.E.128" in code[name]
        assert not re.search(r"\b(LD|ST)\.E", code[name]), "a generic access"
        assert not re.search(r"\b(LDL|STL)\b", code[name]), "a spill to local memory"
    for name in ("stage_blocks", "copy_blocks"):
        assert "LDG.E.128" in code[name]


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_four_loads_are_in_flight_before_the_first_store(arch: str, tmp_path: Path) -> None:
    wide = re.findall(r"\b(LDG|STG)\.E\.128", disassembled(arch, tmp_path)["copy_blocks"])
    assert re.search("(LDG ){4}(STG )+", " ".join(wide) + " ")
