"""hearth.data.image against PIL's resizing and torchvision's crops, and with files that are
damaged, unusual or not images.
"""

from __future__ import annotations

import io
import pickle
import re
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

from hearth.data.image import image

Image = pytest.importorskip("PIL.Image")


def photograph(height: int, width: int, seed: int = 0) -> np.ndarray:
    """Noise with the spectrum of photographs; its colors are correlated with the brightness."""
    random = np.random.default_rng(seed)
    rows, columns = np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width)[None]
    frequency = np.maximum(np.hypot(rows, columns), 1 / max(height, width))

    def plane(power: float) -> np.ndarray:
        shape = frequency.shape
        spectrum = random.normal(size=shape) + 1j * random.normal(size=shape)
        values = np.fft.irfft2(spectrum / frequency**power, s=(height, width))
        return values / values.std()

    light = plane(1.2)
    planes = [light + 0.5 * plane(1.6) for _ in range(3)]
    return np.clip(128 + 50 * np.stack(planes, -1), 0, 255).astype(np.uint8)


def encode(pixels: np.ndarray, form: str = "PNG", mode: str = "RGB", **options: object) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).convert(mode).save(file, form, **options)
    return file.getvalue()


def by_pil(
    encoded: bytes, height: int, width: int, box: tuple[int, ...] | None = None
) -> np.ndarray:
    whole = Image.open(io.BytesIO(encoded)).convert("RGB")
    whole = whole.crop(box) if box else whole
    return np.asarray(whole.resize((width, height), Image.Resampling.BILINEAR))


def ours(encoded: bytes, seed: int = 0, **options: object) -> np.ndarray:
    pixels, failed = image(**{"kind": "any", "layout": "nhwc", **options}).apply([encoded], [seed])
    assert not failed[0]
    return pixels[0]


def difference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.abs(a.astype(int) - b.astype(int))


@pytest.mark.parametrize("size", [(224, 224), (50, 301), (375, 500), (700, 512), (1, 1), (9, 40)])
@pytest.mark.parametrize("form", ["PNG", "JPEG"])
def test_resizes_as_pil_to_one_level(size, form):
    encoded = encode(photograph(375, 500), form)
    found = ours(encoded, size=size, crop=None, scaled_decoding=False)
    wrong = difference(found, by_pil(encoded, *size))
    # PIL bundles another version of the JPEG library, so a level may differ.
    assert wrong.max() <= 1
    assert wrong.mean() < 0.02 or wrong.size < 100


