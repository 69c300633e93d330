"""caffe.io, Classifier and Detector: how images become a net's inputs."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from PIL import Image

from hearth import caffe

NET = """
layer { name: "data" type: "Input" top: "data"
  input_param { shape { dim: 4 dim: 3 dim: 6 dim: 6 } } }
layer { name: "mean" type: "Pooling" bottom: "data" top: "mean"
  pooling_param { pool: AVE global_pooling: true } }
"""


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    """A net that outputs the channels' means, and its (empty) weights."""
    model, weights = tmp_path / "net.prototxt", tmp_path / "net.caffemodel"
    model.write_text(NET)
    caffe.Net(str(model), caffe.TEST).save(str(weights))
    return str(model), str(weights)


def test_images_load_as_rgb_between_0_and_1(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (5, 7, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    image = caffe.io.load_image(str(tmp_path / "a.png"))
    assert image.dtype == np.float32
    np.testing.assert_allclose(image, pixels / 255, rtol=1e-6)
    with pytest.raises(FileNotFoundError):
        caffe.io.load_image(str(tmp_path / "b.png"))


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "P"])
def test_gray_weighs_colors_as_scikit_image(tmp_path: Path, mode: str) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (5, 7, 3), dtype=np.uint8)
    image = Image.fromarray(pixels).convert(mode)
    image.save(tmp_path / "a.png")
    gray = caffe.io.load_image(tmp_path / "a.png", color=False)
    expected = np.array(image.convert("RGB")) / 255 @ [[0.2125], [0.7154], [0.0721]]
    assert gray.dtype == np.float32
    np.testing.assert_allclose(gray, expected, rtol=1e-6)


def test_gray_images_are_unchanged(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (5, 7), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    Image.fromarray(pixels).save(tmp_path / "a.jpg")
    decoded = np.array(Image.open(tmp_path / "a.jpg"))
    for name, expected in (("a.png", pixels), ("a.jpg", decoded)):
        gray = caffe.io.load_image(tmp_path / name, color=False)
        np.testing.assert_allclose(gray[..., 0], expected / 255, rtol=1e-6)
        color = caffe.io.load_image(tmp_path / name)
        np.testing.assert_array_equal(color, gray.repeat(3, 2))


def pattern(channels: int) -> np.ndarray:
    """An image (3, 4, channels) of whole numbers from 3 to 13."""
    return (np.arange(12 * channels) * 7 % 11 + 3).reshape(3, 4, channels).astype("f")


# Computed with scikit-image 0.26 and SciPy 1.17; the versions for BVLC's pycaffe give the same.
BY_CENTRES = {
    (5, 3): [[3.9333, 7, 10.0667], [5.8333, 8.2, 10.5667], [8.3333, 8.5, 8.6667],
             [6.4333, 8.8, 5.6667], [4.7333, 7.8, 3.5333]],
    (2, 7): [[4.1786, 6.0179, 8.4464, 8.125, 7.8036, 10.2321, 9.875],
             [4.7679, 6.7679, 9.1964, 8.875, 7.9643, 5.6786, 3.9821]],
}  # fmt: skip
BY_CORNERS = {
    (5, 3): [[10, 9, 8], [10.5, 6.75, 8.5], [11, 4.5, 9], [11.5, 5, 9.5], [12, 5.5, 10]],
    (2, 7): [[10, 11.5, 13, 9, 5, 6.5, 8], [12, 8, 4, 5.5, 7, 8.5, 10]],
}


@pytest.mark.parametrize("size", BY_CENTRES)
def test_one_or_three_channels_are_resized_by_their_centres_on_the_least_value(size) -> None:
    one = caffe.io.resize_image(pattern(1), size)
    assert one.shape == (*size, 1) and one.dtype == np.float32
    np.testing.assert_allclose(one[..., 0], BY_CENTRES[size], atol=6e-5)
    three = np.concatenate([pattern(1), pattern(1) + 1, np.full((3, 4, 1), 3, "f")], 2)
    resized = caffe.io.resize_image(three, size)
    np.testing.assert_array_equal(resized[..., :1], one)
    np.testing.assert_array_equal(resized[..., 2], 3)
    negative = caffe.io.resize_image(pattern(1) * 2.0 - 100, size)
    np.testing.assert_allclose(negative, one * 2 - 100, atol=1e-4)


@pytest.mark.parametrize("size", BY_CORNERS)
def test_other_channels_are_resized_by_their_corners(size) -> None:
    resized = caffe.io.resize_image(pattern(2), size)
    np.testing.assert_allclose(resized[..., 1], BY_CORNERS[size], rtol=1e-6)
    bytes_ = caffe.io.resize_image((pattern(2) * 4).astype(np.uint8), size)
    np.testing.assert_array_equal(bytes_[..., 1], np.array(BY_CORNERS[size]) * 4)


def test_integers_stay_integers_as_in_scipy() -> None:
    resized = caffe.io.resize_image((pattern(2) * 9).astype(np.uint8), (2, 7))
    assert resized[0, :, 1].tolist() == [90, 104, 117, 81, 45, 59, 72]


def test_the_nearest_pixel_is_taken_on_request() -> None:
    nearest = caffe.io.resize_image(pattern(1), (5, 3), interp_order=0)[..., 0]
    rows = [3, 6, 13], [9, 12, 8], [4, 7, 3]
    np.testing.assert_array_equal(nearest, [rows[i] for i in (0, 0, 1, 2, 2)])
    nearest = caffe.io.resize_image(pattern(2), (5, 3), interp_order=0)[..., 1]
    rows = [10, 5, 8], [11, 6, 9], [12, 7, 10]
    np.testing.assert_array_equal(nearest, [rows[i] for i in (0, 1, 1, 2, 2)])


def test_resizing_to_the_same_size_and_invalid_arguments() -> None:
    np.testing.assert_array_equal(caffe.io.resize_image(pattern(3), (3, 4)), pattern(3))
    assert caffe.io.resize_image(pattern(1), (1, 1)).shape == (1, 1, 1)
    with pytest.raises(ValueError, match="interp_order 3"):
        caffe.io.resize_image(pattern(1), (2, 2), 3)
    with pytest.raises(ValueError, match="no pixels"):
        caffe.io.resize_image(np.zeros((0, 4, 3)), (2, 2))


def test_oversampling_gives_corners_centre_and_mirrors() -> None:
    image = np.arange(5 * 5).reshape(5, 5, 1)
    crops = caffe.io.oversample([image, image + 100], (3, 3))
    assert crops.shape == (20, 3, 3, 1)
    firsts = [crop[0, 0, 0] for crop in crops[:5]]
    assert firsts == [0, 2, 10, 12, 6]
    np.testing.assert_array_equal(crops[5:10], crops[:5, :, ::-1])
    np.testing.assert_array_equal(crops[10:], crops[:10] + 100)


def test_the_centre_of_oversampling_is_rounded_to_the_corner() -> None:
    image = np.arange(6 * 6).reshape(6, 6, 1)
    crops = caffe.io.oversample([image], (3, 3))
    assert crops[4, 0, 0, 0] == 6 * 1 + 1  # the offset 1.5 is rounded down in both axes


def transformer() -> caffe.io.Transformer:
    made = caffe.io.Transformer({"data": (1, 3, 4, 5)})
    made.set_transpose("data", (2, 0, 1))
    made.set_channel_swap("data", (2, 1, 0))
    made.set_raw_scale("data", 255)
    made.set_mean("data", np.array([10, 20, 30]))
    made.set_input_scale("data", 0.5)
    return made


def test_transformer_does_its_steps_in_order() -> None:
    image = np.random.default_rng(0).random((4, 5, 3))
    got = transformer().preprocess("data", image)
    expected = (image[:, :, ::-1] * 255 - [10, 20, 30]) * 0.5
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, expected.transpose(2, 0, 1), rtol=1e-5, atol=1e-4)


