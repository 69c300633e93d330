"""LMDBs and Datums for tests, written with the LMDB library itself, one record at a time."""

from __future__ import annotations

import ctypes
import ctypes.util
from pathlib import Path

_CREATE = 0x40000  # MDB_CREATE


class _Value(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("data", ctypes.c_char_p)]


def write_lmdb(folder: Path, records: dict[str, bytes]) -> str:
    """Writes the records as a database in `folder`; returns its path."""
    library = ctypes.CDLL(ctypes.util.find_library("lmdb") or "liblmdb.so.0")

    def call(name: str, *arguments: object) -> None:
        status = getattr(library, name)(*arguments)
        assert status == 0, f"{name} returned {status}"

    folder.mkdir(parents=True)
    env, transaction, database = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint()
    call("mdb_env_create", ctypes.byref(env))
    call("mdb_env_set_mapsize", env, ctypes.c_size_t(1 << 32))
    call("mdb_env_open", env, str(folder).encode(), 0, 0o644)
    call("mdb_txn_begin", env, None, 0, ctypes.byref(transaction))
    call("mdb_dbi_open", transaction, None, _CREATE, ctypes.byref(database))
    for name, record in records.items():
        key = _Value(len(name), name.encode())
        value = _Value(len(record), record)
        call("mdb_put", transaction, database, ctypes.byref(key), ctypes.byref(value), 0)
    call("mdb_txn_commit", transaction)
    library.mdb_env_close(env)
    return str(folder)


def datum(data: bytes, label: int, shape: tuple[int, int, int], encoded: bool = False) -> bytes:
    """A Datum in protobuf's binary format; `shape`: channels, height, width."""
    numbers = [(number + 1, size) for number, size in enumerate(shape)]
    parts = [_varint(number << 3) + _varint(size) for number, size in numbers]
    parts.append(_varint(4 << 3 | 2) + _varint(len(data)) + data)
    parts.append(_varint(5 << 3) + _varint(label))
    parts.append(_varint(7 << 3) + _varint(int(encoded)))
    return b"".join(parts)


def _varint(number: int) -> bytes:
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*parts, number])
