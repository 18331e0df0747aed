"""`make gpu`: run every check of the kernels on a GPU, then measure; without one, say so.

Writes docs/numbers/gpu.md, the measurements as JSON beside it, and exits with the first status that
is not 0. Needs no attention: each part has a time limit.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[1]
NUMBERS = ROOT / "docs" / "numbers"
BIN = Path(sys.executable).parent
ON_DEVICE = ["-m", "gpu", "-p", "no:cacheprovider", "-q", "tests/kernels"]
NO_GPU = (
    "gpu: no NVIDIA GPU is seen here ({reason}), so nothing was run. Unseen without one: the "
    "launches, memory on the device, CUDA graphs, speed. The same kernel source runs on the CPU in "
    "make test."
)


def run(name: str, command: list[str], seconds: int, **environment: str) -> str:
    """Run a part; what came of it in one line."""
    print(f"+ {' '.join(command)}", flush=True)
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=os.environ | environment, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return f"{name}: did not end within {seconds} s"
    return f"{name}: {'passed' if done.returncode == 0 else f'failed ({done.returncode})'}"


def main() -> int:
    """Run all parts; 0 where there is no GPU or all passed."""
    if not torch.cuda.is_available():
        built = torch.version.cuda
        print(NO_GPU.format(reason=f"torch {torch.__version__}, built for CUDA {built}"))
        return 0
    python, pytest = sys.executable, [sys.executable, "-m", "pytest"]
    told = [run("tests on the device", [*pytest, *ON_DEVICE], 240)]
    for tool in ("memcheck", "racecheck"):
        sanitizer = shutil.which("compute-sanitizer")
        if sanitizer is None:
            told.append(f"compute-sanitizer {tool}: not run, it is not installed")
            continue
        command = [sanitizer, "--tool", tool, "--error-exitcode", "9", *pytest, *ON_DEVICE]
        command += ["-k", "moves"]
        told.append(
            run(f"compute-sanitizer {tool}", command, 240, PYTORCH_NO_CUDA_MEMORY_CACHING="1")
        )
    NUMBERS.mkdir(parents=True, exist_ok=True)
    table, data = NUMBERS / "gpu-copy.md", NUMBERS / "gpu-copy.json"
    command = [python, "-m", "kvspec.cli", "bench", "copy", "--device", "cuda"]
    command += ["--json", str(data), "--markdown", str(table)]
    told.append(run("measurement", command, 120))
    lines = "\n".join(f"- {line}" for line in told)
    measured = table.read_text(encoding="utf-8") if table.exists() else "Nothing was measured.\n"
    text = f"# On a GPU\n\nWritten by `make gpu`.\n\n{lines}\n\n{measured}"
    (NUMBERS / "gpu.md").write_text(text, encoding="utf-8")
    print(lines)
    return int(any("failed" in line or "did not end" in line for line in told))


if __name__ == "__main__":
    sys.exit(main())
