#!/usr/bin/env python3
"""Train steps of the Caffe engine against PyTorch eager and torch.compile on one GPU.

`bench/gpu_engine.py --json FILE [--nets lenet,caffenet] [--precisions float32,bf16] [--no-compile]`

One step is forward, backward and SGD with momentum and weight decay on data that stays in the
GPU's memory. CUDA events measure a burst of steps; all contenders take turns in one process.
float32 is without TF32 on both sides; bf16 means `-precision bf16` for ours and autocast for
PyTorch. PyTorch uses `cudnn.benchmark`, and "ours" the equivalent `-algorithms fastest`; "ours,
deterministic" is Hearth's default. The ratio compares "ours" with the fastest PyTorch contender. A
row has each contender's milliseconds and peak memory, and the kernels of one step: their number,
their share of the time, and the six longest.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "bench"), str(ROOT / "examples" / "nets")]

# Most important first: net, batch, classes (0: the target is an array shaped like the output).
NETS = {
    "caffenet": (256, 1000), "lenet": (64, 10), "resnet50": (128, 1000), "googlenet": (128, 1000),
    "lstm3": (64, 0), "alexnet": (256, 1000), "cifar10_quick": (100, 10),
}  # fmt: skip
# PyTorch's faster memory format on an H200; with --one-form only this one is measured.
FASTER = {"caffenet": "channels_last"}
BURST_S = 0.12
Step = Callable[[], object]


def net_text(net: str, batch: int) -> str:
    """The net's prototxt for that batch."""
    import re

    if net == "resnet50":
        from resnet50 import resnet50

        return resnet50(batch)
    text = (ROOT / f"examples/nets/{net}.prototxt").read_text()
    if net == "lstm3":
        return text
    return re.sub(r"(input_param \{ shape \{ dim: )\d+", rf"\g<1>{batch}", text)


def our_step(net: str, batch: int, classes: int, precision: str) -> Step:
    """A step of ours on the GPU; the net's inputs get random values once."""
    from engine import solver_of
    from hearth.native import _caffe

    _caffe.use_gpu(0)
    solver = solver_of(net_text(net, batch), classes, precision, keep_diffs=False)
    return lambda: solver.step(1)


def torch_step(
    net: str, batch: int, classes: int, precision: str, form: str, compiled: bool
) -> Step:
    """A step of PyTorch; `form` is its memory format, contiguous or channels_last."""
    import torch

    import torch_nets

    torch.manual_seed(0)
    if net == "resnet50":
        import torchvision

        model = torchvision.models.resnet50().cuda().train()
        loss = lambda x, y: torch.nn.functional.cross_entropy(model(x), y)  # noqa: E731
    else:
        model = getattr(torch_nets, net)().cuda().train()
        loss = model.loss
    sizes = {"lenet": (1, 28, 28), "cifar10_quick": (3, 32, 32), "googlenet": (3, 224, 224),
             "resnet50": (3, 224, 224)}  # fmt: skip
    if classes:
        data = torch.randn(batch, *sizes.get(net, (3, 227, 227)), device="cuda")
        target = torch.randint(0, classes, (batch,), device="cuda")
    else:
        data, target = (torch.randn(20, batch, 128, device="cuda") for _ in range(2))
    if form == "channels_last":
        model.to(memory_format=torch.channels_last)
        data = data.to(memory_format=torch.channels_last)
    if compiled:
        loss = torch.compile(loss)
    optimizer = torch.optim.SGD(
        model.parameters(), lr=0.001, momentum=0.9, weight_decay=0.0005, fused=True
    )

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16, enabled=precision == "bf16"):
            value = loss(data, target)
        value.backward()
        optimizer.step()

    return step


def set_switches(deterministic: bool) -> None:
    import torch

    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.deterministic = deterministic
    torch.backends.cudnn.benchmark = not deterministic


class Contender:
    """A step and its measurements.

    Ours and PyTorch share PyTorch's global switches, so each sets them before its step.
    """

    def __init__(self, name: str, make: Callable[[], Step]):
        import torch

        self.name, self.times = name, []
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        start = time.perf_counter()
        self.step = make()
        self._set_switches()  # use_gpu() has set its own switches
        for _ in range(3):
            self.step()
        torch.cuda.synchronize()
        self.start_s = time.perf_counter() - start
        self.memory_mb = (torch.cuda.max_memory_allocated() - before) / 2**20
        self.steps = 1
        self.steps = max(1, int(BURST_S / max(1e-5, self._burst() / 1000)))
        self.burst_ms()

    def _set_switches(self) -> None:
        set_switches("deterministic" in self.name)

    def _burst(self) -> float:
        import torch

        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(self.steps):
            self.step()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) / self.steps

    def burst_ms(self) -> float:
        """Milliseconds of a step, the mean of a burst."""
        self._set_switches()
        return self._burst()

    def kernels(self) -> dict[str, Any]:
        """Kernels on the GPU per step, averaged over three steps."""
        import torch
        from torch.profiler import ProfilerActivity, profile

        count = 3
        self._set_switches()
        with profile(activities=[ProfilerActivity.CUDA]) as seen:
            for _ in range(count):
                self.step()
            torch.cuda.synchronize()
        rows = [e for e in seen.key_averages() if e.self_device_time_total > 0]
        rows.sort(key=lambda e: -e.self_device_time_total)
        total_ms = sum(e.self_device_time_total for e in rows) / 1000 / count
        longest = [
            [e.key[:90], e.count / count, round(e.self_device_time_total / 1000 / count, 4)]
            for e in rows[:6]
        ]
        return {
            "launches": sum(e.count for e in rows) / count,
            "kernel_ms": total_ms,
            "busy": total_ms / min(self.times),
            "longest": longest,
        }

    def figures(self) -> dict[str, Any]:
        """The row's figures of this contender."""
        return {
            "ms": min(self.times), "ms_median": statistics.median(self.times),
            "memory_mb": round(self.memory_mb), "start_s": round(self.start_s, 2),
            **self.kernels(),
        }  # fmt: skip


