"""HDF5 files whose damage crashes the library that reads them."""

import subprocess
import sys
from pathlib import Path

import pytest

CORPUS = Path(__file__).resolve().parents[1] / "fuzz" / "corpus" / "hdf5"

READS = """
import sys
import caffe
from hearth import HearthError

path, folder = sys.argv[1:]
open(folder + "/list.txt", "w").write(path + "\\n")
data = f'''layer {{ name: "d" type: "HDF5Data" top: "a" top: "b"
  hdf5_data_param {{ source: "{folder}/list.txt" batch_size: 1 }} }}'''
open(folder + "/data.prototxt", "w").write(data)
open(folder + "/net.prototxt", "w").write('layer { name: "i" type: "Input" top: "x" }')
for read in (
    lambda: caffe.Net(folder + "/data.prototxt", caffe.TEST),
    lambda: caffe.Net(folder + "/net.prototxt", caffe.TEST).load_hdf5(path),
):
    try:
        read()
    except (HearthError, ValueError, FileNotFoundError) as error:
        print(error)
"""


@pytest.mark.parametrize("name", ["crashes_library", "crashes_library_too"])
def test_a_file_that_crashes_the_library_costs_one_line(name, tmp_path):
    file = tmp_path / "damaged.h5"
    file.write_bytes((CORPUS / name).read_bytes())
    ran = subprocess.run(
        [sys.executable, "-c", READS, file, tmp_path], capture_output=True, text=True, timeout=240
    )
    assert ran.returncode == 0, ran.stderr
    lines = ran.stdout.splitlines()
    assert len(lines) == 2 and all(str(file) in line for line in lines), ran.stdout
    assert "stack smashing" not in ran.stderr
