"""Serves com.yahoo.tensorflowonspark's TFModel, DFUtil and Inference."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from hearth.errors import invalid
from hearth.jvm.answers import Answer, Call
from hearth.spark import session as spark_session
from hearth.tensorflowonspark import dfutil
from hearth.tensorflowonspark.pipeline import TFModel

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise invalid(f"Inference: {message}")


def _transform(call: Call) -> DataFrame:
    return _model(call.arguments).transform(call.frames[0])


def _model(arguments: Mapping[str, Any]) -> TFModel:
    model = TFModel({}).setExportDir(arguments["model"]).setTagSet(arguments["tag"])
    model.setBatchSize(arguments["batchSize"]).setInputMapping(arguments["inputMapping"])
    return model.setOutputMapping(arguments["outputMapping"])


def _load(call: Call) -> DataFrame:
    arguments = call.arguments
    return dfutil.loadTFRecords(call.session, arguments["folder"], arguments["binary"])


def _save(call: Call) -> None:
    dfutil.saveAsTFRecords(call.frames[0], call.arguments["folder"])


def inference(arguments: Sequence[str]) -> int:
    """The program Inference: reads TFRecord files, and writes its outputs as JSON lines to a
    folder. Returns the exit status.

    Raises:
        ValueError: an invalid flag.
    """
    flags = _flags(arguments)
    spark = spark_session.start("Inference")
    failed = True
    try:
        hint = _hint(flags.schema_hint)
        binary = [name for name, kind in hint.items() if kind == "binary"]
        rows = dfutil.loadTFRecords(spark, flags.input, binary)
        for name, kind in hint.items():
            rows = rows.withColumn(name, rows[name].cast(kind))
        mappings = {
            "inputMapping": json.loads(flags.input_mapping),
            "outputMapping": json.loads(flags.output_mapping),
        }
        model = {"model": flags.export_dir, "tag": "serve", "batchSize": flags.batch_size}
        _model(model | mappings).transform(rows).write.json(flags.output)
        failed = False
    finally:
        spark_session.stop(spark, failed)
    return 0


def _flags(arguments: Sequence[str]) -> argparse.Namespace:
    parser = _Parser(prog="Inference", allow_abbrev=False)
    for name in ("export_dir", "input", "output", "input_mapping", "output_mapping"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--schema_hint", default="")
    parser.add_argument("--batch_size", type=int, default=128)
    parser.add_argument("--verbose", action="store_true")
    return parser.parse_args(list(arguments))


def _hint(text: str) -> dict[str, str]:
    """The type of each column of a schema such as `struct<a:int,b:array<float>>`."""
    from pyspark.sql.types import StructType, _parse_datatype_string

    if not text:
        return {}
    struct = _parse_datatype_string(text)
    if not isinstance(struct, StructType):
        raise invalid(f"--schema_hint is {text}; it must be struct<NAME:TYPE,...>")
    return {field.name: field.dataType.simpleString() for field in struct.fields}


ANSWERS: dict[str, Answer] = {"transform": _transform, "load": _load, "save": _save}
