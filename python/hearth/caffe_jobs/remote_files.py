"""Local copies of a rank's remote files (hdfs://, s3a://). Files are fetched before the trainer
starts, and snapshots are uploaded as they appear. The trainer reads and writes only local files."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hearth.caffe_jobs.trainer_process import RankError
from hearth.errors import HearthError, invalid
from hearth.files.hadoop_files import HadoopFiles, hadoop_settings
from hearth.files.library_files import LibraryFiles
from hearth.files.local_folders import spill_folder
from hearth.files.remote_copies import RemoteCopies
from hearth.files.uri import is_remote, scheme, serving
from hearth.native.failure import Failure

# Interval of the scan for new snapshots, and time limit and interval of retries while a store is
# unavailable, e.g. while a NameNode restarts.
_SCAN_S = 0.5
_RETRY_LIMIT_S = 180.0
_RETRY_S = 5.0
_SEAL = ".hearth.json"
# Error codes for which a retry is useless.
_FINAL = (
    "not_found",
    "permission_denied",
    "resource_exhausted",
    "invalid_argument",
    "unimplemented",
)


@dataclass(frozen=True)
class RemotePlan:
    """How ranks access remote files; serialized in Spark's task closure.

    `settings`: Hadoop settings added to the executors' own; `prefix`: the solver's snapshot_prefix;
    `libraries`: schemes that Spark's Hadoop does not support, so Python libraries are used.
    """

    settings: Mapping[str, str] = field(repr=False)  # may hold credentials
    prefix: str = ""
    libraries: frozenset[str] = frozenset()


def remote_plan(job: Mapping[str, Any], spark: Any, prefix: str = "") -> RemotePlan | None:
    """The plan for a job with remote files; None if all its files are local."""
    named = [*job.get("weights", []), job.get("snapshot", ""), job.get("model", "")]
    if not any(is_remote(uri) for uri in named):
        return None
    files = HadoopFiles.of(spark)
    by_library = (uri for uri in named if isinstance(serving(files, uri), LibraryFiles))
    return RemotePlan(hadoop_settings(spark), prefix, frozenset(map(scheme, by_library)))


class RemoteFiles:
    """Local copies of one rank's remote files, until close()."""

    def __init__(self, job: dict[str, Any], plan: RemotePlan):
        """`job`: this rank's job, which names files by URI."""
        self._job = job
        self._prefix = plan.prefix
        self._copies = RemoteCopies(plan.settings, plan.libraries)
        self._folder = Path(tempfile.mkdtemp(prefix="hearth-files-", dir=spill_folder()))
        self._model: str = job.get("model", "")
        self._out = self._folder / "out"
        self._fetched_seals: dict[Path, tuple[int, int]] = {}  # seal file -> fetched version
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None

    def close(self) -> None:
        """Removes the copies."""
        self._stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def local_job(self) -> dict[str, Any]:
        """The job with local paths; fetches the files that rank 0 reads.

        Raises:
            RankError: a file cannot be fetched.
        """
        try:
            return self._localized(self._job)
        except HearthError as error:
            raise self._rank_error(error) from None

    def _localized(self, job: dict[str, Any]) -> dict[str, Any]:
        local = dict(job)
        if is_remote(self._model):
            self._out.mkdir()
            local["model"] = str(self._out / self._model.rpartition("/")[2])
        if job["rank"] != 0:
            return local  # rank 0 sends weights and state to the others
        if job.get("generation") and is_remote(self._model):
            self._fetch_last_snapshot(job["run"])
        weights = enumerate(job.get("weights", []))
        local["weights"] = [self._fetched(uri, f"weights{i}") for i, uri in weights]
        state = job.get("snapshot", "")
        if is_remote(state):
            local["snapshot"] = self._fetched(state, "state")
            self._fetch_seal(state)
        return local

    def watch(self) -> None:
        """Starts a thread that uploads each snapshot as soon as it is sealed."""
        if is_remote(self._model):
            self._thread = threading.Thread(target=self._watch, name="hearth-files", daemon=True)
            self._thread.start()

    def finish(self, done: dict[str, Any]) -> dict[str, Any]:
        """Uploads the remaining files; returns the trainer's "done" event with URIs instead of
        paths.

        Raises:
            RankError: a file cannot be uploaded, even after three minutes of retries.
        """
        if not is_remote(self._model) or done.get("event") != "done":
            return done
        self._stop()
        path = done["model"]
        try:
            deadline = time.monotonic() + _RETRY_LIMIT_S
            _retrying(self._take_snapshots, deadline)
            _retrying(lambda: self._copies.store([path], self._target(Path(path))), deadline)
        except HearthError as error:
            raise self._rank_error(error) from None
        done = {**done, "model": self._uri_of(path)}
        if done.get("snapshot", "").startswith(str(self._out)):
            done["snapshot"] = self._uri_of(done["snapshot"])
        return done

    def _fetched(self, uri: str, name: str) -> str:
        """Fetches a remote file and returns the path of its local copy; returns a local path
        unchanged."""
        if not is_remote(uri):
            return uri
        folder = self._folder / name
        folder.mkdir(exist_ok=True)
        path = str(folder / uri.rpartition("/")[2])
        self._copies.fetch(uri, path)
        return path

    def _fetch_seal(self, state: str) -> None:
        folder, _, name = state.rpartition("/")
        seal = name.partition(".solverstate")[0] + _SEAL
        if seal in self._copies.names(folder):
            self._fetched(f"{folder}/{seal}", "state")

    def _fetch_last_snapshot(self, run: str) -> None:
        """Fetches the newest sealed snapshot that an earlier generation of this run has
        uploaded."""
        folder = self._folder_of_snapshots()
        seals = {}
        for name in self._copies.names(folder):
            head, found, number = name.removesuffix(_SEAL).rpartition("_iter_")
            if name.endswith(_SEAL) and found and number.isdigit():
                seals[int(number), head] = name
        target = self._out / os.path.relpath(folder, self._model.rpartition("/")[0])
        target.mkdir(parents=True, exist_ok=True)
        for key in sorted(seals, reverse=True):
            path = target / seals[key]
            self._copies.fetch(f"{folder}/{path.name}", str(path))
            try:
                if _read_seal(path).get("run") == run:
                    for part in _sealed_by(path):
                        self._copies.fetch(f"{folder}/{part.name}", str(part))
                    self._fetched_seals[path] = _version(path)
                    return
            except ValueError as error:  # fall back to an older snapshot
                print(f"hearth: {folder}/{path.name}: {error}", file=sys.stderr, flush=True)
            path.unlink()

    def _folder_of_snapshots(self) -> str:
        """The remote folder of snapshots: the model's folder, or a subfolder named by
        snapshot_prefix."""
        folder = self._model.rpartition("/")[0]
        below = os.path.dirname(self._prefix)
        return f"{folder}/{below}" if below else folder

    def _watch(self) -> None:
        wait = _SCAN_S
        while not self._ending.wait(wait):
            try:
                self._take_snapshots()
                wait = _SCAN_S
            except HearthError as error:  # finish() retries and reports errors
                print(f"hearth: cannot store a snapshot yet: {error}", file=sys.stderr, flush=True)
                wait = _RETRY_S

    def _take_snapshots(self) -> None:
        """Uploads the sealed snapshots, their seals last, and removes the local files.

        Skips the fetched snapshot, which is remote already, and which the trainer may not have read
        yet.
        """
        folders: dict[str, list[Path]] = {}
        for seal in sorted(self._out.rglob(f"*_iter_*{_SEAL}"), key=os.path.getmtime):
            if self._fetched_seals.get(seal) == _version(seal):
                continue
            folders.setdefault(self._target(seal), []).append(seal)
        for folder, seals in folders.items():
            parts = [path for seal in seals for path in _sealed_by(seal)]
            self._copies.store([str(path) for path in parts], folder)
            self._copies.store([str(seal) for seal in seals], folder)
            for path in (*seals, *parts):
                path.unlink()

    def _target(self, path: Path) -> str:
        """The remote folder for a local file."""
        return self._uri_of(str(path)).rpartition("/")[0]

    def _uri_of(self, path: str) -> str:
        below = os.path.relpath(path, self._out)
        return f"{self._model.rpartition('/')[0]}/{below}"

    def _rank_error(self, error: BaseException) -> RankError:
        return RankError(Failure.of_rank(self._job["rank"], self._job["host"], error))

    def _stop(self) -> None:
        self._ending.set()
        if self._thread is not None:
            self._thread.join()


