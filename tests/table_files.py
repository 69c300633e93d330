"""One table as files in each format that nodes read, for the tests of several folders."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
from hearth.native._core import TfRecordWriter

ROWS = 1000
TABLE = pa.table(
    {
        "id": pa.array(range(ROWS), pa.int64()),
        "x": pa.array([[i, i + 0.5] for i in range(ROWS)], pa.list_(pa.float32())),
    }
)


def write_parquet(folder):
    for i in range(2):
        part = TABLE.slice(i * 600, 600)
        pq.write_table(part, folder / f"part-{i}.parquet", row_group_size=70)


def write_arrow(folder):
    for i in range(4):
        with pa.ipc.new_file(folder / f"part-{i}.arrow", TABLE.schema) as file:
            file.write_table(TABLE.slice(i * 250, 250), max_chunksize=70)


def write_records(folder):
    for i in range(5):
        writer = TfRecordWriter(str(folder / f"part-r-{i:05d}"))
        for batch in TABLE.slice(i * 200, 200).to_batches():
            writer.write(batch)
        writer.finish()
    (folder / "_SUCCESS").touch()


WRITERS = [write_parquet, write_arrow, write_records]
