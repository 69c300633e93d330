"""tools/check_words.py reports discouraged words; the tree has none."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import check_words  # noqa: E402


def words(source: str, path: str = "hearth/net.cc") -> list[str]:
    """The reported words with their lines."""
    found = [line.split(":") for line in check_words.problems_in(path, source)]
    return [f"{line} {rest.strip()}" for _, line, rest, *_ in found]


def test_the_tree_uses_the_terms():
    assert check_words.problems() == []


def test_comments_and_strings_are_checked():
    assert words("int image = 0;  // a picture\n") == ["1 'picture'"]
    assert words('Throw("bad rows: {}", count);\n') == ["1 'bad rows'"]
    assert words('const char* kText = R"(one\nhears two)";\n') == ["2 'hears'"]
    assert words("char quote = '\"';  // fine\nint rows;\n") == []


def test_identifiers_are_checked_word_by_word():
    assert words("TEST(Net, TellsOfItsPieces) {}\n") == [
        "1 'Tells Of' in TellsOfItsPieces", "1 'Pieces' in TellsOfItsPieces",
    ]  # fmt: skip
    source = "bool is_stranger_ = kRoster;\nint bad_rows = HTTPDoor(house);\n"
    assert words(source) == [
        "1 'stranger' in is_stranger_",
        "1 'Roster' in kRoster",
        "2 'bad rows' in bad_rows",
        "2 'Door' in HTTPDoor",
        "2 'house' in house",
    ]
    source = "class ToldNode:\n    def f(self, far):\n        return _FAR_ROWS\n"
    assert words(source, "python/a.py") == [
        "1 'Told' in ToldNode",
        "2 'far' in far",
        "3 'FAR ROWS' in _FAR_ROWS",
        "3 'FAR' in _FAR_ROWS",
    ]
    assert words("val roster = 1\n", "jvm/A.scala") == ["1 'roster' in roster"]
    assert words("", "python/far_files.py")[0] == "1 'far files' in far_files"


def test_parts_of_words_and_allowed_identifiers_are_not_reported():
    source = "friend class Placement; void PlaceWindow(); int room; TEST(A, AsFarAsB);\n"
    assert words(source + "int strangely, heard_from = retold;\n") == ["2 'heard' in heard_from"]
    assert words("maxBadRecords = 1\n", "tests/a.py") == []
    assert words("place = 1\n", "python/hearth/ranks/a.py") == []


def test_python_and_markdown_are_checked():
    source = 'def f(rows):\n    """Reads pieces."""\n    return rows  # a piece\n'
    assert words(source, "python/a.py") == ["2 'pieces'", "3 'piece'"]
    assert words("def test_it_hears_nothing():\n    pass\n", "tests/a.py") == [
        "1 'hears' in test_it_hears_nothing"
    ]
    assert words('f(f"{place} of {place.start}, a place")\n', "tests/a.py") == ["1 'place'"]
    page = "A `piece`.\n\n```python\npiece = 1\n```\n\nA piece.\n"
    assert words(page, "docs/a.md") == ["7 'piece'"]


def test_scala_and_comments_of_scripts_are_checked():
    source = '/** Splits\n  * of its own. */\nval name = s"bad rows" // anew\n'
    assert sorted(words(source, "jvm/A.scala")) == ["2 'of its own'", "3 'anew'", "3 'bad rows'"]
    for path in ("tools/a.sh", "Makefile", "tests/CMakeLists.txt", ".github/ci.yml"):
        assert words("#!/pieces\necho pieces # a piece\n  # Two\n", path) == ["2 'piece'"]


def test_a_phrase_is_found_across_lines_of_a_comment():
    assert words("// One of\n// its own.\nint a;\n// its own\n") == ["1 'of its own'"]


def test_the_same_word_in_another_sense_is_not_reported():
    assert words("// Sorts in place. So far there is room for both. Deals with nulls.\n") == []


def test_the_opening_comment_of_a_file_names_it():
    assert words("// What a layer does.\n") == ["1 begins with What"]
    assert words("// Layers.\n// What a layer does.\n") == []


def test_allowances_apply_only_to_their_paths(monkeypatch):
    monkeypatch.setattr(check_words, "ALLOWED", {"hearth/ring/": [r"\bpiece\b"]})
    assert words("// A piece.\n", "hearth/ring/ring.h") == []
    assert words("// A piece.\n", "hearth/base/error.h") == ["1 'piece'"]
