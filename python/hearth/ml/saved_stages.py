"""Stages that are saved with files in addition to Params: weights, and a separate file with the
user's code."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

from pyspark.ml.param import Params
from pyspark.ml.util import (
    DefaultParamsReadable,
    DefaultParamsReader,
    DefaultParamsWritable,
    DefaultParamsWriter,
)

from hearth.errors import invalid
from hearth.files.hadoop_files import HadoopFiles

_CODE, _ABOUT, WEIGHTS = "code.pickle", "about.json", "weights.safetensors"
# Bytes per row when Spark writes a file as a table; a row cannot exceed 2 GB.
_CHUNK = 16 << 20

_trusts: ContextVar[bool] = ContextVar("hearth_trusts", default=False)


@contextmanager
def trusted() -> Iterator[None]:
    """Lets stages loaded in this block run the code that is saved with them.

    with hearth.ml.trusted():
        model = PipelineModel.load(path)
    """
    token = _trusts.set(True)
    try:
        yield
    finally:
        _trusts.reset(token)


class CodeStage(Params, DefaultParamsReadable, DefaultParamsWritable):  # type: ignore[type-arg]
    """A stage with the user's code, stored pickled.

    A loaded stage runs that code only if it was loaded as trusted.
    """

    _code = b""
    _distrusted = ""  # path from which the stage was loaded, if its code is not trusted

    def _keep(self, program: Any) -> None:
        from pyspark import cloudpickle

        self._code, self._distrusted = cloudpickle.dumps(program), ""

    def _trusted_code(self) -> bytes:
        """The pickled code. Raises ValueError if the code is not trusted."""
        if self._distrusted:
            kind = type(self).__name__
            raise invalid(
                f"this {kind} was loaded from {self._distrusted} as untrusted, so its pickled "
                f"code is not run: if you trust the author, load it by {kind}.load(path, "
                "trusted=True), or load its pipeline in a `with hearth.ml.trusted()` block"
            )
        return self._code

    def _kept(self) -> Any:
        return pickle.loads(self._trusted_code())

    def _about(self) -> dict[str, Any]:
        """Data to save as JSON."""
        return {}

    def _take(self, about: dict[str, Any]) -> None:
        """Restores data of _about()."""

    def _files(self) -> dict[str, bytes]:
        """Data to save in separate files, by name."""
        return {}

    def _take_files(self, files: StageFiles) -> None:
        """Restores data of _files()."""

    def write(self) -> StageWriter:
        """The writer of the stage: .overwrite() and .save(path)."""
        return StageWriter(self)

    @classmethod
    def read(cls) -> StageReader:
        """The reader of saved stages: .load(path)."""
        return StageReader(cls)

    @classmethod
    def load(cls, path: str, trusted: bool = False) -> Self:
        """Loads a saved stage.

        Args:
            path: as passed to save().
            trusted: whether fit() and transform() may run the code that is saved with the stage;
                set it only if you trust everyone who can write to the path.
        """
        token = _trusts.set(trusted or _trusts.get())
        try:
            return cls.read().load(path)
        finally:
            _trusts.reset(token)


class StageFiles:
    """Files in a stage's folder, on any file system of Spark."""

    def __init__(self, spark: Any, path: str):
        self._spark, self._path = spark, path
        self._hadoop = HadoopFiles.of(spark)

    def write(self, name: str, data: bytes) -> None:
        """Writes a file; with Spark Connect, which can only write tables, a Parquet folder."""
        if self._hadoop is not None:
            with TemporaryDirectory() as folder:
                file = Path(folder, name)
                file.write_bytes(data)
                self._hadoop.copy(f"file:{file}", f"{self._path}/{name}")
            return
        rows = [(i, bytearray(data[i : i + _CHUNK])) for i in range(0, len(data), _CHUNK)]
        frame = self._spark.createDataFrame(rows, "at bigint, bytes binary")
        frame.coalesce(1).write.parquet(f"{self._path}/{name}")

    def read(self, name: str) -> bytes:
        """Reads a file that write() wrote, with Spark Connect or without it."""
        uri = f"{self._path}/{name}"
        if self._hadoop is not None:
            with TemporaryDirectory() as folder:
                self._hadoop.copy(uri, f"file:{folder}/{name}")
                if (file := Path(folder, name)).is_file():
                    return file.read_bytes()
        try:
            rows = self._spark.read.parquet(uri).collect()
            return b"".join(bytes(r.bytes) for r in sorted(rows, key=lambda row: row.at))
        except Exception:
            [row] = self._spark.read.format("binaryFile").load(uri).collect()
            return bytes(row.content)


class StageWriter(DefaultParamsWriter):
    """A writer of a stage: its Params, the user's code, and the stage's files."""

    def _handleOverwrite(self, path: str) -> None:
        """Removes the old content. Spark's method needs a JVM. A Spark Connect client has none, so
        it overwrites the path with an empty table."""
        if HadoopFiles.of(self.sparkSession) is not None:
            super()._handleOverwrite(path)
        else:
            empty = self.sparkSession.range(0).selectExpr("string(id)")
            empty.write.mode("overwrite").text(path)

    def saveImpl(self, path: str) -> None:
        """Writes the stage's Params, and its code and weights to the same folder."""
        super().saveImpl(path)
        files = StageFiles(self.sparkSession, path)
        stage: Any = self.instance
        about = {"has_code": bool(stage._code), **stage._about()}
        given = {_ABOUT: json.dumps(about).encode(), **stage._files()}
        if stage._code:
            given[_CODE] = stage._code
        for name, data in given.items():
            files.write(name, data)


class StageReader(DefaultParamsReader):  # type: ignore[type-arg]
    """A reader of stages that StageWriter has written; unpickles nothing."""

    def load(self, path: str) -> Any:
        """The stage that was saved in `path`."""
        stage = super().load(path)
        files = StageFiles(self.sparkSession, path)
        about = json.loads(files.read(_ABOUT))
        if about.pop("has_code"):
            stage._code = files.read(_CODE)
            stage._distrusted = "" if _trusts.get() else path
        stage._take(about)
        stage._take_files(files)
        return stage
