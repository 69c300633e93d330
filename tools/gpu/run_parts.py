"""Runs the parts of tools/gpu/run.sh: commands with a time limit each, none of which stops the rest.

Appends to $OUT/results.json and $OUT/run.log as each command ends; prints a table last.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OUT = Path(os.environ["OUT"])
CHECKS = "tools/gpu/checks.py"


@dataclass(frozen=True)
class Command:
    """One command of a part: its name, its words after `python`, and seconds that it may take."""

    name: str
    words: list[str]
    limit_s: float
    program: str = sys.executable
    background: bool = False
    environment: dict[str, str] = field(default_factory=dict)


def check(name: str, limit_s: float) -> Command:
    """A function of tools/gpu/checks.py."""
    return Command(name, [CHECKS, name], limit_s)


def engine(name: str, nets: str, limit_s: float, *more: str) -> Command:
    """bench/gpu_engine.py over some nets."""
    file = OUT / f"{name}.json"
    return Command(name, ["bench/gpu_engine.py", "--json", str(file), "--nets", nets, *more], limit_s)


def gtests(name: str, program: str, chosen: str, limit_s: float) -> Command:
    path = str(Path(os.environ["HEARTH_GPU_TESTS"]) / program)
    return Command(name, [f"--gtest_filter={chosen}", "--gtest_brief=1"], limit_s, program=path)


DEVICE_TESTS = "*OnDevice*:Solvers/*:SimulatedDevice*:CudaDevice*:*SyncedArray*:*ClearedArray*:Blob.*"
GOLDEN = ["-m", "pytest", "tests/golden", "-n", "4", "--timeout", "120", "-q", "--tb=short"]
FIRST_NETS = "caffenet,lenet,resnet50"
OTHER_NETS = "googlenet,lstm3,alexnet,cifar10_quick"

PARTS: dict[str, list[Command]] = {
    "facts": [check("facts", 30)],
    "device": [
        gtests("layers", "hearth_caffe_test", DEVICE_TESTS, 90),
        Command("golden", GOLDEN, 120),
    ],
    "digits": [check("digits", 60), check("resume", 60), check("kill", 60)],
    # torch.compile takes most of the time: all nets at once, into the caches of the next part.
    "warm": [Command("warm", ["bench/gpu_engine.py", "--warm"], 120)],
    "engine": [engine("engine", FIRST_NETS, 220)],
    "feed": [Command("feed", ["bench/gpu_feed.py", "--json", str(OUT / "feed.json")], 90)],
    "torch": [Command("torch", ["bench/gpu_torch.py", "--json", str(OUT / "torch.json")], 120)],
    "scan": [
        engine("scan", f"{FIRST_NETS},{OTHER_NETS}", 150, "--no-compile", "--rounds", "3",
               "--precisions", "float32"),
    ],
    "engine2": [engine("engine2", OTHER_NETS, 240)],
    "threads": [check("threads", 60), check("nccl", 60)],
    "sanitizer": [check("sanitizer", 120)],
}
FIRST_CALL = ["facts", "device", "digits", "engine", "feed", "torch"]


def run(part: str, command: Command, log: Path) -> dict[str, object]:
    """Runs the command with what it starts, and ends all of it at the limit."""
    libraries = os.environ["HEARTH_GPU_LIBRARIES"]
    environment = {**os.environ, "LD_LIBRARY_PATH": libraries, **command.environment}
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
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
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
        print(f"{row['part'] + '/' + str(row['command']):<24} {row['status']!s:<13} {row['seconds']}")


if __name__ == "__main__":
    main()
