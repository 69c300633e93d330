"""docs/caffe.md: the example of a new layer compiles, and the site's table lists every layer."""

import json
import re
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import docs_layers  # noqa: E402

COMMANDS = ROOT / "build" / "compile_commands.json"
BLOCK = re.compile(r"(?ms)^ *```cpp\n(.*?)^ *```$")


def cpp_blocks(text):
    return [textwrap.dedent(block) for block in BLOCK.findall(text)]


def flags_of_the_engine():
    """The compiler command of hearth_caffe without its input, output and precompiled header."""
    for entry in json.loads(COMMANDS.read_text(encoding="utf-8")):
        words = shlex.split(entry["command"])
        if "hearth_caffe.dir" in words[words.index("-o") + 1]:
            kept = [word for word in words[1:] if word.startswith(("-D", "-I", "-std", "-f"))]
            system = [words[i + 1] for i, word in enumerate(words) if word == "-isystem"]
            return [words[0], *kept, *(f"-isystem{folder}" for folder in system)]
    raise AssertionError(f"{COMMANDS} has no file of hearth_caffe")


def compile_errors(source):
    command = [*flags_of_the_engine(), "-fsyntax-only", "-Werror=overloaded-virtual", "-xc++", "-"]
    done = subprocess.run(
        command, input=source, cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    return done.stderr if done.returncode else ""


def test_the_new_layer_and_its_test_are_short():
    text = (ROOT / "docs" / "caffe.md").read_text(encoding="utf-8")
    lines = sum(len(block.splitlines()) for block in cpp_blocks(text))
    assert lines <= 60, "a new layer has become expensive"
    assert f"Layer and test take {lines} lines together." in text


@pytest.mark.skipif(not COMMANDS.exists(), reason="needs a build folder")
@pytest.mark.parametrize("number", [0, 1], ids=["layer", "test"])
def test_the_new_layer_compiles(number):
    blocks = cpp_blocks((ROOT / "docs" / "caffe.md").read_text(encoding="utf-8"))
    assert len(blocks) == 2, "the layer and its test; compile further blocks here, too"
    assert not compile_errors(blocks[number])


@pytest.mark.skipif(not COMMANDS.exists(), reason="needs a build folder")
def test_a_name_that_does_not_exist_is_noticed():
    include = '#include "hearth/caffe/net/layer_registry.h"\n'
    assert "nothing_out" in compile_errors(include + "void F() { hearth::caffe::nothing_out(); }\n")


def test_the_sites_table_describes_every_registered_type_once():
    _caffe = pytest.importorskip("hearth.native._caffe")
    described = docs_layers.families()
    assert sorted(name for types in described for name in types) == _caffe.layer_types()
    assert all(described.values())
    text = (ROOT / "docs" / "caffe.md").read_text(encoding="utf-8")
    page = docs_layers.on_page_markdown(text)
    assert "| Tile | Tile: the bottom repeated along one axis. |" in page.splitlines()


def test_a_files_first_comment_describes_its_types(tmp_path):
    text = '// Two\n// lines.\n#include "x.h"\nregistry.Add<BLayer>("B");registry.Add("a", f);\n'
    (tmp_path / "both.cc").write_text(text)
    (tmp_path / "support.cc").write_text("// Adds no type.\n")
    assert docs_layers.families(tmp_path) == {("a", "B"): "Two lines."}
