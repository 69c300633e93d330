"""The driver's plan of datasets, kept beside a cluster's checkpoints: files, their owners, and the
versions of tables.

A driver that YARN starts again gives the same ranks the same partitions with it. A table is read in
the version that the checkpoints had.
"""

from __future__ import annotations

import base64
import json
import logging
import zlib
from collections.abc import Callable, Sequence
from typing import Any

from hearth.files.file_system import file_refusal, files_of

logger = logging.getLogger(__name__)

_FILE = "datasets.json"
_VERSION = 1


class KeptPlan:
    """Of one cluster; without a folder it lasts as long as the cluster. The driver's thread."""

    def __init__(self, folder: str, attempt: Sequence[str] = ("", "")):
        """Reads what a folder of checkpoints (a path or URI; "": none) has.

        Args:
            folder: of the checkpoints.
            attempt: Spark's application, and its attempt to run the driver; "": not known.

        Raises:
            HearthError: it cannot be read, or is damaged.
        """
        self._uri = f"{folder.rstrip('/')}/{_FILE}" if folder else ""
        self._folder = folder
        self._attempt = list(attempt)
        self._known: dict[str, Any] = {}
        self._tables: dict[str, Any] = {}  # uri and version, or "frame": versions by URI
        self._files: dict[str, Any] = {}  # those of this attempt
        self._before: dict[str, Any] = {}  # those of the attempt before
        self._is_written = True
        if self._uri and (kept := _read(self._uri)):
            self._known, self._tables = kept["datasets"], kept.get("tables", {})
            application, number = kept.get("attempt", ("", ""))
            if attempt[0] and application == attempt[0] and number != attempt[1]:
                self._before = kept.get("files", {})

    def partitions(self, name: str) -> int | None:
        """How many partitions the dataset had; None where it is not known."""
        return self._known.get(name, {}).get("partitions")

    def pinned(self, name: str, source: Any, spark: Any) -> Any:
        """A dataset's source with its files: of a table those of the version that it had before,
        else those of the attempt before, where Spark has started this driver again.

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
        kept = self._tables.get(name, {})
        if kept.get("uri") == source.uri:
            source = source.resumed(kept["version"])
        source = source.pin(spark)
        logger.info("dataset %r has %s of %s", name, source.version, source.uri)
        self._note_table(name, {"uri": source.uri, "version": source.version})
        return source

    def pinned_frame(self, name: str, frame: Any) -> Any:
        """A dataset's DataFrame with its tables pinned: in the versions that it had before.

        Raises: as pinned_frame() of hearth.sources.
        """
        from hearth.sources.tables.frames import pinned_frame

        frame, versions = pinned_frame(frame, self._tables.get(name, {}).get("frame"))
        for uri, version in versions.items():
            logger.info("dataset %r has %s of %s", name, version, uri)
        self._note_table(name, {"frame": versions} if versions else {})
        return frame

    def _note_table(self, name: str, table: dict[str, Any]) -> None:
        self._is_written &= self._tables.get(name, {}) == table
        self._tables[name] = table

    def files(self, name: str, uri: str) -> list[Any] | None:
        """The files that the dataset of this URI had in the attempt before; None where there was
        none."""
        kept = self._before.get(name)
        if kept is None or kept[0] != uri:
            return None
        return json.loads(zlib.decompress(base64.b64decode(kept[1])))

    def note_files(self, name: str, uri: str, files: Sequence[Any]) -> None:
        """The dataset has these files; owners() keeps that."""
        packed = zlib.compress(json.dumps(files).encode())
        self._files[name] = [uri, base64.b64encode(packed).decode()]
        self._is_written = False

    def owners(self, name: str, ranks: int, partitions: int, plan: Callable[[], list[int]]) -> Any:
        """The rank of each partition, for so many ranks: as before, else by plan(), which is kept.

        Raises:
            HearthError: the plan cannot be written, or is damaged.
        """
        entry = self._known.get(name)
        if entry is None or entry["partitions"] != partitions:
            entry = self._known[name] = {"partitions": partitions, "owners": {}}
        if str(ranks) not in entry["owners"]:
            entry["owners"][str(ranks)] = plan()
            self._is_written = False
        owners = entry["owners"][str(ranks)]
        if len(owners) != partitions or not set(owners) <= set(range(ranks)):
            raise _damaged(self._uri, f"dataset {name!r} has other owners than {ranks} ranks")
        if not self._is_written:
            self._write()
            self._is_written = True
        return owners

    def _write(self) -> None:
        if not self._uri:
            return
        kept = {"version": _VERSION, "datasets": self._known, "tables": self._tables}
        text = json.dumps({**kept, "attempt": self._attempt, "files": self._files}).encode()
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
                "the plan of the datasets cannot be written to", self._uri, error
            ) from None


def _read(uri: str) -> dict[str, Any]:
    try:
        store = files_of(uri)
        if store.status(uri) is None:
            return {}
        with store.open_input(uri) as file:
            text = file.read()
    except Exception as error:
        raise file_refusal("the plan of the datasets cannot be read from", uri, error) from None
    try:
        kept = json.loads(text)
        if kept["version"] != _VERSION:
            raise ValueError(f"it has version {kept['version']}")
        for entry in kept["datasets"].values():
            if type(entry["partitions"]) is not int or not isinstance(entry["owners"], dict):
                raise TypeError(f"{entry} is no plan of a dataset")
        return dict(kept)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _damaged(uri, f"{type(error).__name__}: {error}") from None


def _damaged(uri: str, reason: str) -> Exception:
    from hearth import HearthError

    return HearthError(
        f"{uri} is no plan of datasets ({reason}): remove it, or use another checkpoint_dir"
    )
