"""Folders of sealed checkpoints: on local disks, in HDFS, and on storage without rename."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from object_store import new_folder, object_stores
from webhdfs_server import WebHdfs

from hearth import HearthError
from hearth.checkpoints import checkpoint_folder
from hearth.checkpoints.checkpoint_folder import CheckpointFolder
from hearth.checkpoints.seal import Part, Seal


class Folder(CheckpointFolder):
    """A checkpoint folder that collects its reports."""

    def __init__(self, uri):
        self.reports = []
        super().__init__(str(uri), self.reports.append)

    def save(self, step, content=b"weights", keep=2):
        draft = self.begin(step)
        with self.writing(draft):
            with draft.file("model.pt") as file:
                file.write(content)
            seal = draft.seal({"model": Part(step, ("model.pt",))}, world=1)
        self.remove_older(keep, seal.number)
        return draft.name

    def read(self):
        """(step, content) of the newest checkpoint."""
        found = self.newest()
        if found is None:
            return None
        try:
            return found.seal.step, found.files["model.pt"].read()
        finally:
            found.close()


@pytest.fixture(params=["file", "hdfs", "local", "memory", *object_stores()])
def uri(request, tmp_path):
    if request.param == "file":
        yield str(tmp_path / "run")
    elif request.param == "store":
        yield new_folder()
    elif request.param == "local":
        yield f"local://{tmp_path}/run"
    elif request.param == "hdfs":
        with WebHdfs() as server:
            yield f"{server.uri}/run"
    else:
        import fsspec

        yield "memory://box/run"
        memory = fsspec.filesystem("memory")
        memory.store.clear()
        memory.pseudo_dirs[:] = [""]


def names(folder):
    return sorted(os.listdir(folder.uri))


def test_the_newest_two_are_kept_and_the_newest_is_read(uri):
    folder = Folder(uri)
    assert folder.read() is None
    saved = [folder.save(step, b"%d" % step) for step in (10, 20, 30)]
    assert folder.read() == (30, b"30")
    assert sorted(folder._store.names(uri)) == saved[1:]
    assert Folder(uri).read() == (30, b"30")
    assert folder.reports == []


def test_a_program_that_starts_over_has_the_newest_checkpoint_at_a_lower_step(uri):
    folder = Folder(uri)
    for step in (100, 200, 10):
        folder.save(step, b"%d" % step)
    assert folder.read() == (10, b"10")


def test_a_large_file_is_written_and_compared_in_blocks(uri, monkeypatch):
    monkeypatch.setattr(checkpoint_folder, "_BLOCK_BYTES", 1000)
    content = os.urandom(12345)
    folder = Folder(uri)
    folder.save(1, content)
    assert folder.read() == (1, content)


def cut(path):
    path.write_bytes(path.read_bytes()[:-1])


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def mix(path):
    """Replaces the file by one of equal size, as from another checkpoint."""
    path.write_bytes(b"WEIGHTS")


@pytest.mark.parametrize(
    ("name", "damage", "why"),
    [
        ("model.pt", cut, "model.pt has 6 bytes, but its seal says 7 bytes"),
        ("model.pt", flip, "the content of model.pt has changed"),
        ("model.pt", mix, "the content of model.pt has changed"),
        ("model.pt", os.unlink, "model.pt is missing, but its seal says 7 bytes"),
        ("seal.json", cut, "seal.json is not a complete seal"),
        ("seal.json", flip, "seal.json"),
        ("seal.json", os.unlink, "it has no seal"),
        ("seal.json", lambda path: path.write_bytes(b""), "seal.json is not a complete seal"),
        (
            "seal.json",
            lambda path: path.write_bytes(b"[" * 100_000),
            "seal.json is not a complete seal",
        ),
        ("seal.json", lambda path: os.truncate(path, 1 << 30), "seal.json has 1073741824 bytes"),
    ],
)
def test_a_damaged_checkpoint_is_skipped_and_reported(tmp_path, name, damage, why):
    folder = Folder(tmp_path)
    folder.save(1)
    damaged = folder.save(2)
    damage(tmp_path / damaged / name)
    assert folder.read() == (1, b"weights")
    assert len(folder.reports) == 1
    assert f"/{damaged} is damaged and was skipped: " in folder.reports[0]
    assert why in folder.reports[0]


def test_a_damaged_checkpoint_does_not_count_as_one_of_the_two_kept(tmp_path):
    folder = Folder(tmp_path)
    kept = [folder.save(1)]
    flip(tmp_path / folder.save(2) / "model.pt")
    assert folder.read() == (1, b"weights")
    kept.append(folder.save(3))
    assert names(folder) == kept


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (
            {"files": {"../model.pt": {"bytes": 7, "sha256": ""}}},
            "is not the name of a file in its folder",
        ),
        ({"files": {}}, "model.pt has no size and checksum"),
        ({"files": {"model.pt": {"bytes": "7", "sha256": ""}}}, "has no size and checksum"),
        ({"step": "2"}, "must be integers"),
        ({"parts": 3}, "wrong fields"),
        ({"number": 7}, "its seal belongs to checkpoint 7"),
        ({"more": 1}, "wrong fields"),
    ],
)
def test_an_invalid_seal_marks_a_damaged_checkpoint(tmp_path, change, why):
    from hearth.checkpoints.seal import _sum

    folder = Folder(tmp_path)
    seal = tmp_path / folder.save(2) / "seal.json"
    values = {**json.loads(seal.read_text()), **change}
    del values["sha256"]
    seal.write_text(json.dumps({**values, "sha256": _sum(values)}))
    assert folder.read() is None
    assert why in folder.reports[0]


def test_a_seal_reads_as_it_was_written():
    seal = Seal(3, 40, 2, {"model": Part(40, ())}, {})
    assert Seal.read(seal.text().encode()) == seal


@contextmanager
def in_a_child_process():
    """Forks; yields True in the child, which must kill itself, and False in the parent."""
    pid = os.fork()
    if pid == 0:
        try:
            yield True
        finally:
            os._exit(0)
    yield False
    assert os.WTERMSIG(os.waitpid(pid, 0)[1]) == signal.SIGKILL


@pytest.mark.parametrize("scheme", ["", "local://"])
def test_a_writer_that_is_killed_before_the_seal_leaves_the_older_one(tmp_path, scheme):
    uri = f"{scheme}{tmp_path}"
    kept = [Folder(uri).save(1)]
    with in_a_child_process() as child:
        if child:
            draft = Folder(uri).begin(2)
            with draft.file("model.pt") as file:
                file.write(b"half")
            os.kill(os.getpid(), signal.SIGKILL)
    folder = Folder(uri)
    assert len(os.listdir(tmp_path)) == 2
    assert folder.read() == (1, b"weights")
    assert len(folder.reports) == (scheme != "")  # local:// uses final names at once
    kept.append(folder.save(2))
    assert sorted(os.listdir(tmp_path)) == kept  # the killed process's files are removed
    assert folder.read() == (2, b"weights")


def test_files_of_others_in_the_folder_stay_and_are_not_read(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "checkpoint-7").mkdir()
    (tmp_path / "checkpoint-000009-step-9.bak").mkdir()
    (tmp_path / "checkpoint-000001-step-5").write_text("a file, not a folder")
    folder = Folder(tmp_path)
    assert folder.read() is None
    assert "checkpoint-000001-step-5 is damaged" in folder.reports[0]
    saved = [folder.save(step) for step in (1, 2, 3)]
    assert folder.read() == (3, b"weights")
    assert {*names(folder)} >= {"notes.txt", "checkpoint-7", *saved[1:]}
    assert "checkpoint-000009-step-9.bak" in names(folder)


def test_a_full_disk_leaves_only_the_older_checkpoint(tmp_path):
    folder = Folder(tmp_path)
    kept = folder.save(1)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, before[1]))
    try:
        with pytest.raises(HearthError) as found:
            folder.save(2, bytes(3 << 20))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    text = str(found.value)
    assert text.startswith(f"checkpoint-000002-step-2 cannot be written to {tmp_path}: ")
    assert "File too large" in text and "\n" not in text
    assert names(folder) == [kept]
    assert folder.read() == (1, b"weights")


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path):
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(HearthError, match=r"the checkpoint of step 1 cannot be written to .*/file"):
        Folder(tmp_path / "file").save(1)


def test_a_scheme_that_is_not_known_is_an_error():
    with pytest.raises(HearthError, match="nowhere"):
        Folder("nowhere://box/run").save(1)


def test_two_programs_that_write_to_one_folder_get_an_error(tmp_path):
    one, other = Folder(tmp_path), Folder(tmp_path)
    drafts = [one.begin(1), other.begin(1)]
    for folder, draft in zip((one, other), drafts, strict=True):
        with draft.file("model.pt") as file:
            file.write(b"weights")
        if folder is one:
            draft.seal({"model": Part(1, ("model.pt",))}, world=1)
    with pytest.raises(HearthError, match="a folder has that name"), other.writing(drafts[1]):
        drafts[1].seal({"model": Part(1, ("model.pt",))}, world=1)
    assert names(one) == ["checkpoint-000001-step-1"]


def test_an_older_one_that_cannot_be_removed_is_reported_and_no_error(tmp_path, monkeypatch):
    folder = Folder(tmp_path)
    monkeypatch.setattr(folder, "_remove", lambda name: shutil.rmtree("/nowhere/there"))
    for step in (1, 2, 3):
        folder.save(step)
    assert "an older checkpoint cannot be removed from" in folder.reports[0]
    assert folder.read() == (3, b"weights")
    assert len(names(folder)) == 3


def test_a_file_that_cannot_be_read_is_not_taken_for_damaged(tmp_path, monkeypatch):
    folder = Folder(tmp_path)
    folder.save(1)
    folder.save(2)

    def refuse(uri):
        raise PermissionError("not you")

    monkeypatch.setattr(
        folder, "_store", SimpleNamespace(**_methods(folder._store), open_input=refuse)
    )
    with pytest.raises(HearthError, match="not you") as found:
        folder.read()
    assert found.value.code == "permission_denied"
    assert folder.reports == []


def _methods(store):
    return {name: getattr(store, name) for name in ("names", "status", "renames_folders")}