def forms_of(net: str, one_form: bool) -> tuple[str, ...]:
    """The memory formats of PyTorch that are measured."""
    if one_form:
        return (FASTER.get(net, "contiguous"),)
    return ("contiguous", "channels_last") if NETS[net][1] else ("contiguous",)


def contenders(net: str, precision: str, compiled: bool, one_form: bool) -> list[Contender]:
    """Ours, the memory formats of eager PyTorch, and the better one compiled."""
    batch, classes = NETS[net]
    given = (net, batch, classes, precision)
    found = [Contender("ours", lambda: our_step(*given))]
    found.append(Contender("ours, deterministic", lambda: found[0].step))
    for form in forms_of(net, one_form):
        found.append(Contender(f"eager {form}", lambda form=form: torch_step(*given, form, False)))
    if compiled:
        better = min(found[2:], key=lambda c: c.burst_ms()).name.split()[1]
        try:
            found.append(Contender("compile", lambda: torch_step(*given, better, True)))
        except Exception as error:
            print(f"{net}/{precision}: torch.compile failed: {error!r}"[:600], flush=True)
    return found


def row_of(net: str, precision: str, flags: argparse.Namespace) -> dict[str, Any]:
    """Measures one net in one precision."""
    import torch

    all_of_them = contenders(net, precision, not flags.no_compile, flags.one_form)
    for _ in range(flags.rounds):
        for contender in all_of_them:
            contender.times.append(contender.burst_ms())
    figures = {contender.name: contender.figures() for contender in all_of_them}
    peers = [c for c in all_of_them if not c.name.startswith("ours")]
    peer = min(peers, key=lambda c: min(c.times))
    row = {
        "name": f"{net}/{NETS[net][0]}/{precision}",
        "ratio": min(peer.times) / figures["ours"]["ms"],
        "peer": peer.name, "rounds": flags.rounds, "card": torch.cuda.get_device_name(), **figures,
    }  # fmt: skip
    print(
        f"{row['name']:<24} ours {figures['ours']['ms']:.3f} ms, {peer.name} "
        f"{min(peer.times):.3f} ms, ratio {row['ratio']:.2f}; "
        + "; ".join(
            f"{name}: {f['ms']:.3f} ms, {f['launches']:.0f} launches, busy {f['busy']:.2f}, "
            f"{f['memory_mb']} MB" for name, f in figures.items()
        ),
        flush=True,
    )  # fmt: skip
    print("   ours longest:", figures["ours"]["longest"], flush=True)
    return row


def warm(nets: list[str], precisions: list[str], one_form: bool) -> None:
    """Compiles the nets in parallel, each in a separate process."""
    import subprocess

    if len(nets) > 1:
        processes = [
            subprocess.Popen(
                [sys.executable, __file__, "--warm", "--nets", net, "--precisions", precision,
                 *(["--one-form"] if one_form else [])]
            )
            for net in nets for precision in precisions
        ]  # fmt: skip
        for process in processes:
            process.wait()
        return
    [net], [precision] = nets, precisions
    set_switches(deterministic=False)
    for form in forms_of(net, one_form):
        torch_step(net, *NETS[net], precision, form, True)()
    print(f"{net}/{precision} is compiled", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="where to write the rows")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--nets", default=",".join(NETS))
    parser.add_argument("--precisions", default="float32,bf16")
    parser.add_argument("--no-compile", action="store_true", help="without torch.compile")
    parser.add_argument("--one-form", action="store_true", help="only PyTorch's faster layout")
    parser.add_argument("--warm", action="store_true", help="only compile, for later runs' caches")
    flags = parser.parse_args()
    if flags.warm:
        return warm(flags.nets.split(","), flags.precisions.split(","), flags.one_form)
    rows: list[dict[str, Any]] = []
    for net in flags.nets.split(","):
        for precision in flags.precisions.split(","):
            try:
                rows.append(row_of(net, precision, flags))
            except Exception as error:  # a net that fails leaves the others running
                rows.append({"name": f"{net}/{precision}", "error": repr(error)[:600]})
                print(f"{net}/{precision}: {error!r}"[:600], flush=True)
            if flags.json is not None:
                flags.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
