"""caffe.proto.caffe_pb2: protobuf classes of Caffe's messages, made from the engine's table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hearth import caffe
from hearth.native import _core

pb = pytest.importorskip("google.protobuf", reason="caffe_pb2 needs the protobuf package")

FILES = Path(__file__).parent.parent / "data" / "golden" / "files"


def test_text_format_reads_a_net() -> None:
    from google.protobuf import text_format

    from hearth.caffe.proto import caffe_pb2

    net = caffe_pb2.NetParameter()
    text_format.Merge(
        'layer { name: "p" type: "Pooling" pooling_param { pool: AVE kernel_size: 3 } '
        "include { phase: TEST } }",
        net,
    )
    param = net.layer[0].pooling_param
    assert param.pool == caffe_pb2.PoolingParameter.AVE == 1
    assert param.stride == 1  # the default
    assert net.layer[0].include[0].phase == caffe_pb2.TEST
    assert caffe_pb2.Phase.Value("TRAIN") == caffe_pb2.TRAIN


def test_text_is_read_by_the_engine(tmp_path: Path) -> None:
    from hearth.caffe.proto import caffe_pb2

    net = caffe_pb2.NetParameter(name="made")
    layer = net.layer.add(name="data", type="Input", top=["data"])
    layer.input_param.shape.add(dim=[2, 3])
    (tmp_path / "net.prototxt").write_text(str(net))
    assert caffe.Net(str(tmp_path / "net.prototxt"), caffe.TEST).blobs["data"].shape == (2, 3)
    solver = caffe_pb2.SolverParameter(base_lr=0.01, lr_policy="step", test_iter=[3])
    solver.solver_mode = caffe_pb2.SolverParameter.CPU
    assert _core.parse_prototxt(str(solver), "s", "SolverParameter")["solver_mode"] == "CPU"


def test_models_of_caffe_are_read_and_written_alike() -> None:
    from hearth.caffe.proto import caffe_pb2

    data = (FILES / "net.caffemodel").read_bytes()
    net = caffe_pb2.NetParameter.FromString(data)
    assert net.layer[0].name
    assert net.SerializeToString() == data


def test_every_field_of_the_engine_is_there_with_its_default() -> None:
    from hearth.caffe.proto import caffe_pb2

    schema = _core.message_schema()
    assert len(schema["messages"]) > 60
    for name, fields in schema["messages"].items():
        made = caffe_pb2
        for part in name.split("."):
            made = getattr(made, part)
        assert [field["number"] for field in fields] == sorted(
            field.number for field in made.DESCRIPTOR.fields
        )
        message = made()
        for field in fields:
            if field["label"] != "repeated" and field["type"] != "message":
                got = getattr(message, field["name"])
                assert got == field["default"], f"{name}.{field['name']}"


def test_classes_live_in_a_private_pool() -> None:
    from google.protobuf import descriptor_pool

    from hearth.caffe.proto import caffe_pb2

    with pytest.raises(KeyError):
        descriptor_pool.Default().FindMessageTypeByName("caffe.NetParameter")
    assert caffe_pb2.NetParameter.DESCRIPTOR.full_name == "caffe.NetParameter"


def test_means_and_datums_become_arrays_and_back() -> None:
    from hearth.caffe.proto import caffe_pb2

    array = np.arange(24, dtype="f").reshape(2, 3, 4)
    blob = caffe.io.array_to_blobproto(array, diff=-array)
    np.testing.assert_array_equal(caffe.io.blobproto_to_array(blob), array)
    np.testing.assert_array_equal(caffe.io.blobproto_to_array(blob, return_diff=True), -array)
    legacy = caffe_pb2.BlobProto(num=1, channels=2, height=3, width=4, data=array.ravel())
    assert caffe.io.blobproto_to_array(legacy).shape == (1, 2, 3, 4)
    legacy.shape.dim.extend([6, 4])
    assert caffe.io.blobproto_to_array(legacy).shape == (1, 2, 3, 4)
    listed = caffe.io.arraylist_to_blobprotovector_str([array, array[0]])
    back = caffe.io.blobprotovector_str_to_arraylist(listed)
    assert [part.shape for part in back] == [(2, 3, 4), (3, 4)]
    pixels = array.astype(np.uint8)
    datum = caffe.io.array_to_datum(pixels, label=3)
    assert (datum.label, datum.channels, datum.width) == (3, 2, 4)
    np.testing.assert_array_equal(caffe.io.datum_to_array(datum), pixels)
    floats = caffe.io.array_to_datum(array)
    assert not floats.data
    np.testing.assert_array_equal(caffe.io.datum_to_array(floats), array)
    with pytest.raises(ValueError, match="channels, height, width"):
        caffe.io.array_to_datum(array[0])
    assert not caffe.io.array_to_datum(pixels).HasField("label")


def test_values_need_a_shape_of_their_number() -> None:
    from hearth.caffe.proto import caffe_pb2

    scalar = caffe.io.blobproto_to_array(caffe_pb2.BlobProto(data=[123]))
    assert scalar.shape == () and scalar == 123
    blob = caffe_pb2.BlobProto(data=[0] * 100)
    with pytest.raises(ValueError, match=r"shape \(\) cannot hold 100 values"):
        caffe.io.blobproto_to_array(blob)
    blob.shape.dim.extend([9, 9])
    with pytest.raises(ValueError, match=r"shape \(9, 9\) cannot hold 100 values"):
        caffe.io.blobproto_to_array(blob)
