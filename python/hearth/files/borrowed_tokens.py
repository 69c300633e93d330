"""The delegation tokens that the driver lends to a task, in a process of an executor."""

from __future__ import annotations

import base64
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hearth.files.far_copies import FarCopies
from hearth.files.hadoop_tokens import VARIABLE, TokenLoan, replace_file, token_file
from hearth.files.local_folders import spill_folder
from hearth.native.failure import hearth_error


@contextmanager
def borrowed(loan: TokenLoan | None) -> Iterator[None]:
    """While it is open this process, and processes that it starts, show the loan's tokens, and
    newer ones as the driver gets them. One at a time in a process; None changes nothing.

    The core's client and each new JVM find them by HADOOP_TOKEN_FILE_LOCATION.
    """
    if loan is None:
        yield
        return
    # Where Spark or YARN cleans up, should this process be killed.
    folder = Path(tempfile.mkdtemp(prefix="hearth-tokens-", dir=spill_folder()))
    file, before = folder / "tokens", os.environ.get(VARIABLE)
    ending = threading.Event()
    watch = threading.Thread(target=_watch, args=(loan, file, ending), daemon=True)
    try:
        replace_file(file, base64.b64decode(loan.tokens))
        os.environ[VARIABLE] = str(file)
        if loan.folder:
            watch.start()
        yield
    finally:
        ending.set()  # it may be in the middle of a look, which nobody waits for
        if before is None:
            os.environ.pop(VARIABLE, None)
        else:
            os.environ[VARIABLE] = before
        shutil.rmtree(folder, ignore_errors=True)


def _watch(loan: TokenLoan, file: Path, ending: threading.Event) -> None:
    copies, number = FarCopies({}), loan.number
    while not ending.wait(loan.look_s):
        try:
            number = _renew(copies, loan.folder, number, file)
        except (OSError, ValueError, hearth_error()) as error:
            if ending.is_set():
                return
            print(f"hearth: newer tokens are not here yet: {error}", file=sys.stderr, flush=True)


def _renew(copies: FarCopies, folder: str, number: int, file: Path) -> int:
    """Takes the newest tokens that are newer than those of `number`; returns their number."""
    names = set(copies.names(folder))
    newest = number
    while token_file(newest + 1) in names:
        newest += 1
    if newest > number:
        fetched = file.with_suffix(".fetched")
        copies.fetch(f"{folder}/{token_file(newest)}", str(fetched))
        replace_file(file, fetched.read_bytes())
        fetched.unlink()
        print("hearth: new delegation tokens are here", file=sys.stderr, flush=True)
    return newest
