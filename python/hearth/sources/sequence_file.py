"""Hadoop's SequenceFiles of BytesWritables: their units are ranges between two marks.

The keys of CaffeOnSpark's files tell of images; `key` and `value` are there for all others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from hearth.files.input_files import InputFile
from hearth.files.stored_files import StoredFile
from hearth.sources.format import BATCH_BYTES, BATCH_ROWS, Unit, not_empty
from hearth.sources.image_keys import IMAGE_TYPES, PICTURE_COLUMNS, PictureKeys, values_of
from hearth.sources.sequence_reader import Record, SequenceReader

if TYPE_CHECKING:
    import pyarrow as pa

# Ranges are small enough to be in memory, large enough for a request to pay.
_RANGE_BYTES = 16 << 20
# Records of smaller sources are counted, by their lengths alone.
_COUNTED_SHARE = 1 << 20
_TYPES = {**IMAGE_TYPES, "key": "binary", "value": "binary"}
IMAGE_COLUMNS = tuple(IMAGE_TYPES)


class SequenceFileFormat:
    """As Format. A record whose key tells of no image has an id made of the key, and nulls."""

    kind = "SequenceFile"
    in_folders = False
    one_database = False

    def data_files(self, files: Sequence[StoredFile]) -> list[StoredFile]:
        return not_empty(files)

    def schema(self, files: Sequence[StoredFile]) -> pa.Schema:
        import pyarrow as pa

        _opened(files[0])
        return pa.schema([(name, pa.type_for_alias(kind)) for name, kind in _TYPES.items()])

    def units(self, file: StoredFile, share: int) -> list[Unit]:
        reader = _opened(file)
        size = max(1, min(share, _RANGE_BYTES))
        begins = range(0, file.size, size)
        ranges = [(begin, min(begin + size, file.size)) for begin in begins]
        if share > _COUNTED_SHARE:
            return [Unit(found, found[0], found[1] - found[0]) for found in ranges]
        return _counted(reader, ranges)

    def open(self, file: StoredFile, schema: pa.Schema) -> _Reader:
        return _Reader(file, schema)


class _Reader:
    def __init__(self, file: StoredFile, schema: pa.Schema):
        self._schema = schema
        self._records = _opened(file)
        self._keys = PictureKeys()

    def read(self, key: tuple[int, int]) -> Iterator[pa.RecordBatch]:
        for records in _batches(self._records.records(*key)):
            yield self._batch(records)

    def _batch(self, records: Sequence[Record]) -> pa.RecordBatch:
        import pyarrow as pa

        found: dict[str, list[Any]] = {name: [] for name in _TYPES}
        for key, value in records:
            image = self._keys.picture_of(key)
            for name, part in zip(PICTURE_COLUMNS, values_of(key, image), strict=True):
                found[name].append(part)
            found["data"].append(None if image is None else value)
            found["key"].append(key)
            found["value"].append(value)
        arrays = [pa.array(found[field.name], field.type) for field in self._schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


def _opened(file: StoredFile) -> SequenceReader:
    return SequenceReader(file.uri, InputFile(file), file.size)


def _counted(reader: SequenceReader, ranges: Sequence[tuple[int, int]]) -> list[Unit]:
    """Units with their numbers of rows. Marks may be further from each other than ranges are long:
    those without a mark have no rows, and the others have the bytes up to the next mark."""
    units: list[Unit] = []
    for begin, end in ranges:
        if rows := reader.count(begin, end):
            units.append(Unit((begin, end), begin, end - begin, rows))
        elif units:
            last = units[-1]
            units[-1] = Unit(last.key, last.start, last.bytes + end - begin, last.rows)
    return units


def _batches(records: Iterable[Record]) -> Iterator[list[Record]]:
    batch: list[Record] = []
    size = 0
    for record in records:
        batch.append(record)
        size += len(record[1])
        if len(batch) == BATCH_ROWS or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
