"""Lines that commits changed, which select the files for clang-tidy and the sanitizers."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
from git_changes import changed_lines, counted  # noqa: E402

TEXT = "".join(f"line {number}\n" for number in range(100))


def git(folder, *words):
    words = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", "-C", str(folder), *words]
    subprocess.run(words, check=True, capture_output=True)


def test_files_that_were_only_renamed_have_not_changed(tmp_path):
    git(tmp_path, "init", "-q")
    for name in ("old/same.cc", "old/edited.cc", "stays.cc"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name + "\n" + TEXT)
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "first")
    (tmp_path / "old").rename(tmp_path / "new")
    (tmp_path / "new" / "edited.cc").write_text("old/edited.cc\n" + TEXT + "one more\n")
    (tmp_path / "stays.cc").write_text(TEXT + "and more\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "second")
    found = changed_lines("diff", "HEAD~1", "--", "*.cc", root=tmp_path)
    assert found == {"new/edited.cc": 1, "stays.cc": 2}
    assert changed_lines("log", "-5", "--format=", "--", "*.cc", root=tmp_path) == found


def test_changes_before_a_rename_are_those_of_the_new_file(tmp_path):
    git(tmp_path, "init", "-q")
    (tmp_path / "old").mkdir()
    for text in ("", "a\nb\n"):
        (tmp_path / "old" / "edited.cc").write_text(TEXT + text)
        git(tmp_path, "add", ".")
        git(tmp_path, "commit", "-qm", "edit")
    (tmp_path / "old").rename(tmp_path / "new")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "rename")
    found = changed_lines("log", "-5", "--format=", "--", "*.cc", root=tmp_path)
    assert found == {"new/edited.cc": 2}


def test_without_a_repository_nothing_has_changed(tmp_path):
    assert changed_lines("diff", "HEAD", "--", "*.cc", root=tmp_path) == {}


def test_renames_are_read_in_each_form_that_git_prints():
    numstat = (
        "3\t1\thearth/{a => b}/x.cc\n\n2\t0\thearth/{a => }/y.cc\n1\t1\tz.cc => hearth/w.cc\n"
        "-\t-\ti.png\n"
    )
    assert counted(numstat) == {"hearth/b/x.cc": 4, "hearth/y.cc": 2, "hearth/w.cc": 2}
