"""Hadoop's SequenceFiles of BytesWritables: their units are ranges between two marks.

The keys of CaffeOnSpark's files tell of images; `key` and `value` are there for all others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from hearth.files.input_files import InputFile
from hearth.files.stored_files import StoredFile
from hearth.sources.format import BATCH_BYTES, BATCH_ROWS, Format, Unit, not_empty
from hearth.sources.image_keys import IMAGE_COLUMNS, IMAGE_TYPES, ImageKeys, values_of
from hearth.sources.sequence_reader import Record, SequenceReader

if TYPE_CHECKING:
    import pyarrow as pa

# Ranges are small enough to be in memory, large enough for a request to pay.
_RANGE_BYTES = 16 << 20
# Records of smaller sources are counted, by their lengths alone.
_COUNTED_SHARE = 1 << 20
_TYPES = {**IMAGE_TYPES, "key": "binary", "value": "binary"}
# Of a batch of views, with room for what else is in it.
_VIEW_BYTES = BATCH_BYTES - (256 << 10)


class SequenceFileFormat(Format):
    """As Format. A record whose key tells of no image has an id made of the key, and nulls."""

    kind = "SequenceFile"
    views = True

    def data_files(self, files: Sequence[StoredFile]) -> list[StoredFile]:
        return not_empty(files)

    def schema(self, files: Sequence[StoredFile]) -> pa.Schema:
        import pyarrow as pa

        _opened(InputFile(files[0]))
        return pa.schema([(name, pa.type_for_alias(kind)) for name, kind in _TYPES.items()])

    def units(self, file: StoredFile, share: int) -> list[Unit]:
        source = InputFile(file)
        reader = _Mapped(source) if _is_plain(source) else _opened(source)
        size = max(1, min(share, _RANGE_BYTES))
        begins = range(0, file.size, size)
        ranges = [(begin, min(begin + size, file.size)) for begin in begins]
        if share > _COUNTED_SHARE:
            return [Unit(found, found[0], found[1] - found[0]) for found in ranges]
        return _counted(reader, ranges)

    def joined(self, key: tuple[int, int], following: tuple[int, int]) -> Any:
        return (key[0], following[1]) if key[1] == following[0] else None

    def open(self, file: InputFile, schema: pa.Schema, keys: Sequence[Any]) -> _Reader:
        return _Reader(file, schema, max((end for _, end in keys), default=0))


class _Reader:
    """Values of a local file that is not compressed are views of the mapped file."""

    def __init__(self, file: InputFile, schema: pa.Schema, end: int):
        """`end`: of the last range that will be read."""
        self._file, self._schema = file, schema
        self._mapped = _is_plain(file)
        self._records = None if self._mapped else _opened(file, end)
        self._keys = ImageKeys()

    def read(self, key: tuple[int, int]) -> Iterator[pa.RecordBatch]:
        batches = self._views(*key) if self._mapped else self._copies(*key)
        for keys, values in batches:
            yield self._batch(keys, values)

    def _copies(self, begin: int, end: int) -> Iterator[tuple[list[bytes], pa.Array]]:
        import pyarrow as pa

        assert self._records is not None
        for records in _batches(self._records.records(begin, end)):
            keys, values = zip(*records, strict=True)
            yield list(keys), pa.array(values, pa.binary())

    def _views(self, begin: int, end: int) -> Iterator[tuple[list[bytes], pa.Array]]:
        import pyarrow as pa

        for keys, views, values in _Mapped(self._file).records(begin, end):
            buffers = [None, pa.py_buffer(views), pa.py_buffer(values)]
            yield keys, pa.Array.from_buffers(pa.binary_view(), len(keys), buffers)

    def _batch(self, keys: list[bytes], values: pa.Array) -> pa.RecordBatch:
        import pyarrow as pa

        images = [self._keys.picture_of(key) for key in keys]
        rows = map(values_of, keys, images)
        columns = zip(*rows, strict=True)
        found: dict[str, Any] = dict(zip(IMAGE_COLUMNS, columns, strict=True))
        found |= {"key": keys, "value": values, "data": values}
        if None in images:
            there = pa.array([image is not None for image in images]).buffers()[1]
            buffers = [there, *values.buffers()[1:]]
            found["data"] = pa.Array.from_buffers(values.type, len(keys), buffers)
        arrays = [_column(found[field.name], field.type) for field in self._schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


class _Mapped:
    """Records of a plain local file by the core, in the same ranges as SequenceReader has them."""

    def __init__(self, file: InputFile):
        self._file = file

    def records(self, begin: int, end: int) -> Iterator[tuple[list[bytes], bytes, memoryview]]:
        """Batches of keys, their values as Arrow's binary views, and the buffer of these."""
        from hearth.native._core import SequenceRecords

        behind = SequenceRecords.head_bytes() + 1  # what is before goes with the first range
        low = max(begin, behind) if begin else 0
        records = SequenceRecords(self._file.path, low, max(end, behind))
        while found := records.next(BATCH_ROWS, _VIEW_BYTES):
            yield found

    def count(self, begin: int, end: int) -> int:
        return sum(len(keys) for keys, _, _ in self.records(begin, end))


def _column(values: Any, kind: pa.DataType) -> pa.Array:
    import pyarrow as pa

    if not isinstance(values, pa.Array):
        return pa.array(values, kind)
    return values if values.type == kind else values.cast(kind)


def _is_plain(file: InputFile) -> bool:
    """Whether the core reads it: of this host, and not compressed."""
    from hearth.native._core import SequenceRecords

    try:
        (file.path or "").encode()
    except UnicodeEncodeError:  # the core has no name for it
        return False
    head = file.read_at(0, SequenceRecords.head_bytes()) if file.path is not None else b""
    return bool(head) and SequenceRecords.reads(head)


def _opened(file: InputFile, wanted: int = 0) -> SequenceReader:
    return SequenceReader(file.uri, file, file.stored.size, wanted)


def _counted(reader: SequenceReader | _Mapped, ranges: Sequence[tuple[int, int]]) -> list[Unit]:
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
