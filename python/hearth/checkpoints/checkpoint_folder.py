"""A folder of checkpoints. Each is written under a temporary name, sealed, and renamed."""

from __future__ import annotations

import hashlib
import re
import secrets
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import IO, Any

from hearth.checkpoints.seal import MOST_SEAL_BYTES, SEAL, Damaged, Part, Seal, SealedFile
from hearth.errors import AbortedError
from hearth.files.file_system import file_refusal, files_of
from hearth.files.interface import FileSystem, Output
from hearth.files.local_folders import spill_folder
from hearth.files.uri import local_path

_NAME = re.compile(r"checkpoint-(\d{6,18})-step-(\d{1,18})")
_HIDDEN = re.compile(r"\.checkpoint-(\d{6,18})-step-\d{1,18}\.[0-9a-f]{8}\.(part|old)")
_BLOCK_BYTES = 8 << 20
# Steps must be below this, because _NAME matches at most 18 digits.
MOST_STEPS = 10**18


class Writer:
    """An output stream for a file of a Draft. Not thread-safe."""

    def __init__(self, output: Output):
        self._output = output
        self._sum = hashlib.sha256()
        self.bytes = 0

    def write(self, data: Any) -> int:
        """Appends the bytes of a buffer."""
        view = memoryview(data).cast("B")
        for start in range(0, len(view), _BLOCK_BYTES):
            block = bytes(view[start : start + _BLOCK_BYTES])
            self._sum.update(block)
            self._output.append(block)
        self.bytes += len(view)
        return len(view)

    def flush(self) -> None:
        """Does nothing, because the file is completed when new_file()'s block ends."""

    def sealed(self) -> SealedFile:
        """The number of bytes written, and their checksum."""
        return SealedFile(self.bytes, self._sum.hexdigest())


@contextmanager
def new_file(store: FileSystem, uri: str) -> Iterator[Writer]:
    """Opens a new file, which is complete when the block ends without an exception."""
    output = store.open_output(uri)
    try:
        writer = Writer(output)
        yield writer
        output.commit()
    finally:
        output.discard()


class Draft:
    """A checkpoint being written. Not thread-safe; call seal() or discard() at the end.

    Attributes:
        name, uri: the checkpoint's name, and the folder that its files are written to.
        step: the program's step number.
    """

    def __init__(self, store: FileSystem, folder: str, number: int, step: int):
        self.name = f"checkpoint-{number:06d}-step-{step}"
        self._store, self._number, self.step = store, number, step
        self._target = f"{folder}/{self.name}"
        hidden = f"{folder}/.{self.name}.{secrets.token_hex(4)}.part"
        self.uri = hidden if store.renames_folders else self._target
        self._files: dict[str, SealedFile] = {}
        store.make_folder(self.uri)

    @contextmanager
    def file(self, name: str) -> Iterator[Writer]:
        """Opens a new file of the checkpoint, which is complete when the block ends."""
        with new_file(self._store, f"{self.uri}/{name}") as writer:
            yield writer
        self._files[name] = writer.sealed()

    def add(self, name: str, file: SealedFile) -> None:
        """Adds a file that another writer has written to `uri`."""
        self._files[name] = file

    def seal(self, parts: Mapping[str, Part], world: int) -> Seal:
        """Writes the seal and publishes this checkpoint as the newest of the folder."""
        seal = Seal(self._number, self.step, world, parts, dict(self._files))
        text = seal.text().encode()
        with self.file(SEAL) as writer:
            writer.write(text)
        if self.uri != self._target:
            self._store.rename(self.uri, self._target)
        if read_small(self._store, f"{self._target}/{SEAL}") != text:
            raise AbortedError(
                f"another program also writes {self.name}: use one folder per program"
            )
        return seal

    def discard(self) -> None:
        """Removes the written files; never raises."""
        with suppress(Exception):  # report only the error that led here
            self._store.remove(self.uri)


@dataclass
class Checkpoint:
    """A complete checkpoint. Not thread-safe; call close() at the end.

    Attributes:
        name, uri: the name and URI of its folder.
        files: open for reading; each was verified against the seal.
    """

    name: str
    uri: str
    seal: Seal
    files: dict[str, Any]
    _ends: ExitStack

    def close(self) -> None:
        """Closes the files."""
        self._ends.close()


