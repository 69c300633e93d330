#!/usr/bin/env python3
"""Inference on 150 KB JPEGs: the Caffe engine against torchvision and torch.compile.

`bench/engine_images.py --json FILE`. Images per second of processor time, from encoded files to
the net's outputs: ImageData reads, decodes, resizes to 256 x 256 and crops, as in `hearth test` and
`extract_features`; the peer decodes and transforms tensors by torchvision. One thread computes on
each side; the engine loads the next minibatch in another, whose time counts as well. Rows named
bf16 and int8 compare `--precision` of that name with the peer in float32, rows bf16/autocast with
the peer under autocast to bfloat16.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before any library starts its threads

import tempfile
from collections.abc import Callable
from pathlib import Path

import torch

import torch_nets
from hearth.native import _caffe
from image import BATCH, find_torchvision, jpeg
from report import Report, arguments, in_turn

ROOT = Path(__file__).resolve().parents[1]
SIDES = {"caffenet": 227, "googlenet": 224}
DATA = """
layer {{ name: "data" type: "ImageData" top: "data" top: "label"
  image_data_param {{ source: "{list}" batch_size: {batch} new_height: 256 new_width: 256 }}
  transform_param {{ crop_size: {side} mean_value: 104 mean_value: 117 mean_value: 123 }} }}
"""


def ours(net: str, list_file: Path, precision: str) -> Callable[[], object]:
    """Forward passes of a net of examples/nets with its two input layers replaced."""
    data = DATA.format(list=list_file, batch=BATCH, side=SIDES[net])
    layers = (ROOT / f"examples/nets/{net}.prototxt").read_text().split("\nlayer {")
    text = data + "".join(f"\nlayer {{{layer}" for layer in layers[3:])
    return _caffe.Net.for_inference(text, precision).forward


def theirs(net: str, files: list[bytes], precision: str) -> Callable[[], object]:
    from torchvision.io import ImageReadMode, decode_jpeg
    from torchvision.transforms import v2

    mean = [104 / 255, 117 / 255, 123 / 255]
    transform = v2.Compose([
        v2.Resize((256, 256), antialias=False), v2.CenterCrop(SIDES[net]),
        v2.ToDtype(torch.float32, scale=True), v2.Normalize(mean, [1 / 255] * 3),
    ])  # fmt: skip
    model = getattr(torch_nets, net)().eval().to(memory_format=torch.channels_last)
    compiled = torch.compile(model.loss)
    encoded = [torch.frombuffer(bytearray(file), dtype=torch.uint8) for file in files]
    label = torch.zeros(len(files), dtype=torch.int64)

    def step() -> object:
        images = [transform(decode_jpeg(file, mode=ImageReadMode.RGB)) for file in encoded]
        narrow = torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16")
        with torch.no_grad(), narrow:
            return compiled(torch.stack(images).to(memory_format=torch.channels_last), label)

    return step


def rate(step: Callable[[], object]) -> float:
    start = os.times()
    step()
    end = os.times()
    return BATCH / (sum(end[:2]) - sum(start[:2]))


def measure(net: str, lines: Path, files: list[bytes], rounds: int, report: Report) -> None:
    """Runs the contenders in turn; adds a row for each precision."""
    rows = {f"{p}/{net}": ("ours " + p, "float32") for p in ("float32", "bf16", "int8")}
    rows[f"bf16/autocast/{net}"] = ("ours bf16", "bf16")
    wanted = {name: pair for name, pair in rows.items() if report.wants(name)}
    names = {name for pair in wanted.values() for name in pair}
    sides = {n: ours(net, lines, n[5:]) if n[:5] == "ours " else theirs(net, files, n)
             for n in sorted(names)}  # fmt: skip
    rates = in_turn(rounds, {n: lambda s=side: rate(s) for n, side in sides.items()})
    for name, (mine, peer) in wanted.items():
        report.add(name, ours=rates[mine], peer=rates[peer],
                   peer_name="torchvision, torch.compile", unit="image/s")  # fmt: skip


def main() -> None:
    options = arguments(__doc__.splitlines()[0]).parse_args()
    find_torchvision()
    torch.set_num_threads(1)
    report = Report(options.only)
    with tempfile.TemporaryDirectory() as folder:
        files = [jpeg(seed, 375, 500) for seed in range(8)] * (BATCH // 8)
        for i, file in enumerate(files):
            (Path(folder) / f"{i}.jpg").write_bytes(file)
        lines = Path(folder) / "list.txt"
        lines.write_text("".join(f"{folder}/{i}.jpg 0\n" for i in range(BATCH)))
        for net in SIDES:
            measure(net, lines, files, options.rounds, report)
    report.save(options.json)


if __name__ == "__main__":
    main()
