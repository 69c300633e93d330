"""docs/checks.md lists every check, and the tests that it names exist."""

import re
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CHECKS = 28
ROW = re.compile(r"^\| A(\d+) \| (.+?) \| (.+?) \|$", re.MULTILINE)
TEST = re.compile(r"^TEST(?:_F|_P)?\((\w+),\s*(\w+)\)", re.MULTILINE)
# `file::name` is a Python test or the Suite.Test of a C++ test; a `file` alone is a bench.
SHOWN = re.compile(r"`([\w/.]+)(?:::([\w.]+))?`")


def rows():
    text = (ROOT / "docs" / "checks.md").read_text(encoding="utf-8")
    return {int(number): (said, SHOWN.findall(tests)) for number, said, tests in ROW.findall(text)}


def is_there(file, name):
    path = ROOT / file
    if not path.is_file():
        return False
    text = path.read_text(encoding="utf-8")
    if not name:
        return file.startswith("bench/")
    if path.suffix == ".py":
        return re.search(rf"^def {name}\(", text, re.MULTILINE) is not None
    suite, _, test = name.partition(".")
    return re.search(rf"^TEST(_F|_P)?\({suite}, {test}\)", text, re.MULTILINE) is not None


def test_every_check_is_listed_with_tests_that_are_there():
    listed = rows()
    assert sorted(listed) == list(range(1, CHECKS + 1))
    for number, (said, tests) in listed.items():
        assert said.strip() and tests, f"A{number} names no test"
        missing = [(file, name) for file, name in tests if not is_there(file, name)]
        assert not missing, f"A{number}: {missing}"


def test_a_test_with_a_checks_number_stands_in_its_row():
    numbered = re.compile(r"^def (test_a(\d\d)_\w+)\(", re.MULTILINE)
    listed = rows()
    for path in (ROOT / "tests").rglob("test_*.py"):
        for name, number in numbered.findall(path.read_text(encoding="utf-8")):
            row = (str(path.relative_to(ROOT)), name)
            assert row in listed[int(number)][1], f"{row} is not in the row of A{int(number)}"


def test_an_unknown_name_is_reported():
    assert is_there("tests/project/test_checks.py", "test_an_unknown_name_is_reported")
    assert not is_there("tests/project/test_checks.py", "test_that_nobody_wrote")
    assert not is_there("tests/project/gone.py", "test_x")
    assert not is_there("hearth/trainer/exactness_test.cc", "ExactnessTest.NobodyWroteIt")


def test_filters_of_test_programs_match_tests():
    """Filters of the Makefile, the GPU tests and the RDMA guest: tests may have been renamed."""
    sources = [path.read_text() for path in (ROOT / "hearth").rglob("*_test.cc")]
    tests = {".".join(found) for text in sources for found in TEST.findall(text)}
    filters = {
        "Makefile": r"NOT_SANITIZED := (?:\$\(NOT_SANITIZED\):)?(.*)",
        "tools/gpu/run_parts.py": r'DEVICE_TESTS = \(\s*"(.*)"',
        "tests/rdma/guest.sh": r"^ *check .* '(\S+)'",
    }
    for file, filtered in filters.items():
        found = re.findall(filtered, (ROOT / file).read_text(), re.MULTILINE)
        assert found, file
        for pattern in ":".join(found).split(":"):
            # Text before and after slashes names a parameterized test's instances.
            name = max(pattern.split("/"), key=lambda part: len(part.strip("*")))
            part = name.strip("*")
            assert any(fnmatch(test, f"*{part}*") for test in tests) or any(
                part in text for text in sources
            ), f"{file}: {pattern} matches no test"
