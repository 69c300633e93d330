"""Hearth's HDF5, LevelDB and LMDB in one process with those of other packages."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

GOLDEN = Path(__file__).parent.parent / "data" / "golden" / "files"

WORK = {
    "h5py": f"""
import h5py
with h5py.File("{GOLDEN}/part0.h5") as file:
    assert file["data"].shape == (4, 2, 3)
""",
    "tensorflow": """
import tensorflow as tf
assert tf.io.decode_raw(b"ab", tf.uint8).numpy().tolist() == [97, 98]
""",
    "caffe": f"""
import tempfile, pathlib
from hearth.native import _caffe
for backend, records in (("LEVELDB", "db_leveldb"), ("LMDB", "db_lmdb")):
    net = _caffe.Net('layer {{ name: "d" type: "Data" top: "x" top: "y" data_param {{ '
                     f'source: "{GOLDEN}/{{records}}" batch_size: 3 backend: {{backend}} }}}} }}}}',
                     "TEST")
    net.forward()
    assert net.blobs["x"].data.shape == (3, 3, 6, 5)
with tempfile.TemporaryDirectory() as folder:
    net.save(folder + "/a.h5")
    assert pathlib.Path(folder, "a.h5").stat().st_size > 0
""",
}


@pytest.mark.parametrize(
    "order", [("caffe", "h5py", "tensorflow"), ("tensorflow", "h5py", "caffe")], ids="-".join
)
def test_libraries_of_several_packages_do_not_clash(order: tuple[str, ...]) -> None:
    present = [name for name in order if name == "caffe" or importlib.util.find_spec(name)]
    program = "".join(WORK[name] for name in (*present, *present))
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=280, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
