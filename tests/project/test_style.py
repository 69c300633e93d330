"""The tree passes `make lint`: sizes, formatting, ruff, and clang-tidy for recent changes."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import sizes  # noqa: E402

FUNCTION = """
// Adds.
template <typename T>
T Add(
    T a,
    T b) {
  if (a) {
    return b;
  }
  return a;
}

class Name {
 public:
  Name()
      : a_(1),
        b_(2) {
    Start();
  }
};
"""


def test_the_tree_passes_lint():
    command = [sys.executable, str(ROOT / "tools" / "lint.py"), "--no-tidy"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.timeout(960)  # 15 s per file on an idle machine
def test_clang_tidy_passes_on_the_most_changed_files():
    command = [sys.executable, str(ROOT / "tools" / "lint.py"), "--changed", "4"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr


def test_functions_are_measured_from_their_signature():
    assert list(sizes.cpp_functions(FUNCTION)) == [(4, 8), (15, 5)]


def test_methods_and_nested_functions_are_measured():
    text = "class A:\n    def f(self):\n        def g():\n            pass\n        return g\n"
    assert list(sizes.python_functions(text)) == [(2, 4), (3, 2)]


def test_no_two_test_files_share_a_name():
    """pytest imports test files by their base names, so duplicates fail at collection."""
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert sorted(names) == sorted(set(names))


# Files that need the time of day: for dates, file times, logs, and times noted by other hosts.
TIME_OF_DAY = {
    "hearth/base/log_file_sink.cc", "hearth/base/timeline.cc",
    "hearth/trainer/local/local_session.cc",
    "python/hearth/monitoring/watch.py", "python/hearth/doctor/cluster.py",
    "python/hearth/doctor/host_facts.py", "python/hearth/files/forwarded_tokens.py",
    "python/hearth/spark/preflight.py", "python/hearth/spark/token_forwarder.py",
    "python/hearth/tensorflowonspark/model_files.py", "python/hearth/tools/pack_archive.py",
}  # fmt: skip


def test_no_deadline_follows_a_clock_that_may_be_set():
    wall = re.compile(
        r"system_clock|CLOCK_REALTIME|time\(nullptr\)|\btime\.time(_ns)?\(|gettimeofday"
    )
    sources = [*(ROOT / "hearth").rglob("*.cc"), *(ROOT / "python" / "hearth").rglob("*.py")]
    found = {
        str(path.relative_to(ROOT))
        for path in sources
        if not path.stem.endswith(("_test", "_testing")) and wall.search(path.read_text())
    }
    assert found == TIME_OF_DAY
