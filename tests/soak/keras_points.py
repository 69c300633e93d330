"""Kills a Keras training at each point of its protocol, and resumes with another number of ranks;
counts rows lost and doubled. Without Spark.

`make soak` runs all points; one point: `keras_points.py reduced`.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

import counted_steps
from killed_keras import EPOCHS, POINTS, ROWS
from tensorflow_ranks import Ranks

PROGRAM = f"""
sys.path.insert(0, {str(Path(__file__).resolve().parent)!r})
import killed_keras
records, life, kill = case
killed_keras.run(rank, world, records, life, tuple(kill))
say("done")
"""
# Rank 0 saves this step after both ranks have taken it; the second epoch begins with step 26.
STEP = 30
NEVER = ("", 0, 0)


def start(folder: Path, world: int, life: int, kill: tuple[str, int, int]) -> None:
    """Starts all ranks once, and waits until they have ended."""
    rendezvous = folder / f"rendezvous-{life}"
    rendezvous.mkdir()
    case = [str(folder), life, list(kill)]
    ranks = Ranks(rendezvous, PROGRAM, world=world, shared=False, case=case, seconds=30)
    try:
        for process in ranks.processes:
            said, errors = process.stdout.read(), process.stderr.read()
            if kill == NEVER and "done" not in said:
                raise RuntimeError(f"a rank failed: {errors[-2000:]}")
    finally:
        ranks.end()


def lost_and_doubled(point: str, worlds: tuple[int, int], rank: int) -> tuple[int, int]:
    """Rows lost and doubled by a training killed at the point and resumed by other ranks."""
    with tempfile.TemporaryDirectory(prefix="hearth-points-") as name:
        folder = Path(name)
        start(folder, worlds[0], 0, (point, STEP, rank))
        start(folder, worlds[1], 1, NEVER)
        counts = counted_steps.tally(folder, ROWS, EPOCHS)
    return counts.lost, counts.doubled


def main() -> int:
    well = True
    print(
        "| killed after | rank | ranks before, after | rows lost | doubled |\n|---|---|---|---|---|"
    )
    for point in sys.argv[1:] or POINTS:
        first = 0 if point in ("written", "saved") else 1
        for worlds, rank in (((2, 1), first), ((1, 2), 0)):
            lost, doubled = lost_and_doubled(point, worlds, rank)
            well &= lost == doubled == 0
            text = f"{worlds[0]}, {worlds[1]}"
            print(f"| {point} | {rank} | {text} | {lost} | {doubled} |", flush=True)
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
