"""tools/wheel_files.py names each file that a wheel lacks or has too many."""

import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LINKED = ("spec", "reference", "optimized", "kernels")


def compare(wheel: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "tools" / "wheel_files.py"), str(wheel)],
        capture_output=True,
        text=True,
        check=False,
    )


def write_wheel(path: Path, *, drop: str = "", add: str = "") -> Path:
    listing = subprocess.run(
        ["git", "ls-files", "--", *LINKED, "kvspec"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    files = [name for name in listing.splitlines() if not (ROOT / name).is_symlink()]
    names = {name if name.startswith("kvspec/") else f"kvspec/{name}" for name in files}
    with zipfile.ZipFile(path, "w") as archive:
        for name in sorted((names - {drop}) | ({add} if add else set())):
            archive.writestr(name, "")
        archive.writestr("kvspec-0.1.0.dist-info/RECORD", "")
    return path


def test_a_wheel_with_the_files_of_the_tree_passes(tmp_path: Path) -> None:
    result = compare(write_wheel(tmp_path / "k.whl"))
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.rstrip().endswith("the same")


def test_a_dropped_folder_link_is_named_by_its_files(tmp_path: Path) -> None:
    result = compare(write_wheel(tmp_path / "k.whl", drop="kvspec/kernels/__init__.py"))
    assert result.returncode == 1
    missing = "missing in the wheel: kvspec/kernels/__init__.py (from kernels/__init__.py)"
    assert result.stdout.splitlines()[0] == missing


def test_a_file_that_is_not_of_the_tree_is_named(tmp_path: Path) -> None:
    result = compare(write_wheel(tmp_path / "k.whl", add="tests/__init__.py"))
    assert result.returncode == 1
    assert result.stdout.splitlines()[0] == "in the wheel, but not tracked: tests/__init__.py"


def test_something_that_is_not_a_wheel_is_a_usage_error(tmp_path: Path) -> None:
    broken = tmp_path / "broken.whl"
    broken.write_text("no archive")
    result = compare(broken)
    assert result.returncode == 2
    assert "cannot compare" in result.stderr
