"""Passes nodes' reports to the history, status line, page, event file, MLflow, and callback."""

from __future__ import annotations

import logging
import math
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, TypedDict

from hearth.cluster import roles
from hearth.cluster.driver.reports.history import RunHistory
from hearth.cluster.driver.reports.status_line import Rate, ReportLine, line_of
from hearth.cluster.report_values import unpacked_values
from hearth.errors import invalid
from hearth.monitoring.watch import Watch, watched

logger = logging.getLogger(__name__)

_END_S = 60.0
LOGS = ("rank0", "all", "none")


@dataclass(frozen=True)
class Report:
    """The argument of on_report(): metrics of a step, as reported by rank 0.

    Attributes:
        step: the step.
        values: metrics by name.
        seconds: time of the report since the cluster's start.
        rows_per_s: rows per second of all ranks' loaders; None if unknown.
    """

    step: int
    values: Mapping[str, float]
    seconds: float
    rows_per_s: float | None = None


class Shown(TypedDict, total=False):
    """Keyword arguments of run() for output and reports in the driver.

    Attributes:
        logs: the nodes whose output is shown on the driver's standard error, in addition to the
            executors' log files: "rank0" (the default), "all" or "none".
        log_dir: path or URI of a folder for TensorBoard's event file of rank 0's metrics.
        ui: serves a page with the metrics while the cluster runs, and prints the link.
        on_report: called in a thread of the driver with each Report of rank 0; if it returns False,
            ctx.should_stop becomes true.
    """

    logs: str
    log_dir: str
    ui: bool
    on_report: Callable[[Report], Any] | None


@dataclass(frozen=True)
class ReportOptions:
    """The configuration of reports and output in the driver."""

    log_dir: str = ""
    ui: bool = False
    on_report: Callable[[Report], Any] | None = None
    title: str = "training"
    params: Mapping[str, Any] = field(default_factory=dict)  # of the program, for MLflow

    logs: str = "rank0"

    @classmethod
    def of(cls, main_fun: Callable[..., Any], args: Any, shown: Shown) -> ReportOptions:
        """The options for a run of main_fun(args, ctx).

        Raises:
            TypeError: `shown` has a key that Shown lacks.
            ValueError: the value of `logs` is unknown.
        """
        if unknown := sorted(set(shown) - set(Shown.__annotations__)):
            raise TypeError(f"run() got an unexpected keyword argument {unknown[0]!r}")
        title = getattr(main_fun, "__qualname__", type(main_fun).__name__)
        options = cls(title=title, params=plain_params(args), **shown)
        if options.logs not in LOGS:
            raise invalid(f"logs is {options.logs!r}: it must be one of {', '.join(LOGS)}")
        return options


