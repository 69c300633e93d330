"""The driver's plan of datasets, kept beside a cluster's checkpoints: who owned what, and the
versions of tables.

A driver that starts again, as YARN does, gives the same ranks the same partitions with it, and
reads the same version.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

from hearth.checkpoints.stores import refusal, store_of

logger = logging.getLogger(__name__)

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
        kept = _read(self._uri) if self._uri else {}
        self._known: dict[str, Any] = kept.get("datasets", {})
        self._tables: dict[str, Any] = kept.get("tables", {})  # uri and version, by dataset
        self._changed = False  # since it was read or written

    def partitions(self, name: str) -> int | None:
        """How many partitions the dataset had; None where it is not known."""
        return self._known.get(name, {}).get("partitions")

    def pinned(self, name: str, source: Any, spark: Any) -> Any:
        """A dataset's source with its files: of a table those of the version that it had before.

        Raises: as Source.pin().
        """
        kept = self._tables.get(name, {})
        if kept.get("uri") == source.uri and hasattr(source, "resumed"):
            source = source.resumed(kept["version"])
        source = source.pin(spark)
        if version := getattr(source, "version", ""):
            logger.info("dataset %r has %s of %s", name, version, source.uri)
            table = {"uri": source.uri, "version": version}
            self._changed |= kept != table
            self._tables[name] = table
        return source

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
            self._changed = True
        if self._changed:
            self._write()
            self._changed = False
        return entry["owners"][str(ranks)]

    def _write(self) -> None:
        if not self._uri:
            return
        kept = {"version": _VERSION, "datasets": self._known, "tables": self._tables}
        text = json.dumps(kept).encode()
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
            return {"datasets": dict(kept["datasets"]), "tables": dict(kept.get("tables", {}))}
        reason = f"it has version {kept['version']}"
    except (ValueError, KeyError, TypeError) as error:
        reason = f"{type(error).__name__}: {error}"
    raise HearthError(
        f"{uri} is no plan of datasets ({reason}): remove it, or use another checkpoint_dir"
    )
