"""CaffeOnSpark's examples, unmodified: data from its tools, its prototxts, its flags.

The data are digits and a few drawn images, and max_iter is small; all other sizes are upstream's.
"""

import json
import re
import subprocess

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image, ImageDraw
from upstream_nets import (
    CIFAR_SOLVER,
    LENET_SOLVER,
    LRCN_SOLVER,
    REFERENCE_SOLVER,
    lenet_cos_net,
    lrcn_net,
    memory_net,
)

from hearth import native
from hearth.caffeonspark import CaffeOnSpark, Config, DataSource
from hearth.caffeonspark.command_line import run_config
from hearth.caffeonspark.flags import parse_flags
from hearth.caffeonspark.tools import (
    Binary2Sequence,
    CocoDataSetConverter,
    LMDB2DataFrame,
    program,
)

SCALED = "scale: 0.00390625"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("upstream")


def hearth(folder, *arguments):
    command = [str(native.program()), *map(str, arguments)]
    done = subprocess.run(
        command, cwd=folder, env=native.environment(), capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr


def write_net(folder, name, net, solver):
    (folder / f"{name}_net.prototxt").write_text(net)
    path = folder / f"{name}_solver.prototxt"
    path.write_text(f'net: "{name}_net.prototxt"\n{solver}')
    return path


def flags_of(folder, name, **more):
    return {
        "conf": str(folder / f"{name}_solver.prototxt"),
        "model": f"file:{folder}/{name}.model",
        "devices": "1",
        "clusterSize": "1",
        **more,
    }


@pytest.fixture(scope="module")
def lmdbs(folder, digits):
    """Writes the digits in MNIST's format, and converts them to LMDBs with Caffe's converter."""
    for split in ("train", "test"):
        table = pq.read_table(digits.table("raw", split))
        pixels = b"".join(table["image"].to_pylist())
        sizes = np.array([0x803, len(table), 28, 28], ">u4").tobytes()
        (folder / f"{split}-images").write_bytes(sizes + pixels)
        counts = np.array([0x801, len(table)], ">u4").tobytes()
        (folder / f"{split}-labels").write_bytes(counts + bytes(table["label"].to_pylist()))
        names = (f"{split}-images", f"{split}-labels", f"mnist_{split}_lmdb")
        hearth(folder, "convert_mnist_data", *names)
    return {split: f"file:{folder}/mnist_{split}_lmdb" for split in ("train", "test")}


@pytest.fixture(scope="module")
def frames(spark, folder, lmdbs):
    """The LMDBs as DataFrames, by CaffeOnSpark's converter."""
    found = {}
    for split, source in lmdbs.items():
        found[split] = f"file:{folder}/mnist_{split}_dataframe"
        arguments = [f"-imageRoot={source}", f"-output={found[split]}"]
        LMDB2DataFrame.convert(spark, parse_flags(arguments, program.DEFAULTS))
    return found


def test_a07_lenet_memory_learns_and_is_validated_tested_and_extracted(
    spark, folder, digits, lmdbs, capsys
):
    trained_rows = pq.read_metadata(digits.table("raw", "train")).num_rows
    # Upstream's test of 81 iterations also validates on the training rows.
    net = memory_net("lenet", "LMDB", (lmdbs["train"], lmdbs["train"]), (64, 100), SCALED)
    write_net(folder, "lenet_memory", net, LENET_SOLVER)
    output = f"file:{folder}/lenet_features"
    given = flags_of(folder, "lenet_memory", train=True, output=output, label="label")
    conf = Config(spark, {**given, "features": "accuracy,ip1,ip2"})
    cos, sources = CaffeOnSpark(spark), DataSource(spark)
    rows = cos.trainWithValidation(
        sources.getSource(conf, True), sources.getSource(conf, False)
    ).collect()
    assert len(rows) == 8
    assert rows[-1].accuracy[0] > 0.8
    assert rows[-1].loss[0] < 0.5
    conf.isTraining = False
    run_config(conf)
    found = spark.read.json(output)
    assert sorted(found.columns) == sorted(["SampleID", "accuracy", "ip1", "ip2", "label"])
    assert found.count() == found.select("SampleID").distinct().count() == trained_rows
    means = cos.test(sources.getSource(conf, False))
    assert means["accuracy"][0] > 0.8
    compare_int8(conf, means, f"file:{folder}/lenet_int8.txt", capsys)


def compare_int8(conf, exact, output, capsys):
    """Checks that -test -precision int8 prints both accuracies and their difference."""
    conf.isFeature, conf.isTest, conf.outputPath = False, True, output
    conf.features, conf.precision = [], "int8"
    capsys.readouterr()
    run_config(conf)
    printed = capsys.readouterr().out.splitlines()
    (line,) = [line for line in printed if line.startswith("accuracy: float32")]
    float32, int8, difference = map(float, re.findall(r"[-+]?\d[.\de-]*(?=,|$)", line))
    assert float32 == pytest.approx(exact["accuracy"][0], abs=1e-5)
    assert difference == pytest.approx(int8 - float32, abs=1e-5)
    assert abs(difference) < 0.01
    assert conf.precision == "int8"


def test_lenet_dataframe_and_lenet_cos_give_one_model(spark, folder, frames):
    both = (frames["train"], frames["test"])
    nets = {
        "lenet_dataframe": memory_net("lenet", "ImageDataFrame", both, (64, 100), SCALED),
        "lenet_cos": lenet_cos_net(both),
    }
    solver = LENET_SOLVER.replace("test_iter: 2 test_interval: 10", "")
    means = {}
    for name, net in nets.items():
        write_net(folder, name, net, solver)
        conf = Config(spark, flags_of(folder, name, train=True, test=True, clusterSize="2",
                                      output=f"file:{folder}/{name}.txt"))  # fmt: skip
        run_config(conf)
        lines = (folder / f"{name}.txt").read_text().splitlines()
        means[name] = {key: float(value) for key, value in (line.split(": ") for line in lines)}
    assert means["lenet_cos"]["accuracy"] > 0.8
    assert means["lenet_cos"] == pytest.approx(means["lenet_dataframe"], rel=1e-4)


def cifar_records(count, seed):
    """Records in CIFAR-10's format: a label, and an image whose colour depends on the label."""
    random = np.random.default_rng(seed)
    records = b""
    for label in random.integers(0, 10, count):
        colour = np.array([25 * label, 255 - 25 * label, 40 + 100 * (label % 2)])
        noise = random.integers(-20, 20, (3, 32, 32))
        pixels = np.clip(colour[:, None, None] + noise, 0, 255).astype(np.uint8)
        records += bytes([label]) + pixels.tobytes()
    return records


def test_a08_cifar10_quick_has_its_mean_file_and_an_hdf5_model(spark, folder):
    for number in range(1, 6):
        (folder / f"data_batch_{number}.bin").write_bytes(cifar_records(100, number))
    (folder / "test_batch.bin").write_bytes(cifar_records(200, 9))
    hearth(folder, "convert_cifar_data", ".", ".")
    hearth(folder, "compute_image_mean", "cifar10_train_lmdb", "mean.binaryproto")
    sources = tuple(f"file:{folder}/cifar10_{split}_lmdb/" for split in ("train", "test"))
    mean = 'mean_file: "mean.binaryproto"'
    net = memory_net("cifar10_quick", "LMDB", sources, (100, 100), mean)
    write_net(folder, "cifar10_quick", net, CIFAR_SOLVER)
    conf = Config(
        spark,
        flags_of(
            folder, "cifar10_quick", train=True, features="data",
            output=f"file:{folder}/cifar_features",
        ),
    )  # fmt: skip
    run_config(conf)
    # The files' names end in .h5 for the format, and the model is in the folder of the snapshots.
    snapshot = "cifar10_quick_iter_40"
    written = ("cifar10_quick.model", f"{snapshot}.caffemodel", f"{snapshot}.solverstate")
    for name in (f"{name}.h5" for name in written):
        assert (folder / name).read_bytes()[:4] == b"\x89HDF"
    cos, sources = CaffeOnSpark(spark), DataSource(spark)
    rows = cos.features(sources.getSource(conf, False)).collect()
    assert len(rows) == 200
    seen = np.array([row.data for row in rows])
    assert np.abs(seen.mean(axis=0)).max() < 60 < np.abs(seen).max()  # bytes less their mean
    assert cos.test(sources.getSource(conf, False))["accuracy"][0] > 0.5


@pytest.fixture(scope="module")
def drawn(folder):
    """Four images of different sizes with two labels, as in upstream's tests."""
    random = np.random.default_rng(3)
    (folder / "images").mkdir()
    lines = []
    for number, (width, height) in enumerate([(256, 256), (300, 240), (227, 227), (320, 256)]):
        ground = tuple(int(part) for part in random.integers(60, 200, 3))
        image = Image.new("RGB", (width, height), ground)
        ImageDraw.Draw(image).ellipse((40, 40, 180, 160 + 10 * number), fill="white")
        image.save(folder / "images" / f"{number}.jpg")
        lines.append(f"{number}.jpg {number % 2}")
    (folder / "images" / "labels.txt").write_text("\n".join(lines))
    return folder / "images"


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    # The second net has other batch sizes and a wider last layer.
    "name",
    ["caffenet_train", pytest.param("bvlc_reference", marks=pytest.mark.long)],
)
def test_caffenet_trains_on_a_sequence_file_of_images(spark, folder, drawn, name):
    output = folder / f"{name}_sequence"
    arguments = [f"-imageRoot=file:{drawn}", f"-labelFile=file:{drawn}/labels.txt"]
    Binary2Sequence.convert(
        spark, parse_flags([*arguments, f"-output=file:{output}"], program.DEFAULTS)
    )
    batches = (32, 5) if name == "caffenet_train" else (2, 2)
    transform = "mirror: true crop_size: 227 mean_value: 104 mean_value: 117 mean_value: 123"
    source = f"file:{output}/"
    net = memory_net("caffenet", "SeqImageDataSource", (source, source), batches, transform)
    if name == "caffenet_train":
        net = net.replace('name: "fc8"', 'name: "ip2"').replace("num_output: 1000", "num_output: 2")
    write_net(folder, name, net, REFERENCE_SOLVER)
    given = flags_of(folder, name, train=True, resize=True, features="fc8", label="label")
    conf = Config(spark, {**given, "output": f"file:{folder}/{name}_features"})
    run_config(conf)
    rows = spark.read.json(f"file:{folder}/{name}_features").collect()
    width = 2 if name == "caffenet_train" else 1000
    assert {row.SampleID: len(row.fc8) for row in rows} == {f"{i}.jpg": width for i in range(4)}
    (folder / f"{name}.model").unlink()  # it has 240 MB


