"""caffe.io, Classifier and Detector: pictures on their way into a net."""

from __future__ import annotations

from pathlib import Path

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
    """A net whose outputs are the means of the channels, and its (empty) weights."""
    model, weights = tmp_path / "net.prototxt", tmp_path / "net.caffemodel"
    model.write_text(NET)
    caffe.Net(str(model), caffe.TEST).save(str(weights))
    return str(model), str(weights)


def test_pictures_load_as_rgb_between_0_and_1(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (5, 7, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    image = caffe.io.load_image(str(tmp_path / "a.png"))
    assert image.dtype == np.float32
    np.testing.assert_allclose(image, pixels / 255, rtol=1e-6)
    assert caffe.io.load_image(str(tmp_path / "a.png"), color=False).shape == (5, 7, 1)
    with pytest.raises(FileNotFoundError):
        caffe.io.load_image(str(tmp_path / "b.png"))


def test_resize_is_bilinear_with_half_pixel_centres() -> None:
    image = np.random.default_rng(0).random((6, 9, 2), np.float32)
    resized = caffe.io.resize_image(image, (12, 5))
    for channel in range(2):
        expected = Image.fromarray(image[:, :, channel]).transform(
            (5, 12), Image.Transform.AFFINE, (9 / 5, 0, 0, 0, 6 / 12, 0), Image.Resampling.BILINEAR
        )
        inner = np.s_[1:-1, 1:-1]  # Pillow fills the border
        got = resized[inner][..., channel]
        np.testing.assert_allclose(got, np.array(expected)[inner], atol=2e-5)
    np.testing.assert_array_equal(caffe.io.resize_image(image, (6, 9)), image)
    np.testing.assert_array_equal(
        caffe.io.resize_image(image, (12, 18), interp_order=0), image.repeat(2, 0).repeat(2, 1)
    )
    with pytest.raises(ValueError, match="interp_order 3"):
        caffe.io.resize_image(image, (2, 2), 3)


def test_oversampling_gives_corners_centre_and_mirrors() -> None:
    image = np.arange(5 * 5).reshape(5, 5, 1)
    crops = caffe.io.oversample([image, image + 100], (3, 3))
    assert crops.shape == (20, 3, 3, 1)
    firsts = [crop[0, 0, 0] for crop in crops[:5]]
    assert firsts == [0, 2, 10, 12, 6]
    np.testing.assert_array_equal(crops[5:10], crops[:5, :, ::-1])
    np.testing.assert_array_equal(crops[10:], crops[:10] + 100)


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


def test_pictures_of_another_size_are_resized() -> None:
    image = np.random.default_rng(0).random((8, 10, 3), np.float32)
    plain = caffe.io.Transformer({"data": (1, 3, 4, 5)})
    plain.set_transpose("data", (2, 0, 1))
    np.testing.assert_allclose(
        plain.preprocess("data", image), caffe.io.resize_image(image, (4, 5)).transpose(2, 0, 1)
    )


def test_mean_pictures_are_resized() -> None:
    mean = np.random.default_rng(0).random((3, 8, 10))
    steps = caffe.io.Transformer({"data": (1, 3, 4, 5)})
    steps.set_mean("data", mean)
    expected = caffe.io.resize_image(mean.transpose(1, 2, 0), (4, 5)).transpose(2, 0, 1)
    np.testing.assert_allclose(steps.mean["data"], expected)
    steps.set_mean("data", mean.mean((1, 2)))
    assert steps.mean["data"].shape == (3, 1, 1)


@pytest.mark.parametrize(
    "call",
    [
        lambda t: t.set_mean("data", np.zeros(4)),
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
    red = [entry["prediction"][0] for entry in found[:3]]
    np.testing.assert_allclose(red, [1, 0, 0.5], atol=0.1)
    assert (found[1]["window"] == windows[1]).all()
    assert detector.detect_windows([]) == []
    with pytest.raises(NotImplementedError, match="detect_windows"):
        detector.detect_selective_search(["a.png"])


def test_detector_adds_context_and_fills_with_the_mean(files: tuple[str, str]) -> None:
    detector = caffe.Detector(*files, mean=np.array([5, 6, 7]), context_pad=1)
    image = np.random.default_rng(0).random((12, 12, 3), np.float32)
    # A window of 4 pixels and a pixel on each side make 6, the net's size.
    np.testing.assert_allclose(detector.crop(image, (4, 4, 8, 8)), image[3:9, 3:9], rtol=1e-6)
    crop = detector.crop(image, (0, 0, 4, 4))
    np.testing.assert_allclose(crop[1:, 1:], image[:5, :5], rtol=1e-6)
    np.testing.assert_array_equal(crop[0, 3], [5, 6, 7])
