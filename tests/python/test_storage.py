"""URIs and plain paths have the meaning that Spark and shells give them."""

import pytest

from hearth.files.uri import local_path, scheme


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("/a/b", "/a/b"),
        ("file:/a/b", "/a/b"),
        ("file:///a/b", "/a/b"),
        ("file:///a/b%20c", "/a/b c"),
        ("file:////a/b", "/a/b"),
        ("//a/b", "/a/b"),
        ("hdfs://host/a", None),
        ("s3a://bucket/a", None),
    ],
)
def test_local_paths_are_recognized(uri, path):
    assert local_path(uri) == path


def test_a_relative_path_is_tried_in_the_working_then_the_solvers_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nets").mkdir()
    (tmp_path / "nets" / "net.prototxt").touch()
    solver = str(tmp_path / "nets" / "solver.prototxt")
    assert local_path("net.prototxt", solver) == str(tmp_path / "nets" / "net.prototxt")
    (tmp_path / "net.prototxt").touch()
    assert local_path("file:net.prototxt", solver) == str(tmp_path / "net.prototxt")


def test_scheme_of_a_plain_path_with_a_colon():
    assert scheme("/data/a:b") == ""