def test_deprocessing_is_the_inverse() -> None:
    image = np.random.default_rng(0).random((4, 5, 3))
    steps = transformer()
    np.testing.assert_allclose(
        steps.deprocess("data", steps.preprocess("data", image)), image, atol=1e-5
    )
    batch = steps.preprocess("data", image)[None]
    assert steps.deprocess("data", batch).shape == (4, 5, 3)


def test_images_of_another_size_are_resized() -> None:
    image = np.random.default_rng(0).random((8, 10, 3), np.float32)
    plain = caffe.io.Transformer({"data": (1, 3, 4, 5)})
    plain.set_transpose("data", (2, 0, 1))
    np.testing.assert_allclose(
        plain.preprocess("data", image), caffe.io.resize_image(image, (4, 5)).transpose(2, 0, 1)
    )


def test_mean_images_are_resized() -> None:
    mean = np.random.default_rng(0).random((3, 8, 10), np.float32)
    steps = caffe.io.Transformer({"data": (1, 3, 4, 5)})
    steps.set_mean("data", mean)
    expected = caffe.io.resize_image(mean.transpose(1, 2, 0), (4, 5)).transpose(2, 0, 1)
    np.testing.assert_allclose(steps.mean["data"], expected)
    steps.set_mean("data", mean.mean((1, 2)))
    assert steps.mean["data"].shape == (3, 1, 1)
    steps.set_mean("data", mean[:1])
    assert steps.mean["data"].shape == (1, 4, 5)


def test_a_mean_without_channels_is_for_inputs_of_one() -> None:
    steps = caffe.io.Transformer({"data": (1, 1, 4, 5)})
    steps.set_mean("data", np.ones((4, 5)))
    assert steps.mean["data"].shape == (1, 4, 5)
    with pytest.raises(ValueError, match="but its mean has"):
        steps.set_mean("data", np.ones((5, 4)))


