"""Stores the driver's plan of datasets in the folder of checkpoints: files, owners of partitions,
and table versions.

A driver restarted by YARN reads it, so that ranks get the same partitions, of the same files and
table versions, as when the checkpoints were written.
"""

from __future__ import annotations

import base64
import json
import logging
import zlib
from collections.abc import Callable, Sequence
from typing import Any

from hearth.errors import HearthError, invalid
from hearth.files.file_system import file_refusal, files_of

logger = logging.getLogger(__name__)

_FILE = "datasets.json"
_VERSION = 1


class StoredPlan:
    """The plan of one cluster; without a folder it is not stored. Not thread-safe."""

    def __init__(self, folder: str, attempt: Sequence[str] = ("", "")):
        """Reads the plan, if there is one.

        Args:
            folder: path or URI of the folder for checkpoints; "": none.
            attempt: Spark's application id and driver attempt; "": unknown.

        Raises:
            HearthError: the plan cannot be read, or is corrupt.
        """
        self._uri = f"{folder.rstrip('/')}/{_FILE}" if folder else ""
        self._folder = folder
        self._attempt = list(attempt)
        self._known: dict[str, Any] = {}
        self._tables: dict[str, Any] = {}  # {uri, version} or {frame: {uri: version}} by dataset
        self._files: dict[str, Any] = {}  # files by dataset, of this attempt
        self._before: dict[str, Any] = {}  # files by dataset, of the previous attempt
        self._is_written = True
        if self._uri and (plan := _read(self._uri)):
            self._known, self._tables = plan["datasets"], plan.get("tables", {})
            application, number = plan.get("attempt", ("", ""))
            if attempt[0] and application == attempt[0] and number != attempt[1]:
                self._before = plan.get("files", {})

    def partitions(self, name: str) -> int | None:
        """The dataset's number of partitions; None if unknown."""
        return self._known.get(name, {}).get("partitions")

    def pinned(self, name: str, source: Any, spark: Any) -> Any:
        """A dataset's source with pinned contents. A table is pinned to its stored version; other
        sources to the previous attempt's files if YARN has restarted this driver, else to the
        current files.

        Raises: as Source.pin().
        """
        if hasattr(source, "resumed"):
            return self._pinned_table(name, source, spark)
        if not hasattr(source, "pin_to"):
            return source.pin(spark)
        before = self.files(name, source.uri)
        pinned = source.pin(spark) if before is None else source.pin_to(before, spark)
        self.note_files(name, source.uri, pinned.named_files())
        return pinned

    def _pinned_table(self, name: str, source: Any, spark: Any) -> Any:
        pinned = self._tables.get(name, {})
        if pinned.get("uri") == source.uri:
            source = source.resumed(pinned["version"])
        source = source.pin(spark)
        logger.info("dataset %r uses %s of %s", name, source.version, source.uri)
        self._note_table(name, {"uri": source.uri, "version": source.version})
        return source

    def pinned_frame(self, name: str, frame: Any) -> Any:
        """A dataset's DataFrame with its tables pinned to their stored versions, or to their
        current versions if none are stored.

        Raises: as pinned_frame() of hearth.sources.
        """
        from hearth.sources.tables.frames import pinned_frame

        frame, versions = pinned_frame(frame, self._tables.get(name, {}).get("frame"))
        for uri, version in versions.items():
            logger.info("dataset %r uses %s of %s", name, version, uri)
        self._note_table(name, {"frame": versions} if versions else {})
        return frame

    def _note_table(self, name: str, table: dict[str, Any]) -> None:
        self._is_written &= self._tables.get(name, {}) == table
        self._tables[name] = table

    def files(self, name: str, uri: str) -> list[Any] | None:
        """The files of a dataset in the previous attempt; None if unknown, or if the dataset had
        another URI."""
        saved = self._before.get(name)
        if saved is None or saved[0] != uri:
            return None
        return json.loads(zlib.decompress(base64.b64decode(saved[1])))

    def note_files(self, name: str, uri: str, files: Sequence[Any]) -> None:
        """Records a dataset's files; the next owners() stores them."""
        packed = zlib.compress(json.dumps(files).encode())
        self._files[name] = [uri, base64.b64encode(packed).decode()]
        self._is_written = False

    def owners(self, name: str, ranks: int, partitions: int, plan: Callable[[], list[int]]) -> Any:
        """The rank that owns each partition. If no owners are stored for `ranks` ranks, plan()
        computes the owners, which are then stored.

        Raises:
            HearthError: the plan cannot be written, or is corrupt.
        """
        entry = self._known.get(name)
        if entry is None or entry["partitions"] != partitions:
            entry = self._known[name] = {"partitions": partitions, "owners": {}}
        if str(ranks) not in entry["owners"]:
            entry["owners"][str(ranks)] = plan()
            self._is_written = False
        owners = entry["owners"][str(ranks)]
        if len(owners) != partitions or not set(owners) <= set(range(ranks)):
            raise _damaged(
                self._uri, f"dataset {name!r} has partitions that none of the {ranks} ranks owns"
            )
        if not self._is_written:
            self._write()
            self._is_written = True
        return owners

    def _write(self) -> None:
        if not self._uri:
            return
        plan = {"version": _VERSION, "datasets": self._known, "tables": self._tables}
        text = json.dumps({**plan, "attempt": self._attempt, "files": self._files}).encode()
        try:
            store = files_of(self._folder)
            store.make_folder(self._folder)
            output = store.open_output(self._uri)
            try:
                output.append(text)
                output.commit()
            finally:
                output.discard()
        except Exception as error:
            raise file_refusal(
                "the folder of checkpoints (checkpoint_dir) cannot be written to:", self._uri, error
            ) from None


def _read(uri: str) -> dict[str, Any]:
    try:
        store = files_of(uri)
        if store.status(uri) is None:
            return {}
        with store.open_input(uri) as file:
            text = file.read()
    except Exception as error:
        raise file_refusal(
            "the folder of checkpoints (checkpoint_dir) cannot be read:", uri, error
        ) from None
    try:
        plan = json.loads(text)
        if plan["version"] != _VERSION:
            raise invalid(f"its version is {plan['version']}, not {_VERSION}")
        for entry in plan["datasets"].values():
            if type(entry["partitions"]) is not int or not isinstance(entry["owners"], dict):
                raise TypeError(f"{entry} is not a dataset's plan")
        return dict(plan)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _damaged(uri, f"{type(error).__name__}: {error}") from None


def _damaged(uri: str, reason: str) -> Exception:
    return HearthError(
        f"{uri} is not a valid dataset plan ({reason}): remove it, or use another checkpoint_dir"
    )
