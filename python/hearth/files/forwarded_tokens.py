"""Uses the delegation tokens that the driver forwards to a task, in an executor's process."""

from __future__ import annotations

import base64
import os
import random
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from hearth.errors import HearthError
from hearth.files.hadoop_shell import HadoopShell
from hearth.files.local_folders import spill_folder

VARIABLE = "HADOOP_TOKEN_FILE_LOCATION"
PREFIX, _SUFFIX = "hearth-tokens-", ".tokens"
_MAGIC = b"HDTS"  # the first bytes of a token file
_YARN_FILE = "container_tokens"  # YARN's token file in a container
# A task that starts later than this after the driver forwarded the tokens (a DataFrame evaluated
# later, a job that waited for slots) uses its container's tokens, because the forwarded ones may
# have expired.
_FRESH_S = 3600.0
# Age limit of a container's token file: YARN renews its tokens only for a week.
_RENEWED_S = 6 * 86_400.0
# Interval of checks without WebHDFS, each of which starts a JVM.
_SHELL_LOOK_S = 600.0


@dataclass(frozen=True)
class ForwardedTokens:
    """Delegation tokens for one task, which Spark sends in the task's closure.

    Attributes:
        tokens: a token file in base64.
        folder: the URI of the folder to which the driver will write newer token files, named by
            number (see token_file()); "" if it will write none.
        number: the newest file's number when these tokens were forwarded; later files are newer.
        look_s: interval between checks for newer tokens.
        forwarded_s: when the tokens were forwarded, in seconds since 1970.
        settings: Hadoop settings for reaching the folder, added to the executor's.
    """

    tokens: str = field(repr=False)
    folder: str
    number: int
    look_s: float
    forwarded_s: float
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)


def token_file(number: int) -> str:
    """The name of a complete token file in the folder."""
    return f"{number}{_SUFFIX}"


def is_set_by_user(file: str) -> bool:
    """Whether the user, not YARN or the driver, set this token file."""
    return bool(file) and Path(file).name != _YARN_FILE and not is_forwarded(file)


def is_forwarded(file: str) -> bool:
    """Whether a token file contains forwarded tokens."""
    return Path(file).parent.name.startswith(PREFIX)


@contextmanager
def token_scope(tokens: ForwardedTokens | None) -> Iterator[None]:
    """In the block, this process and its children use the forwarded tokens, and replace them as the
    driver obtains newer ones. A process can run one block at a time.

    The core's client and new JVMs find the tokens through HADOOP_TOKEN_FILE_LOCATION. Does nothing
    if `tokens` is None, the user has set a token file, or this host cannot write a file.
    """
    before = os.environ.get(VARIABLE, "")
    watch = None if tokens is None or is_set_by_user(before) else _watch(tokens, before)
    if watch is None:
        yield
        return
    os.environ[VARIABLE] = str(watch.file)
    try:
        yield
    finally:
        watch.end()
        if before:
            os.environ[VARIABLE] = before
        else:
            os.environ.pop(VARIABLE, None)


def _watch(tokens: ForwardedTokens, before: str) -> _Watch | None:
    """`before`: the current token file. Returns None if no file can be written on this host."""
    folder = None
    try:
        # Spark or YARN deletes this folder if this process is killed.
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=spill_folder()))
        late = time.time() - tokens.forwarded_s > _FRESH_S and _is_renewed(before)
        first = Path(before).read_bytes() if late else base64.b64decode(tokens.tokens)
        return _Watch(tokens, folder / "tokens", first)
    except (OSError, RuntimeError, ValueError) as error:  # disk full, or no thread
        _log(f"the driver's delegation tokens cannot be written on this host: {error}")
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        return None


def _is_renewed(file: str) -> bool:
    return bool(file) and time.time() - Path(file).stat().st_mtime < _RENEWED_S


class _Watch:
    """A thread that keeps the token file up to date; end() removes its folder."""

    def __init__(self, tokens: ForwardedTokens, file: Path, first: bytes):
        """`first`: the initial content of the file."""
        self.file = file
        self._tokens, self._number = tokens, tokens.number
        self._shell: HadoopShell | None = None  # set once WebHDFS has failed
        self._reported = False
        self._damaged = 0  # the number of a file without valid tokens
        self._ending = threading.Event()
        self._mutex = threading.Lock()  # guards the file, which is not written after end()
        replace_file(file, first)
        if tokens.folder:
            threading.Thread(target=self._run, name="hearth-tokens", daemon=True).start()

    def end(self) -> None:
        """Stops the thread without waiting for a check in progress, and removes the folder."""
        self._ending.set()
        with self._mutex:
            shutil.rmtree(self.file.parent, ignore_errors=True)

    def _run(self) -> None:
        while not self._ending.wait(self._pause_s()):
            try:
                self._check()
                self._reported = False
            except Exception as error:  # the next check may succeed
                if not self._reported and not self._ending.is_set():
                    _log(f"cannot check for newer delegation tokens: {error}")
                self._reported = True

    def _pause_s(self) -> float:
        """The time until the next check, with jitter so that ranks do not all check at once."""
        by_shell = self._shell is not None or self._reported  # _reported: the shell has failed
        most = max(self._tokens.look_s, _SHELL_LOOK_S if by_shell else 0.0)
        return most * random.uniform(0.5, 1.0)

    def _check(self) -> None:
        numbers = (name.removesuffix(_SUFFIX) for name in self._names() if name.endswith(_SUFFIX))
        newest = max((int(number) for number in numbers if number.isdecimal()), default=0)
        if newest <= self._number:
            return
        uri = f"{self._tokens.folder}/{token_file(newest)}"
        data = self._fetch(uri)
        if not data.startswith(_MAGIC):  # keep the current tokens, which may still be valid
            if newest != self._damaged:
                _log(f"{uri} of {len(data)} bytes is not a token file")
            self._damaged = newest
            return
        with self._mutex:
            if self._ending.is_set():
                return
            replace_file(self.file, data)
        self._number = newest
        _log("received new delegation tokens")

    def _names(self) -> list[str]:
        from hearth.native._core import list_folder

        self._shell = None
        try:
            found = list_folder(self._tokens.folder, without_jvm=True)
        except FileNotFoundError:
            return []
        except (OSError, ValueError, HearthError):
            if self._ending.is_set():
                return []
            self._shell = HadoopShell(self._tokens.settings)
            return self._shell.names(self._tokens.folder)
        return [status.uri.rpartition("/")[2] for status in found]

    def _fetch(self, uri: str) -> bytes:
        from hearth.native._core import read_file

        if self._shell is None:
            return bytes(read_file(uri, without_jvm=True))
        fetched = self.file.with_suffix(".fetched")
        try:
            self._shell.fetch(uri, str(fetched))
            return fetched.read_bytes()
        finally:
            fetched.unlink(missing_ok=True)


def _log(line: str) -> None:
    print(f"hearth: {line}", file=sys.stderr, flush=True)


def replace_file(file: Path, data: bytes) -> None:
    """Writes a file that only its owner can read, and replaces the old file atomically."""
    part = file.with_suffix(".part")
    part.unlink(missing_ok=True)
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "wb") as stream:
        stream.write(data)
    part.replace(file)