class CheckpointFolder:
    """The checkpoints at one URI. Only one thread of one process may write there at a time.

    Methods raise a one-line HearthError with the URI and the reason.
    """

    def __init__(self, uri: str, report: Callable[[str], None]):
        """`report` receives a line for each checkpoint that is skipped or cannot be removed."""
        self.uri = local_path(uri) or uri.rstrip("/")
        self._report = report
        self._damaged: set[str] = set()
        self._store = files_of(self.uri)

    def begin(self, step: int) -> Draft:
        """Starts a new checkpoint, which is invisible until it is sealed."""
        with self._refusals(f"the checkpoint of step {step} cannot be written to"):
            numbers = [number for number, _ in self._listed()]
            return Draft(self._store, self.uri, max(numbers, default=0) + 1, step)

    @contextmanager
    def writing(self, draft: Draft) -> Iterator[Draft]:
        """Discards the draft if the block raises, and adds the draft's name and URI to the
        error."""
        with self._refusals(f"{draft.name} cannot be written to"):
            try:
                yield draft
            except BaseException:
                draft.discard()
                raise

    def add_file(self, uri: str, source: IO[bytes]) -> SealedFile:
        """Copies a file to `uri`, in the folder of a draft that another rank has started."""
        with self._refusals("shards cannot be written to"), new_file(self._store, uri) as writer:
            while block := source.read(_BLOCK_BYTES):
                writer.write(block)
        return writer.sealed()

    def open_input(self, uri: str) -> Any:
        """Opens a checkpoint's file, for read() and seek()."""
        return self._store.open_input(uri)

    def newest(self) -> Checkpoint | None:
        """Opens the newest checkpoint that is fully intact; reports damaged ones and skips them."""
        with self._refusals("checkpoints cannot be read from"):
            for _, name in sorted(self._listed(), reverse=True):
                try:
                    return self._open(name)
                except Damaged as damage:
                    self._damaged.add(name)
                    self._report(f"{self.uri}/{name} is damaged and was skipped: {damage}")
        return None

    def last(self) -> tuple[int, str]:
        """The newest checkpoint's number and name, even if it is damaged, or (0, "none")."""
        with self._refusals("checkpoints cannot be read from"):
            return max(self._listed(), default=(0, "none"))

    def steps_of(self, part: str) -> list[int]:
        """The steps of the checkpoints in which the program saved an object named `part`, newest
        first."""
        steps = []
        for _, name in sorted(self._listed(), reverse=True):
            with suppress(Damaged):
                if part in (seal := self._seal(name)).parts:
                    steps.append(seal.step)
        return steps

    def remove_older(self, keep: int, than: int) -> None:
        """Removes all checkpoints numbered up to `than`, except the newest `keep` sealed ones of
        the folder. Also removes unfinished checkpoints and files that killed writers left.
        """
        try:
            sealed = 0
            for number, name in sorted(self._listed(), reverse=True):
                usable = name not in self._damaged and SEAL in self._store.names(self._at(name))
                sealed += usable
                if number <= than and (sealed > keep or (not usable and number < than)):
                    self._remove(name)
            for name in self._store.names(self.uri):
                if (found := _HIDDEN.fullmatch(name)) and int(found[1]) <= than:
                    self._store.remove(self._at(name))
        except Exception as error:  # not fatal: the next call tries again
            self._report(
                str(file_refusal("an older checkpoint cannot be removed from", self.uri, error))
            )

    def _remove(self, name: str) -> None:
        """Renames the checkpoint before removing it, so that readers never see it incomplete."""
        if self._store.renames_folders:
            hidden = self._at(f".{name}.{secrets.token_hex(4)}.old")
            self._store.rename(self._at(name), hidden)
            self._store.remove(hidden)
        else:
            self._store.remove(self._at(name))

    def _listed(self) -> list[tuple[int, str]]:
        """The number and name of each folder that is named like a checkpoint."""
        found = ((_NAME.fullmatch(name), name) for name in self._store.names(self.uri))
        return [(int(match[1]), name) for match, name in found if match]

    def _at(self, name: str) -> str:
        return f"{self.uri}/{name}"

    def _seal(self, name: str) -> Seal:
        data = read_small(self._store, f"{self._at(name)}/{SEAL}")
        if data is None:
            raise Damaged("it has no seal: its writer did not finish")
        seal = Seal.read(data)
        if name != f"checkpoint-{seal.number:06d}-step-{seal.step}":
            raise Damaged(f"its seal belongs to checkpoint {seal.number}, step {seal.step}")
        return seal

    def _open(self, name: str) -> Checkpoint:
        seal = self._seal(name)
        with ExitStack() as ends:
            files = {
                file: ends.enter_context(self._verified(f"{self._at(name)}/{file}", sealed))
                for file, sealed in seal.files.items()
            }
            return Checkpoint(name, self._at(name), seal, files, ends.pop_all())

    def _verified(self, uri: str, sealed: SealedFile) -> Any:
        """Opens the file, or a copy of a remote one; raises Damaged if it differs from the seal."""
        name = uri.rpartition("/")[2]
        if (size := _size(self._store, uri)) != sealed.bytes:
            found = "is missing" if size is None else f"has {size} bytes"
            raise Damaged(f"{name} {found}, but its seal says {sealed.bytes} bytes")
        with ExitStack() as ends:
            source = ends.enter_context(self._store.open_input(uri))
            copy = None if local_path(uri) else ends.enter_context(spool_file())
            if sum_of(source, copy) != sealed.sha256:
                raise Damaged(f"the content of {name} has changed: its SHA-256 differs")
            file = copy or source
            file.seek(0)
            ends.pop_all()
            if copy is not None:
                source.close()
            return file

    @contextmanager
    def _refusals(self, what: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # libraries raise their own classes
            raise file_refusal(what, self.uri, error) from error


def sum_of(source: Any, copy: Any = None) -> str:
    """The SHA-256 of a file's remaining bytes; also writes them to `copy`."""
    total = hashlib.sha256()
    while block := source.read(_BLOCK_BYTES):
        total.update(block)
        if copy is not None:
            copy.write(block)
    return total.hexdigest()


def spool_file() -> Any:
    """An unnamed temporary file on this host's disks, which close() removes."""
    return tempfile.TemporaryFile(dir=spill_folder(), prefix="hearth-checkpoint-")


def read_small(store: FileSystem, uri: str) -> bytes | None:
    """Reads a seal; None if it is missing. Raises Damaged if it is too large."""
    size = _size(store, uri)
    if size is None:
        return None
    if size > MOST_SEAL_BYTES:
        raise Damaged(f"{SEAL} has {size} bytes, more than the limit of {MOST_SEAL_BYTES}")
    with store.open_input(uri) as source:
        return bytes(source.read(MOST_SEAL_BYTES))


def _size(store: FileSystem, uri: str) -> int | None:
    """A file's size in bytes; None if it is missing."""
    status = store.status(uri)
    return None if status is None else status[0]


def some_of(names: Collection[str], most: int = 4) -> str:
    """Lists the first few names, for a message."""
    shown = sorted(names)[:most]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" (and {more} more)" if more else "")
