"""`hearth convert_imageset`, `compute_image_mean` and `extract_features` in sequence."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from hearth.native import _caffe

HEARTH = Path(_caffe.__file__).with_name("hearth")


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs the program in `folder`."""
    return subprocess.run(
        [HEARTH, *arguments], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.fixture
def images(tmp_path: Path) -> np.ndarray:
    """Writes three RGB images (3, 6, 5, 3) as 0.png, 1.png, 2.png, and a list of them."""
    values = np.random.default_rng(0).integers(0, 256, (3, 6, 5, 3), dtype=np.uint8)
    for number, image in enumerate(values):
        Image.fromarray(image).save(tmp_path / f"{number}.png")
    (tmp_path / "list.txt").write_text("".join(f"{n}.png {n + 4}\n" for n in range(3)))
    return values


@pytest.mark.parametrize("backend", ["lmdb", "leveldb"])
def test_images_become_a_database_with_a_mean(
    tmp_path: Path, images: np.ndarray, backend: str
) -> None:
    done = run(tmp_path, "convert_imageset", f"-backend={backend}", "./", "list.txt", "db")
    assert done.returncode == 0, done.stderr
    assert "Processed 3 files." in done.stderr
    done = run(tmp_path, "compute_image_mean", "--backend", backend, "db", "mean.binaryproto")
    assert done.returncode == 0, done.stderr
    mean = images[..., ::-1].astype(np.float64).mean(axis=0).transpose(2, 0, 1)
    assert f"mean_value channel [0]: {mean[0].mean():.3f}"[:30] in done.stderr

    net = _caffe.Net(
        f"""layer {{ name: "d" type: "Data" top: "x" top: "y"
                     transform_param {{ mean_file: "{tmp_path}/mean.binaryproto" }}
                     data_param {{ source: "{tmp_path}/db" backend: {backend.upper()}
                                   batch_size: 3 }} }}""",
        "TEST",
    )
    net.forward()
    expected = images[..., ::-1].transpose(0, 3, 1, 2) - mean
    np.testing.assert_allclose(net.blobs["x"].data, expected, atol=1e-4)
    np.testing.assert_array_equal(net.blobs["y"].data, [4, 5, 6])


def test_features_are_extracted(tmp_path: Path, images: np.ndarray) -> None:
    assert run(tmp_path, "convert_imageset", "./", "list.txt", "db").returncode == 0
    net = """layer { name: "d" type: "Data" top: "x" top: "y"
                     data_param { source: "db" backend: LMDB batch_size: 2 } }
             layer { name: "p" type: "Pooling" bottom: "x" top: "p"
                     pooling_param { pool: AVE global_pooling: true } }"""
    (tmp_path / "net.prototxt").write_text(net)
    (tmp_path / "bare.caffemodel").write_bytes(b"\x0a\x03net")  # only the net's name, no weights
    done = run(
        tmp_path, "extract_features", "bare.caffemodel", "net.prototxt", "p,y", "f,l", "2",
        "lmdb", "CPU",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Extracted features of 4 query images for feature blob p" in done.stderr
    features = _caffe.Net(
        f"""layer {{ name: "d" type: "Data" top: "p" top: "none"
                     data_param {{ source: "{tmp_path}/f" backend: LMDB batch_size: 4 }} }}""",
        "TEST",
    )
    features.forward()
    means = images[..., ::-1].mean(axis=(1, 2))
    expected = means[[0, 1, 2, 0]].reshape(4, 3, 1, 1)
    np.testing.assert_allclose(features.blobs["p"].data, expected, rtol=1e-5)


def write_mnist(folder: Path, digits: np.ndarray, labels: list[int]) -> None:
    """Writes files in MNIST's format."""
    sizes = np.array([0x803, *digits.shape], ">u4").tobytes()
    (folder / "images").write_bytes(sizes + digits.tobytes())
    counts = np.array([0x801, len(labels)], ">u4").tobytes()
    (folder / "labels").write_bytes(counts + bytes(labels))


def rows_of(database: Path, backend: str, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The (data, label) arrays that a Data layer reads from a database."""
    net = _caffe.Net(
        f"""layer {{ name: "d" type: "Data" top: "x" top: "y" data_param {{
            source: "{database}" backend: {backend} batch_size: {count} }} }}""",
        "TEST",
    )
    net.forward()
    return net.blobs["x"].data.copy(), net.blobs["y"].data.copy()


def test_mnists_and_cifars_files_become_databases(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    digits = random.integers(0, 256, (5, 4, 3), dtype=np.uint8)
    write_mnist(tmp_path, digits, [3, 1, 4, 1, 5])
    for tool in ("convert_mnist_data", "convert_mnist_siamese_data"):
        done = run(tmp_path, tool, "images", "labels", tool)
        assert done.returncode == 0, done.stderr
    pixels, labels = rows_of(tmp_path / "convert_mnist_data", "LMDB", 5)
    np.testing.assert_array_equal(pixels[:, 0], digits)
    assert labels.tolist() == [3, 1, 4, 1, 5]
    pairs, _ = rows_of(tmp_path / "convert_mnist_siamese_data", "LEVELDB", 5)
    known = {digit.tobytes() for digit in digits.astype(np.float32)}
    assert all(image.tobytes() in known for pair in pairs for image in pair)

    images = random.integers(0, 256, (6, 3, 32, 32), dtype=np.uint8)
    names = [f"data_batch_{number}.bin" for number in range(1, 6)] + ["test_batch.bin"]
    for label, (name, image) in enumerate(zip(names, images, strict=True)):
        (tmp_path / name).write_bytes(bytes([label]) + image.tobytes())
    done = run(tmp_path, "convert_cifar_data", ".", ".", "leveldb")
    assert done.returncode == 0, done.stderr
    pixels, labels = rows_of(tmp_path / "cifar10_train_leveldb", "LEVELDB", 5)
    np.testing.assert_array_equal(pixels, images[:5])
    assert labels.tolist() == [0, 1, 2, 3, 4]


def test_classify_prints_like_cpp_classification(tmp_path: Path, images: np.ndarray) -> None:
    assert run(tmp_path, "convert_imageset", "./", "list.txt", "db").returncode == 0
    assert run(tmp_path, "compute_image_mean", "db", "mean.binaryproto").returncode == 0
    text = """layer { name: "in" type: "Input" top: "in"
                      input_param { shape { dim: 1 dim: 3 dim: 6 dim: 5 } } }
              layer { name: "ip" type: "InnerProduct" bottom: "in" top: "ip"
                      inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
              layer { name: "prob" type: "Softmax" bottom: "ip" top: "prob" }"""
    (tmp_path / "deploy.prototxt").write_text(text)
    net = _caffe.Net(text, "TEST")
    net.save(str(tmp_path / "w.caffemodel"))
    (tmp_path / "labels.txt").write_text("cat\ndog\n")
    files = ("deploy.prototxt", "w.caffemodel", "mean.binaryproto", "labels.txt")
    done = run(tmp_path, "classify", *files, "1.png")
    assert done.returncode == 0, done.stderr
    bgr = images[..., ::-1].transpose(0, 3, 1, 2).astype(np.float64)
    net.blobs["in"].data[...] = bgr[1] - bgr.mean(axis=(0, 2, 3))[:, None, None]
    net.forward()
    expected = sorted(zip(net.blobs["prob"].data[0], ("cat", "dog"), strict=True), reverse=True)
    first, *lines = done.stdout.splitlines()
    assert first == "---------- Prediction for 1.png ----------"
    assert lines == [f'{share:.4f} - "{label}"' for share, label in expected]


def test_mistakes_are_one_line(tmp_path: Path, images: np.ndarray) -> None:
    for arguments, message in (
        (["convert_imageset", "./", "list.txt"], "DB_NAME is required"),
        (["convert_imageset", "-backend=rocks", "./", "list.txt", "db"], "backend 'rocks'"),
        (["compute_image_mean", "nothing"], "there is no database nothing"),
        (["extract_features", "w", "n", "b", "d", "1", "lmdb"], "cannot open n"),
        (["convert_mnist_data", "list.txt", "list.txt", "db"], "list.txt is not an idx file"),
        (["convert_mnist_data", "-backend=rocks", "a", "b", "db"], "backend 'rocks'"),
        (["convert_cifar_data", ".", "."], "cannot open ./data_batch_1.bin"),
        (["classify", "n", "w", "m", "l", "0.png"], "cannot open n"),
    ):
        done = run(tmp_path, *arguments)
        assert done.returncode == 1
        assert message in done.stderr
        assert done.stderr.count("\n") == 1
