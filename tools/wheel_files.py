"""Compare the files of a wheel with the tracked files of the tree.

kvspec's packages reach the wheel through symlinks (kvspec/spec -> ../spec), which build backends
treat differently: some drop a linked folder and say nothing. So the list is compared, both ways.

    python tools/wheel_files.py dist/kvspec-0.1.0-py3-none-any.whl

Exit status: 0 the same, 1 one line for each difference, 2 the wheel or the tree cannot be read.
"""

import subprocess
import sys
import zipfile
from pathlib import Path

LINKED = ("spec", "reference", "optimized", "kernels")
PACKAGE = "kvspec"
ROOT = Path(__file__).resolve().parent.parent
SYMLINK_MODE = "120000"


def tracked_files() -> dict[str, str]:
    """Map each path that the wheel must hold to the tracked file it comes from."""
    listing = subprocess.run(
        ["git", "ls-files", "--stage", "-z", "--", *LINKED, PACKAGE],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    files = {}
    for entry in filter(None, listing.split("\0")):
        meta, path = entry.split("\t", 1)
        if meta.startswith(SYMLINK_MODE):
            continue
        in_wheel = path if path.startswith(f"{PACKAGE}/") else f"{PACKAGE}/{path}"
        files[in_wheel] = path
    return files


def wheel_files(wheel: Path) -> set[str]:
    """List what a wheel installs, without its own metadata."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if not name.endswith("/")]
    return {name for name in names if not name.split("/", 1)[0].endswith(".dist-info")}


def differences(tree: dict[str, str], wheel: set[str]) -> list[str]:
    """Say in one line each what the tree or the wheel has alone."""
    missing = [f"missing in the wheel: {name} (from {tree[name]})" for name in tree.keys() - wheel]
    extra = [f"in the wheel, but not tracked: {name}" for name in wheel - tree.keys()]
    return sorted(missing) + sorted(extra)


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: python tools/wheel_files.py WHEEL", file=sys.stderr)
        return 2
    try:
        tree, wheel = tracked_files(), wheel_files(Path(arguments[0]))
    except (OSError, subprocess.CalledProcessError, zipfile.BadZipFile) as error:
        print(f"wheel_files: cannot compare: {error}", file=sys.stderr)
        return 2
    found = differences(tree, wheel)
    for line in found:
        print(line)
    verdict = f"{len(found)} differences" if found else "the same"
    print(f"wheel_files: {len(wheel)} files in the wheel, {len(tree)} in the tree: {verdict}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
