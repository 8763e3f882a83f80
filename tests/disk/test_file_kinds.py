"""Which outputs replace something."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from genpool.disk.file_kinds import kind_of, replaces


def test_only_what_would_be_lost_counts_as_replaced(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "empty").mkdir()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("x")
    outcomes = {name: replaces(tmp_path / name) for name in ("file", "empty", "full", "nothing")}
    assert outcomes == {"file": True, "empty": False, "full": True, "nothing": False}
    assert replaces(str(tmp_path / "file")) and not replaces(tmp_path / "file" / "below")


@pytest.mark.skipif(os.name == "nt", reason="has no such files")
def test_kinds_are_those_that_links_lead_to(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    (tmp_path / "broken").symlink_to("nowhere")
    assert kind_of(tmp_path / "link") == kind_of(tmp_path / "pipe") == "a named pipe (FIFO)"
    assert kind_of(tmp_path / "broken") is None
    assert kind_of(Path("/dev/null")) == "a device"
    assert kind_of(tmp_path) == "a folder"
