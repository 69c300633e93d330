"""The command line of CaffeOnSpark: single-dash long flags, their defaults and meanings."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn


class FlagError(ValueError):
    """A flag that is unknown, lacks its value or has a wrong one; one sentence."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise FlagError(message)


# (flag, attribute of Config, default, help); switches and numbers follow from the default's type.
FLAGS: tuple[tuple[str, str, Any, str], ...] = (
    ("conf", "proto_file", "", "solver prototxt, a local path on the driver"),
    ("train", "is_training", False, "train; validates as well if the solver has a test interval"),
    ("test", "is_test", False, "run the TEST net over its source, write the means of its outputs"),
    ("features", "features", "", "comma-separated blobs of the TEST net to extract"),
    ("label", "label", "", "label blob, appended to -features"),
    ("outputFormat", "output_format", "json", "Spark format of -features' DataFrame"),
    ("model", "model_path", "", "model to write (training) or to load (test, features)"),
    ("output", "output_path", "output", "DataFrame folder (-features) or text file (-test)"),
    ("devices", "devices", 1, "solver threads or GPUs per executor"),
    ("persistent", "is_rdd_persistent", False, "accepted; rows are spilled by the trainers anyway"),
    ("snapshot", "snapshot_state_file", "", ".solverstate to resume from; needs -weights"),
    ("weights", "snapshot_model_file", "", ".caffemodel of -snapshot, or to fine-tune from"),
    ("connection", "connection", "infiniband", "ethernet or infiniband"),
    ("resize", "resize", False, "resize decoded images to the layer's height and width"),
    ("clusterSize", "cluster_size", 1, "number of executors that train together"),
    ("maxRestarts", "max_restarts", 3, "how often lost ranks are replaced, from the last snapshot"),
    ("onNaN", "on_nan", "continue", "a loss that is no number: stop, or continue with a warning"),
    ("onOtherRows", "on_other_rows", "restartEpoch", "at a resume: restartEpoch, or fail"),
    ("precision", "precision", "float32", "of products in convolutions: float32 or bf16"),
    ("maxBadRecords", "max_bad_records", "", "unusable rows allowed: 10, or 0.01 of them"),
    ("lmdb_partitions", "lmdb_partitions", 0, "partitions of an LMDB source (-clusterSize)"),
    ("imageRoot", "image_root", "", "tools: image folder"),
    ("labelFile", "label_file", "", "tools: label list"),
    ("captionFile", "caption_file", "", "tools: COCO captions"),
    ("captionLength", "caption_length", 20, "tools: words per caption"),
    ("vocabSize", "vocab_size", -1, "tools: most frequent words kept, -1: all"),
    ("imageCaptionDFDir", "image_caption_df_dir", "", "tools: folder under -output"),
    ("vocabDir", "vocab_dir", "", "tools: folder under -output"),
    ("embeddingDFDir", "embedding_df_dir", "", "tools: folder under -output"),
)


def build_parser() -> argparse.ArgumentParser:
    """The parser of the flags above; its errors are FlagError, never an exit."""
    parser = _Parser(prog="hearth.caffeonspark", allow_abbrev=False)
    for flag, attribute, default, text in FLAGS:
        names = (f"-{flag}", f"--{flag}")
        if isinstance(default, bool):
            parser.add_argument(*names, dest=attribute, action="store_true", help=text)
            continue
        text = f"{text} (default: {default})" if default != "" else text
        parser.add_argument(
            *names, dest=attribute, default=default, type=type(default), help=text, metavar="X"
        )
    return parser


def dict_to_arguments(flags: Mapping[str, Any]) -> list[str]:
    """Config's dict form as a command line: keys with or without dash, switches by truth value.

    Raises:
        FlagError: the key of a switch has a value that is neither true nor false.
    """
    switches = {flag for flag, _, default, _ in FLAGS if isinstance(default, bool)}
    arguments: list[str] = []
    for key, value in flags.items():
        name = key.lstrip("-")
        if name not in switches:
            arguments.append(f"-{name}={value}")
        elif str(value).lower() in ("", "true", "none", "1"):
            arguments.append(f"-{name}")
        elif str(value).lower() not in ("false", "0"):
            raise FlagError(f"-{name} is a switch: give True or False, not '{value}'")
    return arguments


def parse_bad_records(text: str) -> tuple[int, float]:
    """`-maxBadRecords` as (rows, fraction) of an epoch; -1 stands for no limit.

    Digits alone are rows; with a point or an exponent they are a fraction of all rows.

    Raises:
        FlagError: it is neither.
    """
    try:
        if not text:
            return -1, -1.0
        if text.isdecimal():
            return int(text), -1.0
        if 0 <= float(text) <= 1:
            return -1, float(text)
    except ValueError:
        pass
    raise FlagError(
        f"-maxBadRecords is '{text}'; it is a number of rows (10) or a fraction of them (0.01)"
    )


def parse_flags(arguments: Sequence[str]) -> argparse.Namespace:
    """Parses a command line and checks what can be checked without any file.

    Raises:
        FlagError: one sentence for the user.
    """
    flags = build_parser().parse_args(list(arguments))
    if flags.cluster_size < 1:
        raise FlagError(f"-clusterSize is {flags.cluster_size}; it must be at least 1")
    if flags.devices < 1:
        raise FlagError(f"-devices is {flags.devices}; it must be at least 1")
    if flags.max_restarts < 0:
        raise FlagError(f"-maxRestarts is {flags.max_restarts}; it must be at least 0")
    if flags.on_nan not in ("stop", "continue"):
        raise FlagError(f"-onNaN is '{flags.on_nan}'; it is stop or continue")
    if flags.on_other_rows not in ("restartEpoch", "fail"):
        raise FlagError(f"-onOtherRows is '{flags.on_other_rows}'; it is restartEpoch or fail")
    if flags.precision not in ("float32", "bf16"):
        raise FlagError(f"-precision is '{flags.precision}'; it is float32 or bf16")
    parse_bad_records(flags.max_bad_records)
    if flags.connection not in ("ethernet", "infiniband"):
        raise FlagError(f"-connection is '{flags.connection}'; it is ethernet or infiniband")
    if flags.snapshot_state_file and not flags.snapshot_model_file:
        raise FlagError("-snapshot needs -weights too: the .caffemodel of that state")
    return flags
