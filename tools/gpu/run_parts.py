"""Runs the parts of tools/gpu/run.sh: commands with time limits. A failure stops no other part.

Appends to $OUT/results.json and $OUT/run.log when a command ends; prints a table at the end.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OUT = Path(os.environ["OUT"])
CHECKS = "tools/gpu/checks.py"


@dataclass(frozen=True)
class Command:
    """One command of a part: its name, arguments after `python`, and time limit in seconds."""

    name: str
    words: list[str]
    limit_s: float
    program: str = sys.executable


def check(name: str, limit_s: float) -> Command:
    """A function of tools/gpu/checks.py."""
    return Command(name, [CHECKS, name], limit_s)


def engine(name: str, nets: str, limit_s: float, *more: str) -> Command:
    """bench/gpu_engine.py over some nets."""
    file = OUT / f"{name}.json"
    words = ["bench/gpu_engine.py", "--json", str(file), "--nets", nets, *more]
    return Command(name, words, limit_s)


def gtests(name: str, program: str, chosen: str, limit_s: float) -> Command:
    path = str(Path(os.environ["HEARTH_GPU_TESTS"]) / program)
    return Command(name, [f"--gtest_filter={chosen}", "--gtest_brief=1"], limit_s, program=path)


DEVICE_TESTS = (
    "*OnDevice*:Solvers/*:SimulatedDevice*:CudaDevice*:*SyncedArray*:*ClearedArray*:Blob.*"
)
GOLDEN = ["-m", "pytest", "tests/golden", "-n", "4", "--timeout", "120", "-q", "--tb=short"]
NETS = "caffenet,resnet50,lstm3,lenet,cifar10_quick,googlenet,alexnet"

PARTS: dict[str, list[Command]] = {
    "facts": [check("facts", 30)],
    "device": [
        gtests("layers", "hearth_caffe_test", DEVICE_TESTS, 90),
        Command("golden", GOLDEN, 120),
    ],
    "digits": [check("digits", 60), check("resume", 60), check("kill", 60)],
    # torch.compile takes most of the time, so several nets fill the next part's caches in parallel.
    "warm": [
        Command(
            "warm",
            [
                "bench/gpu_engine.py",
                "--warm",
                "--one-form",
                "--nets",
                "caffenet,resnet50,googlenet",
                "--precisions",
                "float32",
            ],
            80,
        ),
    ],
    "engine": [
        engine("engine", NETS, 300, "--one-form", "--precisions", "float32"),
    ],
    "bf16": [engine("bf16", NETS, 150, "--no-compile", "--rounds", "3", "--precisions", "bf16")],
    "scan": [
        engine("scan", NETS, 150, "--no-compile", "--rounds", "3", "--precisions", "float32"),
    ],
    "feed": [Command("feed", ["bench/gpu_feed.py", "--json", str(OUT / "feed.json")], 150)],
    "torch": [Command("torch", ["bench/gpu_torch.py", "--json", str(OUT / "torch.json")], 120)],
    "threads": [check("threads", 60), check("nccl", 60)],
    "sanitizer": [check("sanitizer", 120)],
}
FIRST_CALL = ["facts", "device", "digits", "warm", "engine", "feed", "torch"]


def run(part: str, command: Command, log: Path) -> dict[str, object]:
    """Runs the command; at the limit, ends it and all processes that it started."""
    libraries = os.environ["HEARTH_GPU_LIBRARIES"]
    environment = {**os.environ, "LD_LIBRARY_PATH": libraries}
    start = time.monotonic()
    with log.open("a") as sink:
        sink.write(f"\n=== {part}/{command.name}\n")
        sink.flush()
        at = log.stat().st_size
        process = subprocess.Popen(
            [command.program, *command.words], cwd=ROOT, env=environment, stdout=sink,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        try:
            status: int | str = process.wait(command.limit_s)
        except subprocess.TimeoutExpired:
            status = "out of time"
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    with log.open(errors="replace") as source:
        source.seek(at)
        lines = source.read().strip().splitlines()
    results = [json.loads(line[8:]) for line in lines if line.startswith("RESULT: ")]
    return {
        "part": part, "command": command.name, "status": status,
        "seconds": round(time.monotonic() - start, 1), "results": results, "last": lines[-3:],
    }  # fmt: skip


def main() -> None:
    names = sys.argv[1:] or FIRST_CALL
    if unknown := [name for name in names if name not in PARTS]:
        sys.exit(f"run: there is no part {unknown[0]!r}: {', '.join(PARTS)}")
    rows: list[dict[str, object]] = []
    for part in names:
        for command in PARTS[part]:
            row = run(part, command, OUT / "run.log")
            rows.append(row)
            (OUT / "results.json").write_text(json.dumps(rows, indent=1) + "\n")
            print(f"{part}/{row['command']}: {row['status']} after {row['seconds']} s", flush=True)
            for line in row["last"]:
                print("    " + line[:400], flush=True)
    print("\npart                     status        seconds")
    for row in rows:
        name = f"{row['part']}/{row['command']}"
        print(f"{name:<24} {row['status']!s:<13} {row['seconds']}")


if __name__ == "__main__":
    main()
