"""LMDBs of Caffe's Datums, on this host or in HDFS. Their units (format.Unit) are key ranges."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from hearth.errors import invalid
from hearth.files.file_system import by_core
from hearth.files.hadoop_shell import use_core_as_hadoop_user
from hearth.files.input_files import Count, InputFile
from hearth.files.stored_files import StoredFile
from hearth.files.uri import local_path
from hearth.sources.cut_splits import LEAST_SPLITS
from hearth.sources.format import Format, Read, Unit

# A range of keys: (first key, exclusive end key or None, number of records or None).
Range = tuple[bytes, bytes | None, int | None]
_UNIT_BYTES = 32 << 20
# Few ranges for a small LMDB in HDFS, because each range descends the tree page by page.
_FEW_UNITS = 48


class LmdbFormat(Format):
    """LMDBs of Caffe's Datums, read by the core, also from HDFS. Only a range's pages are read."""

    kind = "LMDB"
    views = True

    def data_files(self, files: Sequence[StoredFile]) -> list[StoredFile]:
        data = [file for file in files if file.uri.endswith("/data.mdb")]
        if not data and len(files) > 1:
            folder = files[0].uri.rpartition("/")[0]
            is_other = any(file.uri.endswith("/CURRENT") for file in files)
            why = "it is a LevelDB" if is_other else "it has no data.mdb"
            raise invalid(f"{folder} is not an LMDB: {why}")
        file = (data or files)[0]
        if not by_core(file.uri):
            raise invalid(
                f"{file.uri}: an LMDB is read in place, so it must be on a path that all hosts "
                "see, or in HDFS; convert it to Parquet, which can be read from any file system"
            )
        return [file]

    def schema(self, files: Sequence[StoredFile]) -> pa.Schema:
        return datum_schema()

    def units(self, file: StoredFile, share: int) -> list[Unit]:
        from hearth.native._core import cut_lmdb, divide_lmdb

        use_core_as_hadoop_user()
        wanted = max(LEAST_SPLITS, file.size // _UNIT_BYTES)
        if local_path(file.uri) is None:  # do not read leaves of remote files
            _, cuts = cut_lmdb(file.uri, wanted)
            if cuts:
                ends = [*(key for key, _ in cuts[1:]), None]
                size = file.size // len(cuts)
                return [
                    Unit((key, end, None), at, size)
                    for (key, at), end in zip(cuts, ends, strict=True)
                ]
            wanted = _FEW_UNITS
        records, keys = divide_lmdb(file.uri, wanted)
        begins = [records * i // wanted for i in range(wanted + 1)]
        counts = [end - begin for begin, end in itertools.pairwise(begins)]
        found = [(i, key, counts[i]) for i, key in enumerate(keys) if counts[i]]
        ends = [*(key for _, key, _ in found[1:]), *([None] if found else [])]
        size = max(1, file.size // wanted)
        return [
            Unit((key, end, count), file.size * i // wanted, size, count)
            for (i, key, count), end in zip(found, ends, strict=True)
        ]

    def joined(self, key: Range, following: Range) -> Range | None:
        return joined_ranges(key, following)

    def open(self, file: InputFile, schema: pa.Schema, keys: Sequence[Any]) -> Read:
        from hearth.native._core import DatumRows, lmdb_rows

        use_core_as_hadoop_user()

        def read(key: Range) -> Iterator[pa.RecordBatch]:
            first, end, count = key
            if count is None:
                rows = lmdb_rows(file.uri, first, end)
            else:
                rows = DatumRows(file.uri, first, count)
            return datum_batches(rows, schema, file.count)

        return read


def joined_ranges(range_: Range, following: Range) -> Range | None:
    """Combines two ranges; None if they are not adjacent, or only one has a record count."""
    counts = range_[2], following[2]
    if range_[1] != following[0] or (None in counts and set(counts) != {None}):
        return None
    return range_[0], following[1], None if None in counts else (counts[0] or 0) + (counts[1] or 0)


def datum_batches(rows: Any, schema: pa.Schema, count: Count) -> Iterator[pa.RecordBatch]:
    """Yields DatumRows' batches with the columns of `schema`. `data` are views of the file, which
    are copied unless `schema` has views. `count` is called with the number of bytes read.
    """
    counted = 0
    while (found := rows.next()) is not None:
        count(rows.fetched - counted)
        counted = rows.fetched
        batch = pa.record_batch(found)
        columns = [(batch.column(field.name), field.type) for field in schema]
        arrays = [array if array.type == kind else array.cast(kind) for array, kind in columns]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def datum_schema() -> pa.Schema:
    """The columns of a Datum."""
    numbers = [(name, pa.int32()) for name in ("label", "channels", "height", "width", "encoded")]
    return pa.schema([("id", pa.string()), *numbers, ("data", pa.binary())])
