"""What once got past the tool: targets that leave, and reports written over what was there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kvspec.errors import BadInput, TargetUnusable
from kvspec.files import require_apart, require_writable, write_whole
from kvspec.reference.manager import Manager
from kvspec.spec import events as ev
from kvspec.spec.types import Config, Group, GroupKind
from kvspec.targets import Target, TargetFault, find_factory

CONFIG = Config(4, 1, (Group(GroupKind.FULL, 1),), 2)


class Leaves(Manager):
    def reset(self) -> ev.ResetDone:
        os._exit(0)


class Cancelled(Manager):
    def reset(self) -> ev.ResetDone:
        raise GeneratorExit("gone")


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


class Mute(Manager):
    def reset(self) -> ev.ResetDone:
        raise Unspeakable


class Promises(Manager):
    def snapshot(self) -> ev.Books:
        return ev.Books()


@pytest.mark.parametrize(
    ("factory", "said"),
    [(Leaves, "os._exit(0)"), (Cancelled, "GeneratorExit: gone"), (Mute, "Unspeakable")],
)
def test_a_target_cannot_end_the_tool(factory: type[Manager], said: str) -> None:
    with pytest.raises(TargetFault, match=said.replace("(", r"\(").replace(")", r"\)")):
        Target("t", factory, CONFIG).ask(ev.Reset())


def test_a_promised_book_has_to_be_there() -> None:
    with pytest.raises(TargetUnusable, match="shows refcounts"):
        Target("t", Promises, CONFIG).ask(ev.Snapshot())


def test_what_is_trusted_is_not_asked_twice() -> None:
    assert Target("reference", find_factory("reference"), CONFIG).ask(ev.Snapshot())


def test_a_report_follows_a_link_and_spares_what_is_no_file(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_text("old")
    link.symlink_to(real)
    write_whole(link, "new")
    assert link.is_symlink()
    assert real.read_text() == "new"
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BadInput, match="no regular file"):
        require_writable("--json", tmp_path / "pipe")


def test_two_options_do_not_name_one_file(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="same file as --json"):
        require_apart({"--json": tmp_path / "a", "--junit": tmp_path / "." / "a"})
