"""`make soak-hadoop`: a driver that YARN restarts continues with the same rows.

pytest does not collect this file by itself.
"""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path

import recorded_program
from hadoop_faults import Background, kill_one, masters, reached
from recorded_program import EPOCHS, ROWS
from yarn_programs import (
    PROGRAM_S,
    last_application,
    names,
    output_of,
    run_program,
    spark_submit,
)

sys.path.append(str(Path(__file__).resolve().parents[1] / "soak"))

import counted_steps

SOAK = str(Path(counted_steps.__file__).parent)


def taken(folder: Path, attempt: int) -> dict[tuple[int, str], list[int]]:
    """{(step, rank): rows} of one attempt of the driver."""
    found = {}
    for file in folder.glob(f"{1000 * attempt:05d}-*"):
        for line in file.read_text().splitlines()[1:]:
            step, _, ids = json.loads(line)
            found[step, file.name.partition("-")[2]] = ids
    return found


def test_a_restarted_driver_continues_with_the_same_rows(hadoop, tmp_path):
    known = {app["id"] for app in (hadoop.cluster("apps")["apps"] or {"app": []})["app"]}
    folder = tmp_path / "records"
    folder.mkdir()
    folder.chmod(0o777)
    over = threading.Event()

    def kill() -> None:
        # Step 33 is in the second epoch, after some checkpoints.
        reached(lambda: over.is_set() or counted_steps.progress(folder)[2] > 33, PROGRAM_S)
        if over.is_set():
            return  # the program has failed; its output says why
        (application,) = {app["id"] for app in hadoop.cluster("apps")["apps"]["app"]} - known
        kill_one(masters, application)

    home = f"{hadoop.uri}/user/{hadoop.user}/recorded"
    with Background(kill):
        done = run_program(
            spark_submit(), "--master", "yarn", "--deploy-mode", "cluster",
            "--conf", "spark.yarn.maxAppAttempts=2",
            "--conf", "spark.executor.memoryOverhead=2g",  # for PyTorch, outside the JVM's heap
            "--conf", f"spark.executorEnv.PYTHONPATH={SOAK}",
            recorded_program.__file__, SOAK, str(folder), home, folder=tmp_path,
        )  # fmt: skip
        over.set()
    application = last_application(hadoop)
    said = output_of(hadoop, application["id"])
    assert done.returncode == 0, done.stderr[-3000:] + said[-3000:]
    assert application["finalStatus"] == "SUCCEEDED"
    first, second = taken(folder, 1), taken(folder, 2)
    assert min(step for step, _ in second) > 5, "it began again instead of going on"
    again = first.keys() & second.keys()
    assert {key: first[key] for key in again} == {key: second[key] for key in again}
    counts = counted_steps.tally(folder, ROWS, EPOCHS)
    assert counts.exact, counts
    assert "datasets.json" in names(hadoop, "recorded/checkpoints")
