"""The delegation tokens that the driver lends to a task, in a process of an executor."""

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
_MAGIC = b"HDTS"  # how a token file begins
_YARNS = "container_tokens"  # the file that it leaves in a container
# A task that starts later than this after the driver has lent (a DataFrame that is evaluated then,
# a job that waited for slots) begins with what its container has: the loan may have ended.
_FRESH_S = 3600.0
# For a week YARN renews what it has left in a container; where that is over, any loan is newer.
_RENEWED_S = 6 * 86_400.0
# Where WebHDFS does not serve, each look is a JVM.
_SHELL_LOOK_S = 600.0


@dataclass(frozen=True)
class TokenLoan:
    """Tokens for one task; travels in Spark's task closure.

    Attributes:
        tokens: a token file in base64.
        folder: the URI of the folder of newer ones, named by their number (see token_file()); ""
            where there will be none.
        number: of the folder's newest file when these were lent, which are as new.
        look_s: how often newer ones are looked for.
        lent_s: when, in seconds since 1970.
        settings: Hadoop's, by which the folder is found, beyond the executor's own.
    """

    tokens: str = field(repr=False)
    folder: str
    number: int
    look_s: float
    lent_s: float
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)


def token_file(number: int) -> str:
    """The name of a file of tokens in a loan's folder; of no file that is still being written."""
    return f"{number}{_SUFFIX}"


def is_users(file: str) -> bool:
    """Whether a token file is one that the user has named, rather than YARN's or of a loan."""
    return bool(file) and Path(file).name != _YARNS and not is_lent(file)


def is_lent(file: str) -> bool:
    """Whether a token file is one of a loan."""
    return Path(file).parent.name.startswith(PREFIX)


@contextmanager
def borrowed(loan: TokenLoan | None) -> Iterator[None]:
    """While it is open this process, and processes that it starts, show the loan's tokens, and
    newer ones as the driver gets them. One at a time in a process.

    The core's client and each new JVM find them by HADOOP_TOKEN_FILE_LOCATION. Without a loan,
    where the user has named a file, and where this host cannot keep one, all stays as it is.
    """
    before = os.environ.get(VARIABLE, "")
    watch = None if loan is None or is_users(before) else _watch(loan, before)
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


def _watch(loan: TokenLoan, before: str) -> _Watch | None:
    """`before`: the file that this process has. None where this host cannot keep another."""
    folder = None
    try:
        # Where Spark or YARN cleans up, should this process be killed.
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=spill_folder()))
        late = time.time() - loan.lent_s > _FRESH_S and _is_renewed(before)
        first = Path(before).read_bytes() if late else base64.b64decode(loan.tokens)
        return _Watch(loan, folder / "tokens", first)
    except (OSError, RuntimeError, ValueError) as error:  # a full disk, no thread
        _tell(f"the driver's delegation tokens cannot be kept here: {error}")
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        return None


def _is_renewed(file: str) -> bool:
    return bool(file) and time.time() - Path(file).stat().st_mtime < _RENEWED_S


class _Watch:
    """Keeps a file up to date, in a thread; its folder goes at the end."""

    def __init__(self, loan: TokenLoan, file: Path, first: bytes):
        """`first`: the file's content before there are newer tokens."""
        self.file = file
        self._loan, self._number = loan, loan.number
        self._shell: HadoopShell | None = None  # of the last look, where WebHDFS did not serve
        self._told = False
        self._damaged = 0  # the number of a file that has no tokens in it
        self._ending = threading.Event()
        self._mutex = threading.Lock()  # of the file, which is not written after the end
        replace_file(file, first)
        if loan.folder:
            threading.Thread(target=self._run, name="hearth-tokens", daemon=True).start()

    def end(self) -> None:
        """Does not wait for a look that is under way."""
        self._ending.set()
        with self._mutex:
            shutil.rmtree(self.file.parent, ignore_errors=True)

    def _run(self) -> None:
        while not self._ending.wait(self._pause_s()):
            try:
                self._look()
                self._told = False
            except Exception as error:  # whatever it is, the next look may do better
                if not self._told and not self._ending.is_set():
                    _tell(f"newer delegation tokens cannot be looked for: {error}")
                self._told = True

    def _pause_s(self) -> float:
        """Ranks do not all look in the same moment."""
        by_shell = self._shell is not None or self._told  # or it was tried, too, and failed
        most = max(self._loan.look_s, _SHELL_LOOK_S if by_shell else 0.0)
        return most * random.uniform(0.5, 1.0)

    def _look(self) -> None:
        numbers = (name.removesuffix(_SUFFIX) for name in self._names() if name.endswith(_SUFFIX))
        newest = max((int(number) for number in numbers if number.isdecimal()), default=0)
        if newest <= self._number:
            return
        uri = f"{self._loan.folder}/{token_file(newest)}"
        data = self._fetch(uri)
        if not data.startswith(_MAGIC):  # the tokens that are here may still be valid
            if newest != self._damaged:
                _tell(f"{uri} of {len(data)} bytes is no token file")
            self._damaged = newest
            return
        with self._mutex:
            if self._ending.is_set():
                return
            replace_file(self.file, data)
        self._number = newest
        _tell("new delegation tokens are here")

    def _names(self) -> list[str]:
        from hearth.native._core import list_folder

        self._shell = None
        try:
            found = list_folder(self._loan.folder, without_jvm=True)
        except FileNotFoundError:
            return []
        except (OSError, ValueError, HearthError):
            if self._ending.is_set():
                return []
            self._shell = HadoopShell(self._loan.settings)
            return self._shell.names(self._loan.folder)
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


def _tell(line: str) -> None:
    print(f"hearth: {line}", file=sys.stderr, flush=True)


def replace_file(file: Path, data: bytes) -> None:
    """Writes a file that only its owner may read; whoever reads it meanwhile gets the old one."""
    part = file.with_suffix(".part")
    part.unlink(missing_ok=True)
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "wb") as stream:
        stream.write(data)
    part.replace(file)
