"""Whole training steps of the Caffe engine against PyTorch: same nets, same batch, float32, CPU.

Each row is one step: forward, backward, SGD with momentum and weight decay. The peer is the fastest
of eager and compiled PyTorch (torch.compile of model and loss; `--no-compile` omits it) in two
memory formats. Rows ``bf16/...`` compare products in bfloat16 with our own float32; rows
``memory/...`` show the peak resident memory of a process that trains for three steps;
``start/lenet`` is the time of `hearth train` from exec to its first iteration line, against a limit
of 0.7 s.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hearth.native import _caffe

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "bench")]
from report import Report, alternate, arguments, in_turn, seconds  # noqa: E402

THREADS = 2
# Net, batch, classes (0: the target is an array shaped like the output).
NETS = [
    ("lenet", 64, 10), ("cifar10_quick", 100, 10), ("caffenet", 32, 1000), ("alexnet", 32, 1000),
    ("googlenet", 16, 1000), ("lstm3", 64, 0),
]  # fmt: skip
ROW_NAMES = {"lstm3": "lstm"}
SOLVER = 'base_lr: 0.001 momentum: 0.9 weight_decay: 0.0005 lr_policy: "fixed" random_seed: 1 '


def our_step(net: str, classes: int, precision: str = "float32") -> Callable[[], object]:
    """One train step of ours."""
    solver = our_solver(net, classes, precision)
    return lambda: solver.step(1)


def our_solver(net: str, classes: int, precision: str = "float32") -> _caffe.Solver:
    """A solver of a net of examples/nets; as in `hearth train`, blobs get no gradients."""
    text = (ROOT / f"examples/nets/{net}.prototxt").read_text()
    return solver_of(text, classes, precision, keep_diffs=False)


def solver_of(text: str, classes: int, precision: str, keep_diffs: bool = True) -> _caffe.Solver:
    """A solver of the net `text`, whose inputs get random values once."""
    import numpy as np

    from hearth.native import _caffe

    random = np.random.default_rng(0)

    def fill(native: _caffe.Net) -> None:
        if placed:
            return
        for name in ("data", "label", "target", "cont"):
            if name in native.blobs:
                blob = native.blobs[name].data
                if name == "label":
                    blob[...] = random.integers(0, classes, blob.shape)
                elif name == "cont":
                    blob[...] = np.arange(blob.shape[0])[:, None] > 0
                else:
                    blob[...] = random.standard_normal(blob.shape, dtype=np.float32)
        placed.append(True)

    placed: list[bool] = []
    return _caffe.Solver(SOLVER + "display: 0 net_param {\n" + text + "}", before_forward=fill,
                         precision=precision, keep_diffs=keep_diffs)  # fmt: skip


def torch_step(
    net: str, batch: int, classes: int, channels_last: bool, compiled: bool = False
) -> Callable[[], object]:
    """One train step of PyTorch."""
    import torch

    import torch_nets

    torch.manual_seed(0)
    model = getattr(torch_nets, net)().train()
    sizes = {"lenet": (1, 28, 28), "cifar10_quick": (3, 32, 32), "googlenet": (3, 224, 224)}
    if classes:
        data = torch.randn(batch, *sizes.get(net, (3, 227, 227)))
        label = torch.randint(0, classes, (batch,))
    else:
        data, label = torch.randn(20, batch, 128), torch.randn(20, batch, 128)
    if channels_last:
        model = model.to(memory_format=torch.channels_last)
        data = data.to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(
        model.parameters(), lr=0.001, momentum=0.9, weight_decay=0.0005, fused=True
    )

    loss = torch.compile(model.loss) if compiled else model.loss

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        loss(data, label).backward()
        optimizer.step()

    return step


def torch_steps(
    net: str, batch: int, classes: int, compiled: bool
) -> dict[str, Callable[[], object]]:
    """PyTorch's steps by name, each called once; reports failures of torch.compile."""
    steps = {}
    for form in ("contiguous", "channels_last") if classes else ("contiguous",):
        for kind in ("eager", "compile") if compiled else ("eager",):
            step = torch_step(net, batch, classes, form != "contiguous", kind == "compile")
            try:
                step()
            except Exception as error:
                if kind == "eager":
                    raise
                print(f"{net}: torch.compile failed: {error!r}"[:300], file=sys.stderr, flush=True)
            else:
                steps[f"torch {kind}, {form}"] = step
    return steps