@pytest.mark.parametrize(("height", "width"), [(375, 500), (500, 333), (100, 90), (1000, 256)])
def test_center_is_that_of_imagenets_evaluation(height, width):
    encoded = encode(photograph(height, width))
    short = min(height, width)
    resized = (256, 256 * width // short) if height == short else (256 * height // short, 256)
    whole = by_pil(encoded, *resized)
    top, left = round((resized[0] - 224) / 2), round((resized[1] - 224) / 2)
    expected = whole[top : top + 224, left : left + 224]
    assert difference(ours(encoded, crop="center"), expected).max() <= 1


def drawn_box(pixels: np.ndarray) -> tuple[bool, tuple[int, int, int, int]]:
    """Whether a crop of positions() was flipped, and its edges: left, top, right and bottom."""
    across, down = pixels[112, :, 0].astype(float), pixels[:, 112, 1].astype(float)
    flipped = across[0] > across[-1]
    edges = []
    for line in (across[::-1] if flipped else across, down):
        step, first = np.polyfit(np.arange(10, 214) + 0.5, line[10:214] + 0.5, 1)
        edges.append((round(first), round(first + 224 * step)))
    (left, right), (top, bottom) = edges
    return flipped, (left, top, right, bottom)


def positions() -> np.ndarray:
    """An image whose red is the column, green the row, and blue noise."""
    rows, columns = np.mgrid[0:256, 0:256]
    noise = np.random.default_rng(1).integers(0, 256, (256, 256))
    return np.stack([columns, rows, noise], -1).astype(np.uint8)


def test_random_crops_are_torchvisions_and_half_of_them_flipped():
    encoded = encode(positions())
    flips = 0
    for seed in range(100):
        found = ours(encoded, seed, crop="random")
        flipped, box = drawn_box(found)
        left, top, right, bottom = box
        assert 0.075 <= (right - left) * (bottom - top) / 256**2 <= 1
        assert 0.74 <= (right - left) / (bottom - top) <= 1.35
        expected = by_pil(encoded, 224, 224, box)
        assert difference(found, expected[:, ::-1] if flipped else expected).max() <= 1
        flips += flipped
    assert 30 <= flips <= 70


def test_random_choices_depend_on_the_images_seed_alone():
    files = [encode(photograph(300, 400, seed), "JPEG") for seed in range(4)]
    transform = image(threads=3)
    seeds = np.array([5, 6, 7, 8], dtype=np.uint64)
    pixels, failed = transform.apply(files, seeds)
    assert pixels.shape == (4, 3, 224, 224) and pixels.dtype == np.uint8
    assert failed.dtype == np.bool_ and not failed.any()
    again, _ = pickle.loads(pickle.dumps(transform)).apply(files[::-1], seeds[::-1])
    assert np.array_equal(again[::-1], pixels)
    other, _ = transform.apply(files, seeds + np.uint64(1))
    assert not np.array_equal(other, pixels)


def test_normalizes_as_torchvision_does():
    encoded = encode(photograph(100, 100))
    mean, std = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    levels = ours(encoded, size=64, crop="center")
    expected = (levels.astype(np.float64) / 255 - mean) / std
    options = {"size": 64, "crop": "center", "mean": mean, "std": std}
    floats = ours(encoded, to="float32", **options)
    assert floats.dtype == np.float32
    assert np.abs(floats - expected).max() < 2e-6
    halves = ours(encoded, to="bfloat16", **options)
    assert halves.dtype == np.uint16
    values = (halves.astype(np.uint32) << 16).view(np.float32)
    assert (np.abs(values - floats) <= np.abs(floats) / 256).all()
    planes = ours(encoded, to="float32", layout="nchw", **options)
    assert np.array_equal(planes.transpose(1, 2, 0), floats)


def test_reduced_decoding_stays_within_its_documented_error():
    """docs/images.md promises 2 levels on average; without reduced decoding, PIL agrees."""
    encoded = encode(photograph(900, 1200), "JPEG", quality=90)
    for size in ((224, 224), (360, 480), (180, 240), (90, 120)):
        wrong = difference(ours(encoded, size=size, crop=None), by_pil(encoded, *size))
        assert 0.1 < wrong.mean() < 2
        exact = ours(encoded, size=size, crop=None, scaled_decoding=False)
        assert difference(exact, by_pil(encoded, *size)).max() <= 1


def sixteen_bits(values: np.ndarray) -> bytes:
    """A greyscale PNG with 16-bit samples."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return (
            struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        )

    height, width = values.shape
    lines = b"".join(b"\0" + row.astype(">u2").tobytes() for row in values)
    header = struct.pack(">IIBBBBB", width, height, 16, 0, 0, 0, 0)
    chunks = [chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(lines)), chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def test_grey_transparent_cmyk_and_16_bit_images_become_red_green_blue():
    whole = {"size": (20, 30), "crop": None}
    pixels = photograph(20, 30)
    for mode in ("L", "P", "RGBA", "LA", "1"):
        encoded = encode(pixels, mode=mode)
        assert np.array_equal(ours(encoded, **whole), by_pil(encoded, 20, 30)), mode
    grey = encode(pixels, "JPEG", mode="L")
    assert difference(ours(grey, **whole), by_pil(grey, 20, 30)).max() <= 1
    ink = encode(pixels, "JPEG", mode="CMYK", quality=95)
    assert difference(ours(ink, **whole), by_pil(ink, 20, 30)).max() <= 2
    values = np.arange(600, dtype=np.uint16).reshape(20, 30) * 100
    assert np.array_equal(ours(sixteen_bits(values), **whole)[..., 1], values >> 8)


@pytest.mark.parametrize("crop", ["random", "center", None])
def test_an_image_of_one_pixel_fills_the_output(crop):
    for encoded in (
        encode(np.full((1, 1, 3), 90, np.uint8)),
        encode(np.zeros((1, 1, 3), np.uint8)),
    ):
        found = ours(encoded, crop=crop)
        assert found.shape == (224, 224, 3)
        assert (found == by_pil(encoded, 1, 1)).all()


def test_images_that_cannot_be_decoded_are_marked_and_zero():
    good = encode(photograph(90, 90), "JPEG")
    huge = bytearray(good)
    at = huge.index(b"\xff\xc0")
    huge[at + 5 : at + 9] = struct.pack(">HH", 60000, 60000)
    files = [good, b"", b"no image", good[:-20], bytes(huge), encode(photograph(9, 9))[:-20], good]
    transform = image("any", to="float32", mean=(0.5, 0.5, 0.5))
    pixels, failed = transform.apply(files, np.arange(7))
    assert failed.tolist() == [False, True, True, True, True, True, False]
    assert not pixels[failed].any()
    assert transform.reason(good) == ""
    assert "ends too early" in transform.reason(good[:-20])
    assert "60000 x 60000 pixels is larger than the limit" in transform.reason(bytes(huge))
    assert "is a PNG file, but kind is jpeg" in image().reason(encode(photograph(9, 9)))


def test_takes_any_buffers_and_an_empty_batch():
    encoded = encode(photograph(40, 40), "JPEG")
    buffers = [encoded, bytearray(encoded), memoryview(encoded), np.frombuffer(encoded, np.uint8)]
    pixels, failed = image().apply(buffers, np.zeros(4, np.uint64))
    assert not failed.any() and all(np.array_equal(pixels[0], other) for other in pixels[1:])
    pixels, failed = image(layout="nhwc").apply([], [])
    assert pixels.shape == (0, 224, 224, 3) and failed.shape == (0,)


def test_a_returned_array_is_not_reused():
    encoded = encode(photograph(40, 40), "JPEG")
    transform = image(crop=None)
    first, _ = transform.apply([encoded] * 8, np.zeros(8))
    kept = first.copy()
    view = first[3]
    del first
    for _ in range(4):
        later, _ = transform.apply([encoded[:-9]] * 8, np.zeros(8))
        assert not later.any()
        del later
    assert np.array_equal(view, kept[3])


def test_invalid_options_are_refused():
    for options, text in (
        ({"kind": "gif"}, "image kind 'gif' is not one of jpeg, png, any"),
        ({"crop": "middle"}, "image crop 'middle' is not one of random, center"),
        ({"to": "float16"}, "image type 'float16' is not one of uint8, float32, bfloat16"),
        ({"layout": "chw"}, "image layout 'chw' is not one of nchw, nhwc"),
        ({"size": 0}, "cannot resize images to 0 x 0 pixels"),
        ({"mean": (0, 0, 0)}, "mean and std have no effect on uint8 images"),
        ({"threads": 0}, "images with 0 threads"),
    ):
        with pytest.raises(ValueError, match=text):
            image(**options)
    with pytest.raises(ValueError, match="2 images have 1 seeds"):
        image().apply([b"", b""], [1])
    with pytest.raises(TypeError):
        image().apply([1], [1])


def test_the_example_of_the_documentation_runs():
    text = (Path(__file__).resolve().parents[2] / "docs" / "images.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    exec(compile(block, "docs/images.md", "exec"), {})


def test_flips_with_random_crops_alone_unless_asked_for():
    ramp = np.broadcast_to(np.arange(64, dtype=np.uint8)[None, :, None], (64, 64, 3))
    encoded = encode(np.ascontiguousarray(ramp))

    def flips(**options: object) -> int:
        pixels, _ = image("png", size=64, layout="nhwc", **options).apply([encoded] * 40, range(40))
        return sum(int(array[0, 0, 0]) > int(array[0, -1, 0]) for array in pixels)

    assert flips(crop=None) == flips(crop="center") == flips(flip=False) == 0
    assert 8 <= flips() <= 32 and 8 <= flips(crop=None, flip=True) <= 32