@pytest.mark.timeout(300)
def test_a21_lrcn_trains_on_converted_captions(spark, folder, drawn):
    images, notes = [], []
    for number in range(4):
        with Image.open(drawn / f"{number}.jpg") as image:
            size = {"width": image.width, "height": image.height}
        images.append({"id": number, "file_name": f"{number}.jpg", **size})
        notes.append({"id": 10 + number, "image_id": number, "caption": f"A white disk, {number}."})
    coco = folder / "captions.json"
    coco.write_text(json.dumps({"images": images, "annotations": notes}))
    # The net has 21 steps, but the converter's captions have 20 words by default, so one step is
    # padding.
    arguments = [f"-captionFile=file:{coco}", f"-imageRoot=file:{drawn}"]
    folders = ["-imageCaptionDFDir=captions", "-vocabDir=words", "-embeddingDFDir=embedded"]
    output = f"-output=file:{folder}/coco"
    CocoDataSetConverter.convert(
        spark, parse_flags([*arguments, *folders, output], program.DEFAULTS)
    )
    net = lrcn_net(f"file:{folder}/coco/embedded/", 8801, 21)
    write_net(folder, "lrcn", net, LRCN_SOLVER)
    given = flags_of(folder, "lrcn", train=True, resize=True, features="fc8,lstm2")
    conf = Config(spark, {**given, "output": f"file:{folder}/lrcn_features"})
    run_config(conf)
    rows = spark.read.json(f"file:{folder}/lrcn_features").collect()
    assert sorted(row.SampleID for row in rows) == [str(10 + i) for i in range(4)]
    assert {(len(row.fc8), len(row.lstm2)) for row in rows} == {(1000, 21 * 1000)}
    (folder / "lrcn.model").unlink()
