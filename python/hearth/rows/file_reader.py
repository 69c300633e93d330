"""Feeds one rank's rows of Parquet files into its trainer's ring, if no Spark task does that.


    python3 -m hearth.rows.file_reader --source URI --format parquet --columns a,b \
        --rank r --world n --ring-fd N --signal-fd M
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from hearth.sources.columns import column_pairs
from hearth.sources.file_source import FileSource
from hearth.sources.parquet import ParquetFormat
from hearth.sources.rank_rows import RankRows

if TYPE_CHECKING:
    import pyarrow as pa

# How long the ring may be full. A trainer's death is detected immediately, without a timeout.
STALL_TIMEOUT_S = 3600.0


def read_rows(uri: str, columns: Sequence[str], rank: int, world: int) -> Iterator[pa.RecordBatch]:
    """Reads `rank`'s rows in file order. `columns`: `name` or `name as alias`; empty means all.

    Raises like FileSource.pin(), select() and read().
    """
    source = FileSource(ParquetFormat(), uri).pin()
    if columns:
        source = source.select(column_pairs(columns, source.schema().names))
    return RankRows(source).read(rank, world)


def main(arguments: Sequence[str] | None = None) -> int:
    """Feeds one rank's rows into the inherited ring; reports a failure to the ring's reader."""
    parser = argparse.ArgumentParser(prog="hearth.rows.file_reader", description=__doc__)
    parser.add_argument("--source", required=True)
    parser.add_argument("--format", default="parquet", choices=["parquet"])
    parser.add_argument("--columns", default="")
    for name in ("rank", "world", "ring-fd", "signal-fd"):
        parser.add_argument(f"--{name}", type=int, required=True)
    flags = parser.parse_args(arguments)

    from hearth.native._core import RingWriter

    writer = RingWriter.attach(flags.ring_fd, flags.signal_fd)
    columns = [item for item in flags.columns.split(",") if item]
    try:
        for batch in read_rows(flags.source, columns, flags.rank, flags.world):
            if not writer.write(batch, STALL_TIMEOUT_S):
                return 0  # the ring's reader needs no more rows
    except Exception as error:  # any error must reach the trainer
        writer.fail(f"{type(error).__name__}: {error}")
        return 1
    writer.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
