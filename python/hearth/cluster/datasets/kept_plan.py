"""The driver's plan of datasets, kept beside a cluster's checkpoints: who owned what.

A driver that starts again, as YARN does, gives the same ranks the same partitions with it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from hearth.checkpoints.stores import refusal, store_of

_FILE = "datasets.json"
_VERSION = 1


class KeptPlan:
    """Of one cluster; without a folder it lasts as long as the cluster. The driver's thread."""

    def __init__(self, folder: str):
        """Reads what a folder of checkpoints (a path or URI; "": none) has.

        Raises:
            HearthError: it cannot be read, or is damaged.
        """
        self._uri = f"{folder.rstrip('/')}/{_FILE}" if folder else ""
        self._folder = folder
        self._known: dict[str, Any] = {}
        if self._uri:
            self._known = _read(self._uri)

    def partitions(self, name: str) -> int | None:
        """How many partitions the dataset had; None where it is not known."""
        return self._known.get(name, {}).get("partitions")

    def owners(self, name: str, ranks: int, partitions: int, plan: Callable[[], list[int]]) -> Any:
        """The rank of each partition, for so many ranks: as before, else by plan(), which is kept.

        Raises:
            HearthError: the plan cannot be written.
        """
        entry = self._known.get(name)
        if entry is None or entry["partitions"] != partitions:
            entry = self._known[name] = {"partitions": partitions, "owners": {}}
        if str(ranks) not in entry["owners"]:
            entry["owners"][str(ranks)] = plan()
            self._write()
        return entry["owners"][str(ranks)]

    def _write(self) -> None:
        if not self._uri:
            return
        text = json.dumps({"version": _VERSION, "datasets": self._known}).encode()
        try:
            store = store_of(self._folder)
            store.make_folder(self._folder)
            output = store.open_output(self._uri)
            try:
                output.append(text)
                output.commit()
            finally:
                output.discard()
        except Exception as error:
            raise refusal(
                "the plan of the datasets cannot be written to", self._uri, error
            ) from None


def _read(uri: str) -> dict[str, Any]:
    from hearth import HearthError

    try:
        store = store_of(uri)
        if store.size(uri) is None:
            return {}
        with store.open_input(uri) as file:
            text = file.read()
    except Exception as error:
        raise refusal("the plan of the datasets cannot be read from", uri, error) from None
    try:
        kept = json.loads(text)
        if kept["version"] == _VERSION:
            return dict(kept["datasets"])
        reason = f"it has version {kept['version']}"
    except (ValueError, KeyError, TypeError) as error:
        reason = f"{type(error).__name__}: {error}"
    raise HearthError(
        f"{uri} is no plan of datasets ({reason}): remove it, or use another checkpoint_dir"
    )