def timed_row(
    report: Report, net: str, batch: int, classes: int, rounds: int, compiled: bool
) -> None:
    import torch

    torch.set_num_threads(THREADS)
    name = f"{ROW_NAMES.get(net, net)}/{batch}"
    if not report.wants(name):
        return
    ours = our_step(net, classes)
    ours()
    peers = torch_steps(net, batch, classes, compiled)
    steps = max(1, int(0.3 / seconds(ours)))

    def milliseconds(step: Callable[[], object]) -> float:
        return 1000 * seconds(lambda: [step() for _ in range(steps)]) / steps

    calls = {"ours": ours, **peers}
    times = in_turn(rounds, {key: partial(milliseconds, step) for key, step in calls.items()})
    mine = times.pop("ours")
    better = min(times, key=lambda key: min(times[key]))
    report.add(name, ours=mine, peer=times[better], peer_name=better, unit="ms",
               higher_is_better=False)  # fmt: skip


def bf16_row(report: Report, net: str, classes: int, rounds: int) -> None:
    """Products in bfloat16 against our own float32."""
    name = f"bf16/{net}"
    if not report.wants(name):
        return
    steps = [our_step(net, classes, precision) for precision in ("bf16", "float32")]
    for step in steps:
        step()
    mine, theirs = alternate(rounds, *(lambda s=step: 1000 * seconds(s) for step in steps))
    report.add(name, ours=mine, peer=theirs, peer_name="ours, float32", unit="ms",
               higher_is_better=False)  # fmt: skip


def memory_row(report: Report, net: str, batch: int) -> None:
    name = f"memory/{net}/{batch}"
    if not report.wants(name):
        return

    def peak(side: str) -> float:
        done = subprocess.run(
            [sys.executable, __file__, "--memory", side, net], capture_output=True, text=True,
            check=True,
        )  # fmt: skip
        return float(done.stdout.split()[-1])

    mine, theirs = peak("ours"), min(peak("torch"), peak("torch-channels-last"))
    report.add(name, ours=[mine], peer=[theirs], peer_name="torch eager", unit="MB",
               higher_is_better=False)  # fmt: skip


def print_peak_memory(side: str, net: str) -> None:
    """Trains three steps in this process and prints its peak resident memory in MB."""
    batch, classes = next((b, c) for n, b, c in NETS if n == net)
    if side == "ours":
        train_with_program(net, 3)
        import resource

        print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)
        return
    step = torch_step(net, batch, classes, side == "torch-channels-last")
    for _ in range(3):
        step()
    # Not ru_maxrss, which starts with the parent's memory at the fork.
    (line,) = (x for x in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in x)
    print(int(line.split()[1]) / 1024)


def train_with_program(net: str, iterations: int) -> float:
    """Runs `hearth train` on zeros; returns the seconds until its first iteration line."""
    from hearth import native

    with tempfile.TemporaryDirectory() as folder:
        solver = Path(folder) / "solver.prototxt"
        text = (ROOT / f"examples/nets/{net}.prototxt").read_text()
        solver.write_text(
            SOLVER + f'display: 1 max_iter: {iterations} snapshot_prefix: "{folder}/net" '
            "snapshot_after_train: false net_param {\n" + text + "}"
        )
        start = time.perf_counter()
        with subprocess.Popen(
            [native.program(), "train", f"--solver={solver}"],
            stderr=subprocess.PIPE, text=True, env={**os.environ, **native.environment()},
        ) as program:  # fmt: skip
            first = None
            for line in program.stderr:
                if first is None and "Iteration 0" in line:
                    first = time.perf_counter() - start
        if first is None or program.returncode != 0:
            raise RuntimeError(f"hearth train of {net} ended with {program.returncode}")
        return first


def main() -> None:
    if sys.argv[1:2] == ["--memory"]:
        print_peak_memory(*sys.argv[2:])
        return
    parser = arguments(__doc__)
    parser.add_argument("--no-compile", action="store_true", help="without torch.compile")
    options = parser.parse_args()
    report = Report(options.only)
    for net, batch, classes in NETS:
        timed_row(report, net, batch, classes, options.rounds, not options.no_compile)
    for net in ("caffenet", "googlenet"):
        bf16_row(report, net, 1000, options.rounds)
    for net, batch in (("caffenet", 32), ("lenet", 64)):
        memory_row(report, net, batch)
    if report.wants("start/lenet"):
        times = [train_with_program("lenet", 1) for _ in range(options.rounds)]
        report.add("start/lenet", ours=times, peer=[0.7], peer_name="limit", unit="s",
                   higher_is_better=False)  # fmt: skip
    report.save(options.json)


if __name__ == "__main__":
    main()
