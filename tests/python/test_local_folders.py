"""Large temporary files are distributed over an executor's local folders, avoiding full disks."""

import pytest

from hearth.files import local_folders
from hearth.files.local_folders import spill_folder

VARIABLES = ("SPARK_EXECUTOR_DIRS", "LOCAL_DIRS", "SPARK_LOCAL_DIRS")


@pytest.fixture
def disks(tmp_path, monkeypatch):
    """Three folders; no environment variable that names local folders is set."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    folders = [tmp_path / name for name in "abc"]
    for folder in folders:
        folder.mkdir()
    return [str(folder) for folder in folders]


@pytest.mark.parametrize(("name", "separator"), [*zip(VARIABLES, (":", ",", ","), strict=True)])
def test_all_folders_are_used_in_turn(disks, monkeypatch, name, separator):
    monkeypatch.setenv(name, separator.join(disks))
    assert [spill_folder(turn) for turn in range(5)] == [*disks, *disks[:2]]


def test_missing_full_or_read_only_folders_are_skipped(disks, monkeypatch):
    monkeypatch.setenv("SPARK_EXECUTOR_DIRS", ":".join(["/nowhere", *disks, "/proc"]))
    free = local_folders.free_bytes
    assert free("/proc") == -1
    monkeypatch.setattr(
        local_folders, "free_bytes", lambda folder: 1000 if folder == disks[1] else free(folder)
    )
    assert {spill_folder(turn) for turn in range(9)} == {disks[0], disks[2]}


def test_if_all_folders_are_full_the_one_with_most_space_is_used(disks, monkeypatch):
    monkeypatch.setenv("LOCAL_DIRS", ",".join(disks))
    room = dict(zip(disks, (10, 30, -1), strict=True))
    monkeypatch.setattr(local_folders, "free_bytes", room.get)
    assert {spill_folder(turn) for turn in range(3)} == {disks[1]}


def test_without_spark_the_systems_folder_is_used(disks, monkeypatch):
    monkeypatch.setenv("TMPDIR", disks[0])
    monkeypatch.setattr("tempfile.tempdir", None)
    assert spill_folder() == disks[0]
