"""Cost of watching a training: the demo's net with event file and open page against neither.

Two executors train twice a round, in turn; iterations/s are between the first report and the last.
The page is read every two seconds, as a browser does. The processor time per
event of the driver's thread is reported as well: it is more precise than the difference.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

import report
from hearth.caffeonspark import CaffeOnSpark, Config, DataSource
from hearth.monitoring.watch import watched
from hearth.spark import session as spark_session
from spark_overhead import prepare, write_problem

ITERATIONS = 1200


class Reader:
    """A browser with the page open."""

    def __init__(self) -> None:
        self.marks: list[tuple[int, float]] = []
        self._end = threading.Event()
        self._thread: threading.Thread | None = None

    def __call__(self, event: dict) -> None:
        if event["event"] == "page":
            self._thread = threading.Thread(target=self._read, args=(event["url"],))
            self._thread.start()
        elif event["event"] == "progress":
            self.marks.append((event["iteration"], time.perf_counter()))

    def _read(self, url: str) -> None:
        while not self._end.wait(2):
            try:
                urllib.request.urlopen(url + "data", timeout=5).read()
            except OSError:
                return

    def iterations_per_second(self) -> float:
        self._end.set()
        if self._thread is not None:
            self._thread.join()
        (first, begin), (last, end) = self.marks[0], self.marks[-1]
        return (last - first) / (end - begin)


def train(spark, solver: Path, folder: Path, seen: bool) -> float:
    """Iterations per second of one training."""
    flags = {"ui": True, "logDir": str(folder / "tb")} if seen else {}
    model = f"file:{folder / 'model'}"
    conf = Config(spark, {"conf": str(solver), "model": model, "clusterSize": "2", **flags})
    reader = Reader()
    CaffeOnSpark(spark, reader).train(DataSource(spark).getSource(conf, True))
    return reader.iterations_per_second()


def event_costs(folder: Path) -> float:
    """Processor seconds of this thread per progress event: points, file and curves."""
    outputs = {"loss": [0.5], "accuracy": [0.75]}
    event = {
        "event": "progress", "max_iter": 9, "loss": 0.5, "lr": 0.01, "images_per_s": 1e4,
        "effective_batch": 64, "eta_s": 1.0, "invalid_rows": 0, "outputs": outputs,
    }  # fmt: skip
    with watched(lambda event: None, "x", str(folder / "events"), ui=False) as on_event:
        begin = time.thread_time()
        for iteration in range(5000):
            on_event({**event, "iteration": iteration})
        return (time.thread_time() - begin) / 5000


def main() -> int:
    options = report.arguments(__doc__).parse_args()
    rows = report.Report(options.only)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare.write_tables(folder / "work")
        solver = write_problem(folder, "cos", "raw")
        text = solver.read_text().replace("max_iter: 600", f"max_iter: {ITERATIONS}")
        solver.write_text(text)
        print(f"a progress event takes the driver {event_costs(folder) * 1e6:.0f} us")
        spark = spark_session.start("seeing", executors=2)
        try:
            ours, peer = report.alternate(
                options.rounds,
                lambda: train(spark, solver, folder, True),
                lambda: train(spark, solver, folder, False),
            )
        finally:
            spark.stop()
        rows.add(
            "event file and open page", ours=ours, peer=peer, peer_name="neither",
            unit="iterations/s",
        )  # fmt: skip
    rows.save(options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
