"""The content of a saved model's files as a hash."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from hearth.files.uri import local_path

# What TensorFlow reads of a SavedModel's folder; a program may keep checkpoints beside it.
_PARTS = ("saved_model.pb", "saved_model.pbtxt", "variables", "assets", "assets.extra")
_READ_BYTES = 4 << 20

_known: dict[str, tuple[list[Any], str]] = {}  # files' states and hash, by path


def digest(path: str) -> str:
    """SHA-256 of a SavedModel or `.keras` file. The files are read again only when their sizes or
    times have changed."""
    import tensorflow as tf

    root = (local_path(path) or path).rstrip("/")
    files = sorted(_files(root))
    stats = [tf.io.gfile.stat(file) for file in files]
    state = [(file, s.length, s.mtime_nsec) for file, s in zip(files, stats, strict=True)]
    if path not in _known or _known[path][0] != state:
        _known[path] = state, _hashed(root, state)
    return _known[path][1]


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
        # A copy elsewhere is the same model.
        found.update(f"{file.removeprefix(root)}\0{length}\0".encode())
        with tf.io.gfile.GFile(file, "rb") as opened:
            while block := opened.read(_READ_BYTES):
                found.update(block)
    return found.hexdigest()
