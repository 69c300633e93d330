"""Hashes the files of a saved model."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from typing import Any

from hearth.files.uri import local_path

# Files that TensorFlow reads in a SavedModel's folder. Others, such as a program's checkpoints, are
# not hashed.
_PARTS = ("saved_model.pb", "saved_model.pbtxt", "variables", "assets", "assets.extra")
_READ_BYTES = 4 << 20
# Age from which a file's modification time is reliable. A younger file may be modified again
# without a new modification time, because timestamps are coarse and clocks differ.
_SETTLED_NS = 10_000_000_000

_known: dict[str, tuple[list[Any], str]] = {}  # states and hash of files, by path


def digest(path: str) -> str:
    """SHA-256 of a SavedModel or `.keras` file. Files that have been stable for a while are read
    again only when their sizes or times have changed."""
    import tensorflow as tf

    root = (local_path(path) or path).rstrip("/")
    files = sorted(_files(root))
    stats = [tf.io.gfile.stat(file) for file in files]
    state = [(file, s.length, s.mtime_nsec) for file, s in zip(files, stats, strict=True)]
    if path in _known and _known[path][0] == state:
        return _known[path][1]
    begun = time.time_ns()
    found = _hashed(root, state)
    if all(written < begun - _SETTLED_NS for _, _, written in state):
        _known[path] = state, found
    return found


def _files(root: str) -> Iterator[str]:
    import tensorflow as tf

    if not tf.io.gfile.isdir(root):
        if tf.io.gfile.exists(root):
            yield root
        return
    for part in _PARTS:
        name = f"{root}/{part}"
        for folder, _, files in tf.io.gfile.walk(name):
            yield from (f"{folder.rstrip('/')}/{file}" for file in files)
        if tf.io.gfile.exists(name) and not tf.io.gfile.isdir(name):
            yield name


def _hashed(root: str, state: list[Any]) -> str:
    import tensorflow as tf

    found = hashlib.sha256()
    for file, length, _ in state:
        # Hashes paths without `root`, because a copy in another folder is the same model.
        found.update(f"{file.removeprefix(root)}\0{length}\0".encode())
        with tf.io.gfile.GFile(file, "rb") as opened:
            while block := opened.read(_READ_BYTES):
                found.update(block)
    return found.hexdigest()
