"""Names in anonymous namespaces, in modules that compile several files together."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import check_names  # noqa: E402


def test_no_two_files_of_a_module_define_one_name():
    assert check_names.clashes() == []


def test_the_check_sees_functions_types_and_constants(tmp_path):
    module = tmp_path / check_names.MODULES[0]
    module.mkdir(parents=True)
    shared = "namespace hearth {\nnamespace {\n\nstruct Errors {\n  int own;\n};\n\n"
    shared += "constexpr int kSize = 1;\n\nvoid Check(int value) {\n  Other(value);\n}\n\n"
    shared += "template <typename T>\nT Least(T value) {\n  return value;\n}\n\n"
    one = shared + "void Solver::Step() {}\n\n}  // namespace\n}  // namespace hearth\n"
    (module / "one.cc").write_text("#include <vector>\n\n" + one)
    (module / "two.cc").write_text(one.replace("Solver::", "Net::"))
    (module / "two_test.cc").write_text(one)
    (module / "three.cc").write_text("void Check(int) {}\nclass Errors;\n")  # not anonymous
    found = [line.split()[0] for line in check_names.clashes(tmp_path)]
    assert found == ["Check", "Errors", "Least", "kSize"]


def test_tests_are_compared_only_with_each_other(tmp_path):
    module = tmp_path / check_names.MODULES[0]
    module.mkdir(parents=True)
    text = "\nnamespace {\n\nusing A = B;\n\nRow Of(const A& first) {\n}\n\n}  // namespace\n"
    (module / "one_test.cc").write_text(text)
    (module / "one.cc").write_text(text)
    assert check_names.clashes(tmp_path) == []
    (module / "two_testing.cc").write_text(text.replace("const A&", "B"))
    assert [line.split()[0] for line in check_names.clashes(tmp_path)] == ["Of"]


def test_names_of_two_namespaces_and_equal_aliases_do_not_clash(tmp_path):
    module = tmp_path / check_names.MODULES[0]
    module.mkdir(parents=True)
    text = "namespace hearth::a {{\nnamespace {{\n\nusing Json = nlohmann::json;\n{}\n\n"
    text += "}}  // namespace\n"
    (module / "one.cc").write_text(text.format("void Load() {}"))
    (module / "two.cc").write_text(text.format("void Save() {}"))
    (module / "three.cc").write_text(text.format("void Load() {}").replace("::a", "::b"))
    assert check_names.clashes(tmp_path) == []
    (module / "two.cc").write_text(text.format("void Load() {}").replace("nlohmann", "other"))
    assert [line.split()[0] for line in check_names.clashes(tmp_path)] == ["Json", "Load"]


def test_folders_of_separate_programs_are_skipped(tmp_path):
    apart = tmp_path / check_names.MODULES[0] / "stand_in"
    apart.mkdir(parents=True)
    for folder in (apart.parent, apart):
        (folder / "one.cc").write_text("\nnamespace {\n\nint Of() {}\n\n}  // namespace\n")
    assert check_names.clashes(tmp_path) == []
