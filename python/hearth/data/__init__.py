"""Datasets of files that ranks read directly, and of files that Spark reads.

`parquet`, `orc`, `arrow`, `tfrecord`, `sequence_file`, `lmdb` and `leveldb` create sources: the
driver pins the list of files, and each rank reads its splits without Spark. `delta` and `iceberg`
do the same for one version of a table, and `table` for a table in Spark's catalog. With `csv` and
`json`, Spark reads the files. Any of these sources can be passed as a dataset instead of a
DataFrame.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hearth import on_demand

if TYPE_CHECKING:
    from hearth.data.image import image as image
    from hearth.data.sources import arrow as arrow
    from hearth.data.sources import csv as csv
    from hearth.data.sources import delta as delta
    from hearth.data.sources import iceberg as iceberg
    from hearth.data.sources import json as json
    from hearth.data.sources import leveldb as leveldb
    from hearth.data.sources import lmdb as lmdb
    from hearth.data.sources import orc as orc
    from hearth.data.sources import parquet as parquet
    from hearth.data.sources import sequence_file as sequence_file
    from hearth.data.sources import table as table
    from hearth.data.sources import tfrecord as tfrecord

_HOMES = {
    ".sources": "parquet orc arrow tfrecord sequence_file lmdb leveldb csv json "
    "delta iceberg table",
    ".image": "image",
}
if not TYPE_CHECKING:
    __all__, __getattr__, __dir__ = on_demand(__name__, _HOMES)
    # Imported eagerly, because the function has the same name as its module.
    from hearth.data.image import image as image