@pytest.mark.parametrize(
    "call",
    [
        lambda t: t.set_mean("data", np.zeros(4)),
        lambda t: t.set_mean("data", np.zeros((4, 5))),  # lacks the three channels
        lambda t: t.set_mean("data", np.zeros((4, 5, 3))),  # has the channels last
        lambda t: t.set_mean("data", np.zeros((1, 3, 4, 5))),
        lambda t: t.set_mean("data", np.float32(3)),
        lambda t: t.set_channel_swap("data", (1, 0)),
        lambda t: t.set_transpose("data", (0, 1)),
        lambda t: t.set_raw_scale("other", 1),
        lambda t: t.preprocess("other", np.zeros((4, 5, 3))),
    ],
)
def test_settings_that_do_not_fit_are_refused(call) -> None:
    with pytest.raises(ValueError, match=r"data|other"):
        call(transformer())


def test_classifier_averages_its_crops(files: tuple[str, str]) -> None:
    classifier = caffe.Classifier(*files, image_dims=(8, 8), channel_swap=(2, 1, 0), raw_scale=2)
    image = np.random.default_rng(0).random((8, 8, 3), np.float32)
    centre = image[1:7, 1:7, ::-1].mean((0, 1)) * 2
    (predicted,) = classifier.predict([image], oversample=False)
    np.testing.assert_allclose(predicted.ravel(), centre, rtol=1e-5)
    predictions = classifier.predict([image] * 3)
    assert predictions.shape == (3, 3)
    crops = [image[y : y + 6, x : x + 6] for y, x in ((0, 0), (0, 2), (2, 0), (2, 2), (1, 1))]
    expected = np.mean(crops, (0, 1, 2))[::-1] * 2
    np.testing.assert_allclose(predictions, [expected] * 3, rtol=1e-5)


def test_detector_classifies_windows(files: tuple[str, str], tmp_path: Path) -> None:
    pixels = np.zeros((20, 30, 3), np.uint8)
    pixels[:10, :15, 0] = 255
    Image.fromarray(pixels).save(tmp_path / "a.png")
    detector = caffe.Detector(*files)
    windows = np.array([[0, 0, 10, 15], [10, 0, 20, 15], [0, 0, 10, 30]])
    found = detector.detect_windows([(str(tmp_path / "a.png"), windows)] * 2)
    assert len(found) == 6
    red = [entry["prediction"].ravel()[0] for entry in found[:3]]
    assert found[0]["prediction"].shape == (3, 1, 1)
    np.testing.assert_allclose(red, [1, 0, 0.5], atol=0.1)
    assert (found[1]["window"] == windows[1]).all()
    assert detector.detect_windows([]) == []
    with pytest.raises(NotImplementedError, match="detect_windows"):
        detector.detect_selective_search(["a.png"])


def test_detector_adds_context_and_fills_with_the_mean(files: tuple[str, str]) -> None:
    detector = caffe.Detector(*files, mean=np.array([5, 6, 7]), context_pad=1)
    image = np.random.default_rng(0).random((12, 12, 3), np.float32)
    # Rows 4 to 8 are five. With context, a sixth of the crop on each side, they are 2.75 to 10.25.
    expected = caffe.io.resize_image(image[3:10, 3:10], (6, 6))
    np.testing.assert_array_equal(detector.crop(image, (4, 4, 8, 8)), expected)
    # With context, rows -1 to 6: eight rows, the first of which is outside the image.
    crop = detector.crop(image, (0, 0, 4, 4))
    np.testing.assert_array_equal(crop[1:, 1:], caffe.io.resize_image(image[:6, :6], (5, 5)))
    np.testing.assert_array_equal(crop[0, 3], [5, 6, 7])
    np.testing.assert_array_equal(crop[3, 0], [5, 6, 7])
    # At the far corner, rows 7 to 14, clipped to 12: six of the eight rows remain.
    crop = detector.crop(image, (8, 8, 12, 12))
    np.testing.assert_array_equal(crop[:4, :4], caffe.io.resize_image(image[7:12, 7:12], (4, 4)))
    np.testing.assert_array_equal(crop[4:, :].ravel(), np.tile([5, 6, 7], 12))
    with pytest.raises(ValueError, match="not in an image"):
        detector.crop(image, (40, 40, 44, 44))


def test_selective_search_is_the_users_module(
    files: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Image.fromarray(np.zeros((9, 9, 3), np.uint8)).save(tmp_path / "a.png")
    monkeypatch.chdir(tmp_path)
    proposals = ModuleType("selective_search_ijcv_with_python")
    proposals.get_windows = lambda names, cmd: [[np.array([0, 0, 4, 4])] for name in names]
    monkeypatch.setitem(sys.modules, proposals.__name__, proposals)
    (found,) = caffe.Detector(*files).detect_selective_search(["a.png"])
    assert found["filename"] == str(tmp_path / "a.png")
