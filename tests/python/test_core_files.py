"""The core's file functions for paths and URIs, called through the bindings."""

from __future__ import annotations

import subprocess
import sys

import pytest

from hearth.native import _core


def test_writes_reads_lists_and_deletes(tmp_path):
    folder = f"file://{tmp_path}/a b"
    _core.make_folders(f"{folder}/c")
    _core.write_file(f"{folder}/x", b"\x00bytes")
    _core.append_file(f"{folder}/x", b" more")
    assert _core.read_file(f"{folder}/x") == b"\x00bytes more"
    assert (tmp_path / "a b" / "x").read_bytes() == b"\x00bytes more"
    status = _core.stat_file(f"{folder}/x")
    assert (status.uri, status.size, status.is_folder) == (f"{folder}/x", 11, False)
    assert status.modified_ms > 1_600_000_000_000
    assert [(each.uri, each.is_folder) for each in _core.list_folder(folder)] == [
        (f"{folder}/c", True),
        (f"{folder}/x", False),
    ]
    _core.rename_file(f"{folder}/x", f"{folder}/c/y")
    assert _core.glob_files(f"{folder}/*/?") == [f"{folder}/c/y"]
    with pytest.raises(ValueError, match="not empty"):
        _core.delete_file(folder)
    assert _core.delete_file(folder, recursive=True)
    assert not _core.delete_file(folder)
    assert _core.stat_file(folder) is None


def test_reads_at_offsets_and_renames_on_completion(tmp_path):
    path = str(tmp_path / "a")
    file = _core.OutputFile(path)
    file.append(b"0123456789")
    assert _core.stat_file(path) is None
    file.commit()
    with pytest.raises(ValueError, match="already committed"):
        file.append(b"x")
    discarded = _core.OutputFile(path)
    discarded.append(b"other")
    discarded.discard()
    opened = _core.InputFile(path)
    assert opened.size() == 10
    assert [opened.read_at(*at) for at in ((0, 3), (8, 100), (10, 1), (99, 1))] == [
        b"012",
        b"89",
        b"",
        b"",
    ]
    assert [each.name for each in tmp_path.iterdir()] == ["a"]


def test_errors_name_the_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="nothing"):
        _core.read_file(f"{tmp_path}/nothing")
    with pytest.raises(FileNotFoundError, match="nothing"):
        _core.list_folder(f"{tmp_path}/nothing")
    with pytest.raises(RuntimeError, match="gopher:"):
        _core.read_file("gopher://host/a")


def test_hdfs_without_a_cluster_names_the_setting():
    program = "from hearth.native import _core; _core.read_file('hdfs:///a')"
    done = subprocess.run(
        [sys.executable, "-c", program], env={"PATH": ""}, capture_output=True, text=True
    )
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("hearth.errors.InvalidArgumentError: cannot open hdfs:///a as user "), (
        done.stderr
    )
    assert "HADOOP_CONF_DIR is not set" in last