class Reports:
    """The handler of one cluster's reports, across restarts. Thread-safe. A separate thread handles
    the reports, because callbacks and servers may be slow.

    Attributes:
        history: the rows of all metrics.
    """

    def __init__(
        self,
        options: ReportOptions,
        template: Mapping[str, Sequence[int]],
        stop: Callable[[], None],
    ):
        """`stop`: asks the ranks to stop. Call open() before use."""
        self._options, self._stop = options, stop
        self._template = template
        self.history = RunHistory()
        self._queue: queue.SimpleQueue[tuple[str, Any, Any] | None] = queue.SimpleQueue()
        self._began = time.monotonic()
        self._stack = ExitStack()
        self._watch: Watch
        self._line = ReportLine()
        self._rate = Rate()
        self._left_out = 0
        self._resuming: set[int | None] = set()  # ranks that have not reported since a restart
        self._thread: threading.Thread | None = None

    def open(self) -> None:
        """Opens the event file and the page. Later calls do nothing.

        Raises:
            HearthError, OSError: the event file cannot be created.
        """
        if self._thread is not None:
            return
        self._began = time.monotonic()
        options = self._options
        page_and_file = watched(self._show_link, options.title, options.log_dir, options.ui)
        self._watch = self._stack.enter_context(page_and_file)
        workers = len(roles.fed_ids(self._template))
        self._watch.params({"workers": workers, **options.params})
        self._thread = threading.Thread(target=self._run, name="hearth-reports", daemon=True)
        self._thread.start()

    def begin(self, template: Mapping[str, Sequence[int]]) -> None:
        """Notes that nodes start, possibly with other ranks than before."""
        self._queue.put(("begin", None, template))

    def note(self, node: int, event: dict[str, Any]) -> None:
        """Queues a node's event."""
        self._queue.put(("event", node, event))

    def note_restart(self, count: int, reason: str) -> None:
        """Notes that the nodes are about to restart."""
        self._queue.put(("restart", count, reason))

    def note_params(self, params: Mapping[str, Any]) -> None:
        """Adds parameters that are known only after the start, for MLflow, page and event file."""
        self._queue.put(("params", None, params))

    def close(self, error: BaseException | None = None) -> None:
        """Handles pending messages, then closes files and servers. Never raises; idempotent."""
        if self._thread is None:
            return
        self._queue.put(None)
        self._thread.join(_END_S)
        self._watch_end(error)
        self._thread = None

    def _watch_end(self, error: BaseException | None) -> None:
        try:
            if error is None:
                self._watch.end({})
            self._stack.__exit__(type(error) if error else None, error, None)
        except Exception as failed:
            if failed is not error:
                logger.warning("cannot close the training's page or event file: %s", failed)

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            try:
                self._handle(*item)
            except Exception:  # a failed report must not affect later ones
                logger.exception("cannot handle a report of the cluster's nodes")
        self._line.close()
        if self._left_out:
            logger.warning(
                "%d reports of metrics were dropped from the history: ranks report faster "
                "than the connection allows; report every few steps", self._left_out
            )  # fmt: skip

    def _handle(self, kind: str, about: Any, what: Any) -> None:
        if kind == "begin":
            self._template = what
            self._rate = Rate()
        elif kind == "restart":
            fed = len(roles.fed_ids(self._template))
            self._resuming = {None, *range(fed)}
            self._watch({"event": "restart", "generation": about, "reason": what})
        elif kind == "params":
            self._watch.params(what)
        elif what["event"] == "output":
            self._line.output(what["label"], what["lines"], what["left_out"])
        else:
            self._left_out += what["left_out"]
            for report in what["reports"]:
                self._take(about, report)

    def _take(self, node: int, report: dict[str, Any]) -> None:
        fed = roles.fed_ids(self._template)
        rank = fed.index(node) if node in fed else None
        seconds = time.monotonic() - self._began - report["ago"]
        if "back_to" in report:
            self._go_back(rank, report["back_to"])
            return
        step, values = report["step"], unpacked_values(report["values"])
        if rank in self._resuming:
            self._resuming.discard(rank)
            self._go_back(rank, step - 1)
        self.history.add(rank, step, values, seconds)
        if rank == 0:
            self._show(step, values, seconds, report.get("rows", 0))

    def _go_back(self, rank: int | None, step: int) -> None:
        self.history.go_back(rank, step)
        if rank == 0:
            self._watch({"event": "ready", "iteration": step})

    def _show(self, step: int, values: dict[str, float], seconds: float, rows: int) -> None:
        world = len(roles.fed_ids(self._template))
        news = self._rate.note(rows * world, seconds)
        rate = self._rate.value
        more = {"run/rows_per_s": rate} if news and rate is not None else {}
        named = {name: v if math.isfinite(v) else None for name, v in {**values, **more}.items()}
        self._watch({"event": "report", "step": step, "values": named, "seconds": seconds})
        self._line.show(line_of(step, values, rate))
        if self._options.on_report is not None:
            self._call(Report(step, values, seconds, rate))

    def _call(self, report: Report) -> None:
        try:
            if self._options.on_report(report) is False:  # type: ignore[misc]
                self._stop()
        except Exception:
            logger.exception("on_report failed at step %d; it is called again", report.step)

    def _show_link(self, event: dict[str, Any]) -> None:
        if event["event"] == "page":
            self._line.show_event(event)


def plain_params(args: Any) -> dict[str, Any]:
    """A program's arguments that are numbers, strings or booleans, by name."""
    named = args if isinstance(args, Mapping) else getattr(args, "__dict__", None)
    if not isinstance(named, Mapping):
        return {}
    plain = (bool, int, float, str)
    return {str(name): value for name, value in named.items() if isinstance(value, plain)}
