"""Files with schemes that only a library handles, not the core or Hadoop: one suite for all."""

import itertools
import os
from functools import partial
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from object_store import new_folder, object_stores

from hearth import HearthError
from hearth import data as sources
from hearth.caffe_jobs import remote_files
from hearth.caffeonspark.flag_files import FlagFiles
from hearth.files import library_files
from hearth.files.library_files import LibraryFiles, library_knows, library_system
from hearth.files.remote_copies import RemoteCopies
from hearth.files.uri import serving
from hearth.sources.rank_rows import RankRows


@pytest.fixture(params=["memory", "local", *object_stores()])
def folder(request, tmp_path):
    """The URI of a new folder: in fsspec's memory, in local files by fsspec, or in the store."""
    if request.param == "store":
        yield new_folder()
        return
    if request.param == "local":
        yield f"local://{tmp_path}/folder"
        return
    import fsspec

    yield "memory://box/folder"
    memory = fsspec.filesystem("memory")
    memory.store.clear()
    memory.pseudo_dirs[:] = [""]


@pytest.fixture
def files():
    return LibraryFiles()


def test_a_small_file_is_written_replaced_read_and_deleted(files, folder):
    uri = f"{folder}/a/note.txt"
    files.check_writable("-model", uri)
    assert not files.exists(uri)
    files.write(uri, b"one")
    files.write(uri, b"two two")
    assert files.read(uri) == b"two two"
    assert files.names(f"{folder}/a") == ["note.txt"]
    files.check_readable("-weights", uri)
    files.delete(uri)
    files.delete(uri)
    assert files.names(f"{folder}/a") == []
    assert files.names(f"{folder}/none") == []


def test_files_round_trip(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(library_files, "_COPY_BYTES", 1000)
    copies = RemoteCopies({}, [folder.partition(":")[0]])
    content = {name: os.urandom(size) for name, size in (("a [b]", 2500), ("empty", 0))}
    for name, data in content.items():
        (tmp_path / name).write_bytes(data)
    copies.store([str(tmp_path / name) for name in content], f"{folder}/models")
    assert copies.names(f"{folder}/models") == sorted(content)
    for name, data in content.items():
        copies.fetch(f"{folder}/models/{name}", str(tmp_path / "copy"))
        assert (tmp_path / "copy").read_bytes() == data


def test_an_interrupted_write_leaves_only_the_old_file(files, folder, tmp_path):
    (tmp_path / "model").write_bytes(b"old")
    files.store([str(tmp_path / "model")], folder)

    with pytest.raises(HearthError, match="gone"):
        files.store([str(tmp_path / "model"), str(tmp_path / "gone")], folder)
    with pytest.raises(HearthError):
        files.write(f"{folder}/model", object())
    assert files.names(folder) == ["model"]
    assert files.read(f"{folder}/model") == b"old"


def test_a_missing_file_is_reported_in_one_line(files, folder):
    with pytest.raises(HearthError, match=r"^-weights \S+/none: there is no such file or folder$"):
        files.check_readable("-weights", f"{folder}/none")
    with pytest.raises(HearthError, match=r"^\S+/none: ") as caught:
        files.read(f"{folder}/none")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kept", [True, False])
def test_ranks_read_parquet_there(files, folder, tmp_path, kept):
    paths = [tmp_path / f"part-{i}.parquet" for i in range(3)]
    for i, path in enumerate(paths):
        pq.write_table(pa.table({"id": range(40 * i, 40 * i + 40)}), path, row_group_size=10)
    files.store(list(map(str, paths)), folder)
    source, counts = sources.parquet(folder).pin().select([("id", "n")]), []
    assert [file.size for file in source.pinned.files] == [path.stat().st_size for path in paths]
    rows = RankRows(source, None if kept else 1)
    read = [
        rows.read(rank, 2, lambda *both: counts.append(both))
        if kept
        else next(rows.epochs(rank, 2, 0, lambda *both: counts.append(both)))
        for rank in range(2)
    ]
    numbers = [n for batch in itertools.chain(*read) for n in batch.column("n").to_pylist()]
    assert sorted(numbers) == list(range(120))
    assert {local for _, local in counts} == {False}


def test_a_file_that_was_written_again_is_refused(files, folder, tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": [1]}), path)
    files.store([str(path)], folder)
    rows = RankRows(sources.parquet(folder).pin())
    pq.write_table(pa.table({"id": range(1000)}), path)
    files.store([str(path)], folder)
    with pytest.raises(ValueError, match=r"a.parquet has \d+ bytes instead of \d+"):
        list(rows.read(0, 1))
    files.delete(f"{folder}/a.parquet")
    with pytest.raises((ValueError, OSError, HearthError), match=r"a\.parquet"):
        list(rows.read(0, 1))


def aws(code):
    return OSError(f"When listing objects under key 'm' in bucket 'box': AWS Error {code} during")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (FileNotFoundError("m"), "not_found"),
        (PermissionError("m"), "permission_denied"),
        (OSError(28, "No space left on device"), "resource_exhausted"),
        (TimeoutError(), "unavailable"),
        (ConnectionResetError("gone"), "unavailable"),
        (aws("NO_SUCH_BUCKET"), "not_found"),
        (aws("ACCESS_DENIED"), "permission_denied"),
        (aws("SLOW_DOWN"), "unavailable"),
        (aws("NETWORK_CONNECTION"), "unavailable"),
        (aws("UNKNOWN (HTTP status 503)"), "unavailable"),
        (aws("UNKNOWN (HTTP status 403)"), "permission_denied"),
        (RuntimeError("google::cloud::Status(PERMISSION_DENIED: no)"), "permission_denied"),
        (RuntimeError("ContainerNotFound"), "not_found"),
        (RuntimeError("The server is busy. ErrorCode:ServerBusy"), "unavailable"),
        (RuntimeError("Unable to locate credentials"), "permission_denied"),
        (NotImplementedError("append"), "invalid_argument"),
        (RuntimeError("something new"), "internal"),
        (RuntimeError("quota/throttled: something new"), "internal"),  # the word is in a path
    ],
)
def test_only_transient_errors_are_retried(files, tmp_path, monkeypatch, error, code):
    asked = []

    class System:
        def create_dir(self, path, recursive):
            asked.append(path)
            raise error

    monkeypatch.setattr(library_files, "library_system", lambda uri: (System(), "box/m"))
    clock = SimpleNamespace(monotonic=itertools.count().__next__, sleep=lambda seconds: None)
    monkeypatch.setattr(remote_files, "time", clock)
    (tmp_path / "model").write_bytes(b"model")
    with pytest.raises(HearthError, match=r"^x://box/quota/throttled: ") as caught:
        store = partial(files.store, [str(tmp_path / "model")], "x://box/quota/throttled")
        remote_files._retrying(store, 2)
    assert caught.value.code == code
    assert (len(asked) > 1) == (code in ("unavailable", "internal"))


