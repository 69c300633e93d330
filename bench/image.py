#!/usr/bin/env python3
"""Decode, crop, flip and normalize 150 KB JPEGs: hearth.data.image against torchvision.

`bench/image.py --json FILE`. Images per second of processor time of all processes, in batches of
64: with torchvision's tensors and with PIL in the main process, and with a DataLoader of two
workers. torchvision is installed into build/bench-torchvision if it is missing.
"""

from __future__ import annotations

import importlib.util
import io
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from hearth.data.image import image
from report import Report, arguments, in_turn

FOLDER = Path(__file__).resolve().parents[1] / "build" / "bench-torchvision"
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
BATCH, BATCHES = 64, 4
BYTES = 150_000
SIZES = {"500 x 375": (375, 500), "640 x 480": (480, 640), "1024 x 768": (768, 1024)}


def find_torchvision() -> None:
    """Makes torchvision importable: the release for this torch, or the newest one."""
    if importlib.util.find_spec("torchvision") is not None:
        return
    if not (FOLDER / "torchvision").exists():
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
        if subprocess.run([*command, "--target", str(FOLDER), "torchvision"]).returncode != 0:
            raise SystemExit(f"pip could not install torchvision into {FOLDER}")
    sys.path.append(str(FOLDER))


def noise(random: np.random.Generator, height: int, width: int, power: float) -> np.ndarray:
    """A plane whose spectrum falls with frequency, like that of photographs."""
    rows, columns = np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width)[None]
    frequency = np.hypot(rows, columns)
    frequency[0, 0] = 1
    shape = frequency.shape
    spectrum = (random.normal(size=shape) + 1j * random.normal(size=shape)) / frequency**power
    plane = np.fft.irfft2(spectrum, s=(height, width))
    return plane / plane.std()


def jpeg(seed: int, height: int, width: int) -> bytes:
    """A file of at most 150 KB, at the highest quality that fits."""
    random = np.random.default_rng(seed)
    light = noise(random, height, width, 1.2)
    planes = [light + 0.5 * noise(random, height, width, 1.6) for _ in range(3)]
    pixels = np.clip(128 + 50 * np.stack(planes, -1), 0, 255).astype(np.uint8)
    drawn = Image.fromarray(pixels)
    low, high, best = 10, 100, b""
    while high - low > 1:
        quality = (low + high) // 2
        file = io.BytesIO()
        drawn.save(file, "JPEG", quality=quality)
        if file.tell() > BYTES:
            high = quality
        else:
            low, best = quality, file.getvalue()
    return best


class PilFiles(torch.utils.data.Dataset):
    """Decodes with PIL, then transforms, like torchvision's ImageFolder."""

    def __init__(self, files: list[bytes]) -> None:
        from torchvision import transforms

        self.files = files
        self.transform = transforms.Compose(
            [
                transforms.RandomResizedCrop(224),
                transforms.RandomHorizontalFlip(),
                transforms.ToTensor(),
                transforms.Normalize(MEAN, STD),
            ]
        )

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.transform(Image.open(io.BytesIO(self.files[index])).convert("RGB"))


class TensorFiles(PilFiles):
    """torchvision's own decoder and tensor transforms, its fastest ones on CPUs."""

    def __init__(self, files: list[bytes]) -> None:
        from torchvision.transforms import v2

        self.files = files
        self.transform = v2.Compose(
            [
                v2.RandomResizedCrop(224, antialias=True),
                v2.RandomHorizontalFlip(),
                v2.ToDtype(torch.float32, scale=True),
                v2.Normalize(MEAN, STD),
            ]
        )

    def __getitem__(self, index: int) -> torch.Tensor:
        from torchvision.io import ImageReadMode, decode_jpeg

        encoded = torch.frombuffer(bytearray(self.files[index]), dtype=torch.uint8)
        return self.transform(decode_jpeg(encoded, mode=ImageReadMode.RGB))


def loader(dataset: PilFiles, workers: int) -> Iterator[torch.Tensor]:
    return iter(torch.utils.data.DataLoader(dataset, batch_size=BATCH, num_workers=workers))


def ours(files: list[bytes], threads: int) -> Callable[[], Iterator[np.ndarray]]:
    transform = image(size=224, mean=MEAN, std=STD, to="float32", threads=threads)
    epochs = iter(range(1 << 20))

    def batches() -> Iterator[np.ndarray]:
        epoch = next(epochs)
        for first in range(0, len(files), BATCH):
            seeds = np.arange(first, first + BATCH, dtype=np.uint64) + np.uint64(epoch << 32)
            pixels, failed = transform.apply(files[first : first + BATCH], seeds)
            assert not failed.any()
            yield pixels

    return batches


def rate(batches: Callable[[], Iterator[object]]) -> float:
    """Images per second of processor time of this process and of its ended children."""
    start = os.times()
    count = sum(len(batch) for batch in batches())
    end = os.times()
    return count / (sum(end[:4]) - sum(start[:4]))


def main() -> None:
    options = arguments(__doc__.splitlines()[0]).parse_args()
    find_torchvision()
    torch.set_num_threads(1)
    report = Report(options.only)
    for size, (height, width) in SIZES.items():
        if not report.wants(size):
            continue
        distinct = [jpeg(seed, height, width) for seed in range(8)]
        files = distinct * (BATCH * BATCHES // len(distinct))
        tensors, pil = TensorFiles(files), PilFiles(files)
        ways = {
            "ours": ours(files, 1),
            "ours, 2 threads": ours(files, 2),
            "torchvision": lambda tensors=tensors: loader(tensors, 0),
            "PIL": lambda pil=pil: loader(pil, 0),
            "torchvision, 2 workers": lambda tensors=tensors: loader(tensors, 2),
            "PIL, 2 workers": lambda pil=pil: loader(pil, 2),
        }
        calls = {name: lambda way=way: rate(way) for name, way in ways.items()}
        rates = in_turn(options.rounds, calls)
        for name in list(ways)[2:]:
            mine = rates["ours, 2 threads" if "workers" in name else "ours"]
            report.add(
                f"image/{size}/{name}", ours=mine, peer=rates[name], peer_name=name, unit="image/s"
            )
    report.save(options.json)


if __name__ == "__main__":
    main()
