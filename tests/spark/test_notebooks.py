"""The notebooks of examples/notebooks run from the first cell to the last, and draw images."""

import nbformat
import pytest
from conftest import ROOT
from nbclient import NotebookClient

FOLDER = ROOT / "examples" / "notebooks"


def images_of(notebook):
    """Number of images in the output of a notebook's cells."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return sum("image/png" in output.get("data", {}) for output in outputs)


NAMES = ["digits", "tensorflow_feed", "captions", "torch_dataset"]
# Other tests run these trainings without a notebook: tests/tensorflow/test_examples.py,
# test_captions_example.py and tests/torch/test_torch_dataset.py.
LONG = NAMES[1:]


@pytest.mark.timeout(500)  # each takes half a minute to a minute and a half
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.long] * (n in LONG)) for n in NAMES]
)
def test_a_notebook_runs_and_draws_as_it_was_committed(name, tmp_path):
    if name == "tensorflow_feed":
        pytest.importorskip("tensorflow")
    committed = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    run = nbformat.from_dict(committed)
    client = NotebookClient(run, timeout=450, resources={"metadata": {"path": str(FOLDER)}})
    client.execute()  # raises at the first cell that fails
    assert images_of(run) == images_of(committed) > 0


def test_every_notebook_is_run_here():
    assert sorted(NAMES) == sorted(path.stem for path in FOLDER.glob("*.ipynb"))
