"""Parquet files are read beside the trainer, without the JVM; the rows are split by rank.

The Spark task calls `read_rows`; `hearth train` runs this module as a program:

    python3 -m hearth.rows.file_reader --source URI --format parquet --columns a,b \
        --rank r --world n --ring-fd N --signal-fd M
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hearth.rows.pinned_files import PinnedFile, PinnedFiles, open_dataset, pin_files

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds

BATCH_ROWS = 1024
# How long the ring may stay full. A trainer that died is noticed at once and needs no timeout.
STALL_TIMEOUT_S = 3600.0


def row_range(total: int, rank: int, world: int) -> tuple[int, int]:
    """Rows [begin, end) of rank `rank`: contiguous, complete, sizes differ by at most one."""
    return rank * total // world, (rank + 1) * total // world


def column_types(source: str) -> dict[str, str]:
    """The columns of the Parquet file or folder, in file order, and their types in Arrow."""
    return {field.name: str(field.type) for field in open_dataset(source).schema}


def parse_column(item: str) -> tuple[str, str]:
    """`name` or `name as alias` (as in dataframe_column_select) as (name, alias).

    Raises:
        ValueError: any other SQL expression; only Spark can compute those.
    """
    words = item.split()
    named = all(word.isidentifier() for word in words)  # "a+1 as b" is for Spark to compute
    if named and len(words) == 1:
        return words[0], words[0]
    if named and len(words) == 3 and words[1].lower() == "as":
        return words[0], words[2]
    raise ValueError(f"'{item}' is neither a column name nor 'name as alias'")


def read_rows(
    source: str,
    columns: Sequence[str],
    rank: int,
    world: int,
    batch_rows: int = BATCH_ROWS,
    pinned: PinnedFiles | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yields the rows of `rank` in file order, only `columns` (all of them when empty).

    `pinned` are the files to read; without it, those of `source` as they are now. Files and row
    groups that lie outside the range are not read. Memory: a few row groups' worth.

    Raises:
        ValueError: a column that is not there (the message lists those that are), or a file that is
            not as it was pinned.
    """
    pinned = pinned or pin_files(source)
    pairs = select(columns, pinned.schema.names, source)
    for piece in pieces_of(pinned, rank, world):
        yield from read_piece(pinned, piece, pairs, batch_rows)


def select(columns: Sequence[str], known: Sequence[str], source: str) -> list[tuple[str, str]]:
    """(name, alias) of each of `columns`, of all in `known` where it is empty.

    Raises:
        ValueError: a column that is not known.
    """
    pairs = [(item, item) if item in known else parse_column(item) for item in columns or known]
    for name, _ in pairs:
        if name not in known:
            raise ValueError(f"column '{name}' is not in {source}, which has: {', '.join(known)}")
    return pairs


@dataclass(frozen=True)
class Piece:
    """Rows [begin, end) of a row group of a pinned file."""

    file: PinnedFile
    group: ds.ParquetFileFragment
    begin: int
    end: int


def pieces_of(pinned: PinnedFiles, rank: int, world: int) -> Iterator[Piece]:
    """The rank's rows in file order; a file is opened when the iteration comes to it.

    Raises:
        ValueError: a file is not as it was pinned.
    """
    begin, end = row_range(sum(file.rows for file in pinned.files), rank, world)
    first = 0
    for file in pinned.files:
        if begin >= first + file.rows or end <= first:
            first += file.rows
            continue
        for group in pinned.open(file).split_by_row_group():
            # Not count_rows(): for one row group of a file it counts the whole file.
            size = group.row_groups[0].num_rows
            low, high = max(begin - first, 0), min(end - first, size)
            first += size
            if low < high:
                yield Piece(file, group, low, high)


def read_piece(
    pinned: PinnedFiles, piece: Piece, columns: Sequence[tuple[str, str]], batch_rows: int
) -> Iterator[pa.RecordBatch]:
    """Its rows, only `columns`, which select() gave."""
    names = [name for name, _ in columns]
    batches = piece.group.to_batches(pinned.schema, columns=names, batch_size=batch_rows)
    for batch in _slice_rows(batches, piece.begin, piece.end):
        yield batch.rename_columns([alias for _, alias in columns])


def _slice_rows(batches: Iterator[pa.RecordBatch], low: int, high: int) -> Iterator[pa.RecordBatch]:
    first = 0
    for batch in batches:
        begin, end = max(low - first, 0), min(high - first, batch.num_rows)
        if begin < end:
            yield batch.slice(begin, end - begin)
        first += batch.num_rows
        if first >= high:
            return


def main(arguments: Sequence[str] | None = None) -> int:
    """Feeds one rank's rows into the inherited ring; a failure reaches the ring's reader."""
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
                return 0  # its reader wants no more rows
    except Exception as error:  # whatever it is, the trainer must hear of it
        writer.fail(f"{type(error).__name__}: {error}")
        return 1
    writer.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
