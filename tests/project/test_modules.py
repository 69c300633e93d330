"""Includes and imports follow the order of the modules; the check reports violations."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import check_modules  # noqa: E402


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_every_arrow_points_up_the_list():
    assert check_modules.wrong_arrows(ROOT) == []


def modules_of_the_page(table):
    """The names in the first column of an ARCHITECTURE.md table."""
    page = (ROOT / "ARCHITECTURE.md").read_text()
    _, _, rest = page.partition(f"| `{table}/` | owns | may use |\n")
    rows = rest.partition("\n\n")[0].splitlines()[1:]
    return [row.split("`")[1].rstrip("/") for row in rows]


def test_the_page_lists_the_modules_that_exist():
    for table, known in (
        ("hearth", check_modules.MAY_USE),
        ("python/hearth", check_modules.PYTHON_MAY_USE),
    ):
        folders = {init.parent.name for init in (ROOT / table).glob("*/*.*")} - {"__pycache__"}
        assert sorted(modules_of_the_page(table)) == sorted(folders)
        assert folders <= set(known)


def test_an_include_that_points_down_is_named(tmp_path):
    write(tmp_path / "ring" / "ring.h", '#include "hearth/trainer/job/job.h"\n')
    (wrong,) = check_modules.wrong_includes(tmp_path)
    assert "ring.h includes trainer, which ring may not use" in wrong


def test_an_arrow_within_caffe_that_points_down_is_named(tmp_path):
    write(tmp_path / "caffe" / "net" / "a.h", '#include "hearth/caffe/solver/solver.h"\n')
    write(tmp_path / "caffe" / "solver" / "b.h", '#include "hearth/caffe/net/net.h"\n')
    write(tmp_path / "caffe" / "misc.h", '#include "hearth/caffe/net/net.h"\n')
    misc, wrong = check_modules.wrong_includes(tmp_path)
    assert "misc.h is not a folder of caffe" in misc
    assert "a.h includes caffe/solver/solver.h, which caffe/net may not use" in wrong


def test_a_folder_uses_no_file_on_top_of_its_module_but_its_tests_may(tmp_path):
    include = '#include "hearth/collective/group.h"\n'
    for name in ("connect.cc", "shared_memory/arena.cc", "shared_memory/arena_test.cc"):
        write(tmp_path / "collective" / name, include)
    (wrong,) = check_modules.wrong_includes(tmp_path)
    rule = "collective/group.h, which collective/shared_memory may not use"
    assert f"arena.cc includes {rule}" in wrong


def test_only_tests_include_test_support(tmp_path):
    include = '#include "hearth/ring/testing/ring_testing.h"\n'
    for name in ("ring.cc", "ring_test.cc", "testing/ring_testing.cc", "reader_testing.h"):
        write(tmp_path / "ring" / name, include)
    assert [line.partition("/ring/")[2] for line in check_modules.wrong_includes(tmp_path)] == [
        "reader_testing.h is test support: move it to " + str(tmp_path / "ring" / "testing"),
        "reader_testing.h includes ring/testing/ring_testing.h, which only tests may use",
        "ring.cc includes ring/testing/ring_testing.h, which only tests may use",
    ]


def test_an_unknown_module_is_named(tmp_path):
    write(tmp_path / "misc" / "a.cc", "int a;\n")
    (wrong,) = check_modules.wrong_includes(tmp_path)
    assert "misc is not a module" in wrong


def test_an_import_that_points_down_is_named_also_within_a_function(tmp_path):
    package = tmp_path / "hearth"
    write(package / "__init__.py", "")
    write(package / "cluster" / "watch.py", "")
    write(
        package / "rows" / "pickles.py",
        "def load():\n    from hearth.cluster import watch\n    return watch\n",
    )
    (wrong,) = check_modules.wrong_imports(package)
    assert "pickles.py imports hearth.cluster.watch, which rows may not use" in wrong


def test_a_side_of_the_cluster_may_not_use_a_later_one(tmp_path):
    package = tmp_path / "hearth"
    write(package / "__init__.py", "")
    write(package / "cluster" / "channel.py", "from hearth.cluster.node import feed\n")
    write(package / "cluster" / "node" / "feed.py", "from hearth.cluster.driver import watch\n")
    write(package / "cluster" / "driver" / "watch.py", "from hearth.cluster.task import start\n")
    write(package / "cluster" / "task" / "start.py", "from hearth.cluster.node import names\n")
    write(package / "cluster" / "node" / "names.py", "")
    assert [line.rpartition("/")[2] for line in check_modules.wrong_imports(package)] == [
        "channel.py imports hearth.cluster.node.feed, which cluster may not use",
        "feed.py imports hearth.cluster.driver.watch, which cluster may not use",
    ]


def test_a_circle_of_imports_is_named_also_one_of_type_hints(tmp_path):
    package = tmp_path / "hearth"
    write(package / "__init__.py", "")
    write(package / "rows" / "a.py", "from hearth.rows import b\n")
    write(package / "rows" / "b.py", "from hearth.rows.a import thing\n")
    (wrong,) = check_modules.wrong_imports(package)
    assert "circle" in wrong and "hearth.rows.a" in wrong
    text = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from hearth.rows import a\n"
    write(package / "rows" / "b.py", text)
    (wrong,) = check_modules.wrong_imports(package)
    assert "circle" in wrong and "hearth.rows.a" in wrong
    write(package / "rows" / "b.py", "")
    assert check_modules.wrong_imports(package) == []
