"""Delta and Iceberg tables over existing data files, whose logs the tables' libraries write."""

from __future__ import annotations

import base64
import io
import json
import os
import string
import struct
import zlib
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, Schema
from deltalake.transaction import AddAction
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.memory import InMemoryCatalog
from pyiceberg.io import FileIO, InputFile, OutputFile
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestWriterV2,
)
from pyiceberg.table import Table
from pyiceberg.typedef import Record
from pyroaring import BitMap

_ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
_RFC1924 = _ALPHABET + "!#$%&()*+-;<=>?@^_`{|}~"
_Z85 = string.digits + string.ascii_lowercase + string.ascii_uppercase + ".-:+=^!/*?&<>()[]{}@%$#"


def write_delta_log(folder: Path, uri: str) -> None:
    """Writes version 0 of a table with the folder's Parquet files."""
    files = sorted(folder.iterdir())
    schema = Schema.from_arrow(pq.read_schema(files[0]))
    table = DeltaTable.create(str(folder), schema)
    added = []
    for file in files:
        rows = pq.read_metadata(file).num_rows
        stats = f'{{"numRecords": {rows}}}'
        added.append(AddAction(file.name, file.stat().st_size, {}, 1, True, stats))
    table.create_write_transaction(added, "append", schema)


def write_iceberg_log(folder: Path, uri: str) -> None:
    """Writes a table with the folder's Parquet files, which are moved to `uri` afterwards."""
    files = sorted(folder.iterdir())
    catalog = iceberg_catalog(uri, folder)
    table = catalog.create_table("db.rows", pq.read_schema(files[0]), location=uri)
    table.add_files([f"{uri}/{file.name}" for file in files])
    write_hint(folder, catalog.load_table("db.rows").metadata_location)


def write_hint(folder: Path, metadata: str) -> None:
    """Writes the name of the newest metadata file where a table without a catalog needs it."""
    (folder / "metadata" / "version-hint.text").write_text(metadata.rpartition("/")[2])


def iceberg_catalog(uri: str, folder: Path) -> Catalog:
    """An in-memory catalog for tables below `uri`; `folder` stores their files."""
    where = {"py-io-impl": "table_logs.PlacedFiles", "uri_there": uri, "here": str(folder)}
    catalog = InMemoryCatalog("tests", warehouse=uri, **where)
    catalog.create_namespace("db")
    return catalog


class PlacedFiles(FileIO):
    """Stores files in a local folder, although their URIs are others."""

    def __init__(self, properties: dict[str, str]):
        super().__init__(properties)

    def path(self, location: str) -> str:
        return location.replace(self.properties["uri_there"], self.properties["here"], 1)

    def new_input(self, location: str) -> InputFile:
        return _Placed(location, self)

    def new_output(self, location: str) -> OutputFile:
        return _Placed(location, self)

    def delete(self, location: Any) -> None:
        os.remove(self.path(location))


class _Placed(InputFile, OutputFile):
    def __init__(self, location: str, files: PlacedFiles):
        super().__init__(location)
        self.files, self.path = files, files.path(location)

    def __len__(self) -> int:
        return os.path.getsize(self.path)

    def exists(self) -> bool:
        return os.path.exists(self.path)

    def open(self, seekable: bool = True) -> Any:
        return pa.OSFile(self.path)

    def create(self, overwrite: bool = False) -> Any:
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        return pa.OSFile(self.path, "wb")

    def to_input_file(self) -> InputFile:
        return self


def last_actions(folder: str, kind: str) -> list[dict[str, Any]]:
    """The newest actions of a kind (add, metaData, protocol) in a Delta log."""
    for log in sorted(Path(folder, "_delta_log").glob("*.json"), reverse=True):
        actions = [json.loads(line) for line in log.read_text().splitlines()]
        if found := [action for action in actions if kind in action]:
            return found
    return []


def add_commit(folder: str, actions: list[dict[str, Any]]) -> None:
    """Writes the next version of a Delta table."""
    version = DeltaTable(folder).version() + 1
    lines = [json.dumps(action) for action in actions]
    Path(folder, "_delta_log", f"{version:020}.json").write_text("\n".join(lines))


def delete_rows_of_delta(folder: str, rows: list[int]) -> None:
    """Deletes the rows with these indices from each current file, by deletion vectors."""
    bitmap = BitMap(rows).serialize()
    vector = struct.pack("<IQI", 1681511377, 1, 0) + bitmap
    inline = base64.b85encode(vector + bytes(-len(vector) % 4)).decode()
    # Base 85 with ZeroMQ's alphabet instead of RFC 1924's.
    inline = inline.translate(str.maketrans(_RFC1924, _Z85))
    actions = []
    for action in last_actions(folder, "add"):
        add = action["add"]
        removed = {"path": add["path"], "deletionTimestamp": 1, "dataChange": True}
        if add.get("deletionVector"):
            removed["deletionVector"] = add["deletionVector"]
        described = {"storageType": "i", "pathOrInlineDv": inline}
        described |= {"sizeInBytes": len(vector), "cardinality": len(rows)}
        actions += [{"remove": removed}, {"add": add | {"deletionVector": described}}]
    add_commit(folder, actions)


def add_delete_file(table: Table, data_file: str, kind: str, content: bytes, rows: int) -> None:
    """Commits a snapshot with a delete file, which pyiceberg itself cannot write.

    Args:
        data_file: the file whose rows are deleted.
        kind: "positions", "equality" or "vectors".
        content: the delete file's bytes.
        rows: the number of deleted rows.
    """
    location = f"{table.location()}/data/{kind}-{len(table.snapshots())}"
    with table.io.new_output(location).create() as file:
        file.write(content)
    contents = {"equality": DataFileContent.EQUALITY_DELETES}
    described = DataFile.from_args(
        _table_format_version=2,
        content=contents.get(kind, DataFileContent.POSITION_DELETES),
        file_path=location,
        file_format=FileFormat.PUFFIN if kind == "vectors" else FileFormat.PARQUET,
        partition=Record(),
        record_count=rows,
        file_size_in_bytes=len(content),
        equality_ids=[1] if kind == "equality" else None,
    )
    described.spec_id = table.spec().spec_id
    with (
        patch.object(ManifestWriterV2, "content", lambda self: ManifestContent.DELETES),
        table.transaction() as change,
        change.update_snapshot().fast_append() as append,
    ):
        append.append_data_file(described)


def position_deletes(data_file: str, rows: list[int]) -> bytes:
    """A Parquet file that lists deleted rows."""
    content = io.BytesIO()
    table = pa.table({"file_path": [data_file] * len(rows), "pos": pa.array(rows, pa.int64())})
    pq.write_table(table, content)
    return content.getvalue()


def deletion_vectors(data_file: str, rows: list[int]) -> bytes:
    """A Puffin file with a deletion vector."""
    bitmap = struct.pack("<QI", 1, 0) + BitMap(rows).serialize()
    inner = b"\xd1\xd3\x39\x64" + bitmap
    blob = struct.pack(">I", len(inner)) + inner + struct.pack(">I", zlib.crc32(inner))
    described = {
        "type": "deletion-vector-v1",
        "fields": [],
        "snapshot-id": -1,
        "sequence-number": -1,
        "offset": 4,
        "length": len(blob),
        "properties": {"referenced-data-file": data_file, "cardinality": str(len(rows))},
    }
    footer = json.dumps({"blobs": [described], "properties": {}}).encode()
    return b"PFA1" + blob + b"PFA1" + footer + struct.pack("<I", len(footer)) + bytes(4) + b"PFA1"