def test_a_busy_store_is_not_taken_for_a_missing_file(files, monkeypatch):
    from fsspec.implementations.memory import MemoryFileSystem

    def busy(self, path, **options):
        raise RuntimeError("The server is busy. ErrorCode:ServerBusy")

    files.write("memory://box/busy/note", b"1")
    monkeypatch.setattr(MemoryFileSystem, "info", busy)
    monkeypatch.setattr(MemoryFileSystem, "isfile", lambda self, path: False)  # like adlfs
    for read in (files.read, files.open_input, files.status):
        with pytest.raises(HearthError, match=r"busy/note: The server is busy") as caught:
            read("memory://box/busy/note")
        assert caught.value.code == "unavailable"


class Hadoop:
    def knows(self, name):
        return name == "s3a"


def test_spark_serves_its_schemes_and_libraries_the_others():
    hadoop = Hadoop()
    for uri in ("/x", "file:///x", "hdfs://h/x", "viewfs://c/x", "s3a://bucket/x"):
        assert serving(hadoop, uri) is hadoop
    assert isinstance(serving(hadoop, "memory://x"), LibraryFiles)
    assert isinstance(serving(None, "memory://x"), LibraryFiles)  # no Hadoop: Spark Connect
    assert serving(None, "nonsense://x") is None


def test_a_per_cent_sign_in_a_path_is_no_escape():
    for scheme in ("s3", "s3a"):
        uri = f"{scheme}://box/hour=10%3A00?region=us-east-1"
        assert library_system(uri)[1] == "box/hour=10%3A00"


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("hdsf:///m", r"-model hdsf:///m: Spark has no file system for this scheme, nor has py"),
        ("adl://store/m", r"-model adl://store/m: .*[Ii]nstall adlfs"),
        ("xyz://me:secret@host/m", r"-model xyz://\*\*\*@host/m: Spark has no"),
    ],
)
def test_a_scheme_without_its_package_is_one_line_that_names_it(uri, said):
    assert not library_knows(uri)
    with pytest.raises(HearthError, match=said) as caught:
        FlagFiles(Hadoop(), "file:///").output("-model", uri)
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)
