"""LevelDBs of Caffe's Datums on this host. Their units (format.Unit) are key ranges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hearth.errors import invalid
from hearth.files.input_files import InputFile
from hearth.files.stored_files import StoredFile
from hearth.files.uri import local_path
from hearth.sources.cut_splits import LEAST_SPLITS
from hearth.sources.format import Format, Read, Unit
from hearth.sources.lmdb import Range, datum_batches, datum_schema, joined_ranges

if TYPE_CHECKING:
    import pyarrow as pa

_UNIT_BYTES = 32 << 20
# Files without rows, which are rewritten whenever the database is opened.
_LOGS = ("LOG", "LOCK")


class LevelDbFormat(Format):
    """LevelDBs of Caffe's Datums. A folder is one database, represented by its file CURRENT."""

    kind = "LevelDB"
    one_database = True
    views = True

    def data_files(self, files: Sequence[StoredFile]) -> list[StoredFile]:
        found = {file.uri.rpartition("/")[2]: file for file in files}
        folder = files[0].uri.rpartition("/")[0]
        if local_path(files[0].uri) is None:
            raise invalid(
                f"{folder}: a LevelDB is read in place, so it must be on a path that all hosts "
                "see; convert it to Parquet, which can be read from any file system"
            )
        if "CURRENT" not in found:
            raise invalid(f"{folder} is not a LevelDB: it has no CURRENT")
        first = found.pop("CURRENT")
        return [first, *(file for name, file in found.items() if not name.startswith(_LOGS))]

    def schema(self, files: Sequence[StoredFile]) -> pa.Schema:
        return datum_schema()

    def units(self, file: StoredFile, share: int) -> list[Unit]:
        from hearth.native._caffe import divide_leveldb  # part of the Caffe engine

        folder, _, name = file.uri.rpartition("/")
        if name != "CURRENT":
            return []
        wanted = max(LEAST_SPLITS, share * LEAST_SPLITS // _UNIT_BYTES)
        ranges = divide_leveldb(folder, wanted)
        size = max(1, share * LEAST_SPLITS // wanted)
        return [Unit(key, 0, size, key[2]) for key in ranges if key[2] != 0]

    def joined(self, key: Range, following: Range) -> Range | None:
        return joined_ranges(key, following)

    def open(self, file: InputFile, schema: pa.Schema, keys: Sequence[Any]) -> Read:
        from hearth.native._caffe import leveldb_rows

        folder = file.uri.rpartition("/")[0]
        return lambda key: datum_batches(leveldb_rows(folder, key), schema, file.count)
