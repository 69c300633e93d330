"""The Python blocks of the documentation run unchanged, one by one."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = (
    "caffeonspark",
    "caffeonspark_sources",
    "checkpoints",
    "cluster",
    "data",
    "horovod",
    "inference",
    "keras",
    "ml",
    "platforms",
    "pycaffe",
    "pytorch",
    "start/caffe",
    "start/keras",
    "start/pytorch",
    "start/spark_ml",
    "start/tensorflow",
    "tables",
    "tensorflow",
)
DOCUMENTS = ("README.md", *(f"docs/{name}.md" for name in PAGES))


def blocks():
    for name in DOCUMENTS:
        text = (ROOT / name).read_text()
        for found in re.finditer(r"(?ms)^```python\n(.*?)^```", text):
            line = text[: found.start()].count("\n") + 2
            yield pytest.param(name, line, found[1], id=f"{name}:{line}")


@pytest.mark.parametrize(("name", "line", "block"), list(blocks()))
def test_a_block_runs_as_pasted(spark, digits, tmp_path, monkeypatch, name, line, block):
    for file in digits.folder.glob("lenet_*.prototxt"):
        shutil.copy(file, tmp_path)
    (tmp_path / "work").symlink_to(digits.folder / "work")
    solver = tmp_path / "lenet_cos_solver.prototxt"
    solver.write_text(re.sub(r"(?m)^max_iter: .*", "max_iter: 20", solver.read_text()))
    monkeypatch.chdir(tmp_path)
    # Redirects files from /tmp, and numbers the lines as in the document.
    code = "\n" * (line - 1) + block.replace("/tmp/", f"{tmp_path}/")
    exec(compile(code, str(ROOT / name), "exec"), {"__name__": "__main__"})
