"""`com.yahoo.ml.caffe`: the names and signatures that CaffeOnSpark's Python programs use."""

import inspect
import re
import shutil
from base64 import b64decode
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from hearth import caffeonspark

DIGITS = Path(__file__).resolve().parents[2] / "python" / "hearth" / "demo"
SOLVER = str(DIGITS / "lenet_memory_solver.prototxt")


class Rows:
    """A fake DataFrame with the methods that a table uses."""

    def __init__(self, *rows):
        self._rows = rows

    def take(self, count):
        return list(self._rows[:count])


def images_in(text):
    found = re.findall(r"<img src='data:image/png;base64,([^']+)' />", text)
    return [np.asarray(Image.open(BytesIO(b64decode(data)))) for data in found]


def test_the_modules_have_upstreams_names():
    from com.yahoo.ml.caffe.CaffeOnSpark import CaffeOnSpark
    from com.yahoo.ml.caffe.Config import Config
    from com.yahoo.ml.caffe.DataSource import DataSource
    from com.yahoo.ml.caffe.RegisterContext import registerContext, registerSQLContext

    assert issubclass(CaffeOnSpark, caffeonspark.CaffeOnSpark)
    assert (Config, DataSource) == (caffeonspark.Config, caffeonspark.DataSource)
    assert registerContext(None) is registerSQLContext(None) is None


def test_calls_have_upstreams_signatures():
    from com.yahoo.ml.caffe.CaffeOnSpark import CaffeOnSpark
    from com.yahoo.ml.caffe.Config import Config
    from com.yahoo.ml.caffe.DataSource import DataSource

    expected = {
        CaffeOnSpark.train: ["train_source"],
        CaffeOnSpark.trainWithValidation: ["train_source", "validation_source"],
        CaffeOnSpark.test: ["source"],
        CaffeOnSpark.features: ["source"],
        DataSource.getSource: ["conf", "isTraining"],
        DataSource: ["sc"],
        Config: ["sc", "args"],
    }
    for call, names in expected.items():
        found = [name for name in inspect.signature(call).parameters if name != "self"]
        assert found == names, call
    assert list(inspect.signature(CaffeOnSpark).parameters)[:2] == ["sc", "sqlContext"]


def test_a_config_takes_a_dict_of_texts_with_and_without_dashes():
    from com.yahoo.ml.caffe.Config import Config

    conf = Config(None, {"-conf": SOLVER, "devices": "1", "-train": "", "features": "ip1,ip2"})
    assert (conf.protoFile, conf.devices, conf.isTraining) == (SOLVER, 1, True)
    assert conf.features == ["ip1", "ip2"]


def test_a_table_shows_rows_with_their_images():
    from com.yahoo.ml.caffe.DisplayUtils import show_df

    pixels = np.arange(12, dtype=np.uint8).reshape(3, 4)
    file = BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    raw = SimpleNamespace(id="0", label="<5>", data=bytearray(pixels), height=3, width=4)
    encoded = SimpleNamespace(id="1", label=7, data=bytearray(file.getvalue()))
    shown = show_df(Rows(raw, encoded, raw), 2)
    assert "&lt;5&gt;" in shown.data
    assert shown.data == shown._repr_html_()
    assert [image.tolist() for image in images_in(shown)] == [pixels.tolist()] * 2


def test_a_table_shows_captions():
    from com.yahoo.ml.caffe.tools.DFConversions import show_captions

    file = BytesIO()
    Image.new("L", (2, 2), 200).save(file, "PNG")
    listed = [byte - 256 if byte > 127 else byte for byte in file.getvalue()]
    row = SimpleNamespace(id=3, data=SimpleNamespace(image=listed), prediction="A cat.")
    shown = show_captions(Rows(row))
    assert "<td>A cat.</td>" in shown
    assert images_in(shown)[0].tolist() == [[200, 200], [200, 200]]


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_a_net_is_shown_as_an_image():
    from com.yahoo.ml.caffe.DisplayUtils import show_network

    shown = show_network(str(DIGITS / "lenet_memory_train_test.prototxt"), "LR")
    image = b64decode(re.search(r"svg\+xml;base64,([^']+)'", shown)[1])
    assert b"conv1" in image
    with pytest.raises(FileNotFoundError):
        show_network("no such file")
