"""Images after decoding, resizing and transform_param, compared with BVLC Caffe."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
import pytest
from golden import DATA, Case, cases

from hearth.native import _caffe

TRANSFORMS = cases("transform")


@pytest.fixture(autouse=True)
def in_data_folder() -> Iterator[None]:
    """Mean files have names relative to the data folder."""
    before = os.getcwd()
    os.chdir(DATA)
    yield
    os.chdir(before)


def source_image(case: Case, arrays: dict[str, np.ndarray]) -> np.ndarray:
    """The image (channels, height, width) that Caffe's transformer received."""
    if case["source"] in ("u8", "float"):
        return arrays["image"]
    colors = "color" if case["is_color"] else "gray"
    if case["source"] == "encoded":
        flags = case["transform_param"]
        colors = (
            "color" if "force_color" in flags else "gray" if "force_gray" in flags else "unchanged"
        )
    image = _caffe.decode_image((DATA / case["image_file"]).read_bytes(), colors)
    if case["new_height"]:
        image = _caffe.resize_image(image, case["new_height"], case["new_width"])
    if "decoded_hwc_bgr" in arrays:
        case.close(image, arrays["decoded_hwc_bgr"], "decoded")
    return np.ascontiguousarray(image.transpose(2, 0, 1))


def transformed(case: Case, image: np.ndarray, seed: int = 0) -> np.ndarray:
    """The transformed image, with a batch axis like Caffe's."""
    return _caffe.transform_image(case["transform_param"], case["phase"], image, seed)[None]


@pytest.mark.parametrize(
    "case", [case for case in TRANSFORMS if not case.get("stochastic")], ids=lambda case: case.name
)
def test_images_are_transformed_as_caffe_did(case: Case) -> None:
    arrays = case.arrays()
    case.close(transformed(case, source_image(case, arrays)), arrays["out"], "out")


def test_mirror_gives_each_of_the_two_results() -> None:
    case = next(case for case in TRANSFORMS if case.get("stochastic"))
    arrays = case.arrays()
    plain = 0
    for seed in range(40):
        out = transformed(case, arrays["image"], seed)
        is_plain = np.allclose(out, arrays["out_plain"])
        plain += is_plain
        case.close(out, arrays["out_plain" if is_plain else "out_mirrored"], f"seed {seed}")
    assert 5 < plain < 35