def _version(file: Path) -> tuple[int, int]:
    """Identifies the content: inode and modification time."""
    status = file.stat()
    return status.st_ino, status.st_mtime_ns


def _read_seal(seal: Path) -> dict[str, Any]:
    """Parses a seal, the JSON file that marks a snapshot as complete.

    Raises ValueError if it is invalid: other programs may write to the seal's folder.
    """
    try:
        content = json.loads(seal.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise invalid(f"the seal is damaged ({error})") from None
    if not isinstance(content, dict):
        raise invalid("the seal is damaged (not a JSON object)")
    return content


def _sealed_by(seal: Path) -> list[Path]:
    """The paths of the files named in a seal. Raises ValueError for a name outside the seal's
    folder."""
    content = _read_seal(seal)
    try:
        names = [content[part]["file"] for part in ("model", "state")]
    except (KeyError, TypeError):
        raise invalid("the seal is damaged (it names no files)") from None
    for name in names:
        if not isinstance(name, str) or name != os.path.basename(name) or name in ("", ".", ".."):
            raise invalid(f"the seal names {name!r}, which is not a file in its folder")
    return [seal.parent / name for name in names]


def _retrying(act: Callable[[], None], deadline: float) -> None:
    """Calls `act` until it succeeds, or fails with a final error, or the deadline has passed."""
    while True:
        try:
            return act()
        except HearthError as error:
            code: str = getattr(error, "code", "internal")
            if code in _FINAL or time.monotonic() > deadline:
                raise
            time.sleep(_RETRY_S)
