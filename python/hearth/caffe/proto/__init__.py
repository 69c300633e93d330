"""`caffe.proto.caffe_pb2`: Caffe's messages as protobuf classes, if protobuf is installed."""

from __future__ import annotations

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    # Imported on demand: nets and solvers do not need protobuf.
    if name == "caffe_pb2":
        return importlib.import_module("hearth.caffe.proto.caffe_pb2")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
