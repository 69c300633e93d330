"""Records a training's events in its event file and on its page, and forwards them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from hearth.monitoring.history import History
from hearth.monitoring.live_page import LivePage
from hearth.monitoring.mlflow_run import MlflowRun, active_run

Event = dict[str, Any]
Listener = Callable[[Event], None]
_DATASETS = "dataset."


class Watch:
    """Records the events of one training and forwards them. Not thread-safe."""

    def __init__(self, record: Any, history: History, on_event: Listener, run: MlflowRun | None):
        self._record, self._history, self._on_event = record, history, on_event
        self._run = run
        self._began = time.time()
        self._validated: set[int] = set()  # iterations with a recorded validation

    def __call__(self, event: Event) -> None:
        """Records an event and forwards it."""
        self._take(event)
        self._on_event(event)

    def params(self, values: Mapping[str, Any]) -> None:
        """Records parameters in MLflow, and datasets also in the event file and on the page."""
        known = [f"{name}: {value}" for name, value in values.items() if name.startswith(_DATASETS)]
        if known:
            self._take({"event": "note", "text": "; ".join(known)})
        if self._run is not None:
            self._run.params(values)

    def end(self, done: Event) -> None:
        """Records the final event's validations whose separate events were lost."""
        for validation in done.get("validations", []):
            if validation["iteration"] not in self._validated:
                self._take({"event": "validation", **validation})
        self._history.set_facts(state="done", eta_s=0)

    def _take(self, event: Event) -> None:
        at = self._began + event["seconds"] if "seconds" in event else time.time()
        back_to, points = self._record.take(event, at)
        self._history.add(back_to, points)
        if self._run is not None:
            self._run.metrics(point for point in points if not isinstance(point[3], str))
        kind = event.get("event")
        if kind == "progress":
            shown = ("iteration", "max_iter", "eta_s", "effective_batch")
            self._history.set_facts(state="training", **{name: event[name] for name in shown})
        elif kind == "report":
            self._history.set_facts(state="training", iteration=event["step"])
        elif kind in ("waiting", "restart"):
            self._history.set_facts(state=event.get("text") or "starting again")
        elif kind == "validation":
            self._validated.add(event["iteration"])


@contextmanager
def watched(on_event: Listener, title: str, log_dir: str, ui: bool) -> Iterator[Watch]:
    """Yields a recorder of a training's events, which forwards them to `on_event`.

    `log_dir`: path or URI of the event file. `ui`: whether to serve a page, whose link an event
    "page" reports. The page and the event file are closed at the end. Metrics are also logged to
    this thread's active MLflow run.

    Raises:
        HearthError, OSError: the event file cannot be created.
    """
    from hearth.native._core import RunRecord

    record, history = RunRecord(log_dir, time.time()), History(title)
    history.set_facts(state="starting")
    run = active_run()
    page = LivePage(history.snapshot) if ui else None
    try:
        if page is not None:
            on_event({"event": "page", "url": page.url})
        yield Watch(record, history, on_event, run)
    except BaseException as error:
        history.set_facts(state=f"ended by {type(error).__name__}: {error}"[:500], eta_s=0)
        raise
    finally:
        record.finish()
        if run is not None:
            run.close()
        if page is not None:
            page.close()
