"""A rank's files that lie elsewhere (hdfs://, s3a://): fetched before its trainer starts, taken
back as they appear. The trainer itself sees local files only."""

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

from hearth.files.hadoop_files import HadoopFiles, hadoop_settings
from hearth.files.library_files import LibraryFiles
from hearth.files.local_folders import spill_folder
from hearth.files.remote_copies import RemoteCopies
from hearth.files.uri import is_remote, scheme, serving
from hearth.native.failure import Failure, hearth_error
from hearth.trainer.trainer_process import RankError

# How often a new snapshot is looked for; and how long a store that does not answer is asked again,
# as a NameNode that starts anew does for a while.
_LOOK_S = 0.5
_PATIENCE_S = 180.0
_AGAIN_S = 5.0
_SEAL = ".hearth.json"
# Codes of a refusal that waiting does not mend.
_FINAL = (
    "not_found",
    "permission_denied",
    "resource_exhausted",
    "invalid_argument",
    "unimplemented",
)


@dataclass(frozen=True)
class FarPlan:
    """What the driver tells ranks of files elsewhere; travels in Spark's task closure.

    `settings`: Hadoop's, beyond those of the executors; `prefix`: the solver's snapshot_prefix;
    `libraries`: schemes that Spark's Hadoop does not know, so that a library is to.
    """

    settings: Mapping[str, str] = field(repr=False)  # keys of object stores are among them
    prefix: str = ""
    libraries: frozenset[str] = frozenset()


def far_plan(job: Mapping[str, Any], spark: Any, prefix: str = "") -> FarPlan | None:
    """For a job that names a file elsewhere; None for others."""
    named = [*job.get("weights", []), job.get("snapshot", ""), job.get("model", "")]
    if not any(is_remote(uri) for uri in named):
        return None
    files = HadoopFiles.of(spark)
    by_library = (uri for uri in named if isinstance(serving(files, uri), LibraryFiles))
    return FarPlan(hadoop_settings(spark), prefix, frozenset(map(scheme, by_library)))


class FarFiles:
    """The local copies of one rank's files; a context manager, at whose end they are removed."""

    def __init__(self, job: dict[str, Any], plan: FarPlan):
        """`job`: of this rank, with URIs."""
        self._job = job
        self._prefix = plan.prefix
        self._copies = RemoteCopies(plan.settings, plan.libraries)
        self._folder = Path(tempfile.mkdtemp(prefix="hearth-files-", dir=spill_folder()))
        self._model: str = job.get("model", "")
        self._out = self._folder / "out"
        self._brought: dict[Path, tuple[int, int]] = {}  # seals, as they were fetched
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> FarFiles:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Removes the copies."""
        self._stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def local_job(self) -> dict[str, Any]:
        """The job with local paths; fetches what rank 0 reads.

        Raises:
            RankError: a file cannot be fetched.
        """
        try:
            return self._localized(self._job)
        except hearth_error() as error:
            raise self._rank_error(error) from None

    def _localized(self, job: dict[str, Any]) -> dict[str, Any]:
        local = dict(job)
        if is_remote(self._model):
            self._out.mkdir()
            local["model"] = str(self._out / self._model.rpartition("/")[2])
        if job["rank"] != 0:
            return local  # the others get everything from rank 0
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
        """From now on takes each snapshot back as soon as it is whole."""
        if is_remote(self._model):
            self._thread = threading.Thread(target=self._watch, name="hearth-files", daemon=True)
            self._thread.start()

    def finish(self, done: dict[str, Any]) -> dict[str, Any]:
        """Takes the last files back; the trainer's "done" event with URIs.

        Raises:
            RankError: they cannot be written, also not after some minutes.
        """
        if not is_remote(self._model) or done.get("event") != "done":
            return done
        self._stop()
        path = done["model"]
        try:
            deadline = time.monotonic() + _PATIENCE_S
            _patiently(self._take_snapshots, deadline)
            _patiently(lambda: self._copies.store([path], self._target(Path(path))), deadline)
        except hearth_error() as error:
            raise self._rank_error(error) from None
        done = {**done, "model": self._uri_of(path)}
        if done.get("snapshot", "").startswith(str(self._out)):
            done["snapshot"] = self._uri_of(done["snapshot"])
        return done

    def _fetched(self, uri: str, name: str) -> str:
        """A local copy, under its own name, of a file that lies elsewhere; others as they are."""
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
        """The newest sealed snapshot of the run that the last generation has left."""
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
                    self._brought[path] = _version(path)
                    return
            except ValueError as error:  # an older snapshot is better than none
                print(f"hearth: {folder}/{path.name}: {error}", file=sys.stderr, flush=True)
            path.unlink()

    def _folder_of_snapshots(self) -> str:
        """The folder of the model, or one below it that snapshot_prefix names."""
        folder = self._model.rpartition("/")[0]
        below = os.path.dirname(self._prefix)
        return f"{folder}/{below}" if below else folder

    def _watch(self) -> None:
        wait = _LOOK_S
        while not self._ending.wait(wait):
            try:
                self._take_snapshots()
                wait = _LOOK_S
            except hearth_error() as error:  # finish() tries again, and says so
                print(f"hearth: a snapshot is not there yet: {error}", file=sys.stderr, flush=True)
                wait = _AGAIN_S

    def _take_snapshots(self) -> None:
        """Stores those that are whole, the seals last, and removes them here.

        Not the one that was fetched: it is there, and the trainer may be about to read it here.
        """
        folders: dict[str, list[Path]] = {}
        for seal in sorted(self._out.rglob(f"*_iter_*{_SEAL}"), key=os.path.getmtime):
            if self._brought.get(seal) == _version(seal):
                continue
            folders.setdefault(self._target(seal), []).append(seal)
        for folder, seals in folders.items():
            parts = [path for seal in seals for path in _sealed_by(seal)]
            self._copies.store([str(path) for path in parts], folder)
            self._copies.store([str(seal) for seal in seals], folder)
            for path in (*seals, *parts):
                path.unlink()

    def _target(self, path: Path) -> str:
        """The folder elsewhere of a file here."""
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
    """Another one for a file that has taken the name of this one."""
    status = file.stat()
    return status.st_ino, status.st_mtime_ns


def _read_seal(seal: Path) -> dict[str, Any]:
    """What a seal says. Raises ValueError where it is none: others may write in that folder."""
    try:
        content = json.loads(seal.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the seal is damaged ({error})") from None
    if not isinstance(content, dict):
        raise ValueError("the seal is damaged (no object)")
    return content


def _sealed_by(seal: Path) -> list[Path]:
    """The files that a seal names, beside it. Raises ValueError for names that lead elsewhere."""
    content = _read_seal(seal)
    try:
        names = [content[part]["file"] for part in ("model", "state")]
    except (KeyError, TypeError):
        raise ValueError("the seal is damaged (it names no files)") from None
    for name in names:
        if not isinstance(name, str) or name != os.path.basename(name) or name in ("", ".", ".."):
            raise ValueError(f"the seal names {name!r}, which is no file beside it")
    return [seal.parent / name for name in names]


def _patiently(act: Callable[[], None], deadline: float) -> None:
    """Repeats `act` until it succeeds, where waiting may help."""
    while True:
        try:
            return act()
        except hearth_error() as error:
            code: str = getattr(error, "code", "internal")
            if code in _FINAL or time.monotonic() > deadline:
                raise
            time.sleep(_AGAIN_S)
