"""The command line of CaffeOnSpark: single-dash long flags, their defaults and help."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any, NoReturn

from hearth.errors import InvalidArgumentError
from hearth.native import _core


class FlagError(InvalidArgumentError):
    """An unknown flag, one without its value, or with an invalid one; one sentence."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise FlagError(message)


# The default of clusterSize.
ALL = -1

# (flag, attribute of Config, default, help). The default's type determines switches and numbers; a
# flag without help is for CaffeOnSpark's conversion tools, and is refused for a run.
_OWN_FLAGS: tuple[tuple[str, str, Any, str], ...] = (
    ("conf", "proto_file", "", "solver prototxt, a local path on the driver"),
    ("train", "is_training", False, "train; validates as well if the solver has a test interval"),
    ("test", "is_test", False, "run the TEST net over its source, write the means of its outputs"),
    ("features", "features", "", "comma-separated blobs of the TEST net to extract"),
    ("label", "label", "", "label blob, appended to -features"),
    ("outputFormat", "output_format", "json", "Spark format of -features' DataFrame"),
    ("model", "model_path", "", "model to write (training) or to load (test, features)"),
    ("output", "output_path", "output", "DataFrame folder (-features) or text file (-test)"),
    ("persistent", "is_rdd_persistent", False, "persist the DataFrames of a training on disk"),
    ("spill", "spill", "on", "of Parquet files: off reads them in each epoch, without a spool"),
    ("snapshot", "snapshot_state_file", "", ".solverstate to resume from; needs -weights"),
    ("weights", "snapshot_model_file", "", ".caffemodel of -snapshot, or to fine-tune from"),
    ("clusterSize", "cluster_size", ALL, "executors that train together (default: all)"),
    ("maxRestarts", "max_restarts", 3, "limit of restarts of lost ranks from the last snapshot"),
    ("logDir", "log_dir", "", "folder for TensorBoard's event file of a training, a path or URI"),
    ("ui", "ui", False, "serve a page with the training's curves on this host; prints its link"),
    ("maxBadRecords", "max_bad_records", "", "invalid rows allowed: 10, or a fraction: 0.01"),
    ("lmdb_partitions", "lmdb_partitions", 0, "parts in which -test and -features read a database"),
    ("imageRoot", "image_root", "", ""),
    ("labelFile", "label_file", "", ""),
    ("captionFile", "caption_file", "", ""),
    ("captionLength", "caption_length", 20, ""),
    ("vocabSize", "vocab_size", -1, ""),
    ("imageCaptionDFDir", "image_caption_df_dir", "", ""),
    ("vocabDir", "vocab_dir", "", ""),
    ("embeddingDFDir", "embedding_df_dir", "", ""),
)

# Minimum values of numeric flags above.
_LEAST = {
    "cluster_size": ("clusterSize", 1),
    "max_restarts": ("maxRestarts", 0),
    "lmdb_partitions": ("lmdb_partitions", 0),
}

# Allowed values of text flags above.
_VALUES = {"spill": ("spill", ("on", "off"))}

# Flags shared with the trainers: one table with the core.
SETTINGS: tuple[dict[str, Any], ...] = tuple(_core.settings())

FLAGS = _OWN_FLAGS + tuple(
    (s["flag"], s["name"], s["default"], s["help"]) for s in SETTINGS if s["flag"]
)


def build_parser() -> argparse.ArgumentParser:
    """The parser of the flags above; its errors are FlagError, never an exit."""
    parser = _Parser(prog="hearth.caffeonspark", allow_abbrev=False)
    for flag, attribute, default, text in FLAGS:
        names = (f"-{flag}", f"--{flag}")
        text = text or argparse.SUPPRESS
        if isinstance(default, bool):
            parser.add_argument(*names, dest=attribute, action="store_true", help=text)
            continue
        if default not in ("", ALL) and text != argparse.SUPPRESS:
            text = f"{text} (default: {default})"
        parser.add_argument(
            *names, dest=attribute, default=default, type=type(default), help=text, metavar="X"
        )
    return parser


def dict_to_arguments(flags: Mapping[str, Any]) -> list[str]:
    """Config's dict form as a command line: keys with or without dash, switches as booleans.

    Raises:
        FlagError: a switch has a value that is neither true nor false.
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
            raise FlagError(f"-{name} is a switch: use True or False, not '{value}'")
    return arguments


def parse_bad_records(text: str) -> tuple[int, float]:
    """`-maxBadRecords` as (rows, fraction) of an epoch; -1: no limit.

    An integer is a number of rows; with a point or an exponent it is a fraction of all rows.

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
        f"-maxBadRecords is '{text}'; it must be a number of rows (10) or a fraction of them (0.01)"
    )


def parse_flags(
    arguments: Sequence[str], defaults: Mapping[str, Any] | None = None
) -> argparse.Namespace:
    """Parses a command line and checks everything that needs no file.

    `defaults`: a program's different defaults, by attribute.

    Raises:
        FlagError: one sentence for the user.
    """
    parser = build_parser()
    parser.set_defaults(**(defaults or {}))
    flags = parser.parse_args(list(arguments))
    for name, value in vars(flags).items():
        if (name, value) != ("cluster_size", ALL):
            check_value(name, value)
    if flags.snapshot_state_file and not flags.snapshot_model_file:
        raise FlagError("-snapshot needs -weights too: the .caffemodel of that state")
    return flags


def check_value(name: str, value: Any) -> None:
    """Raises FlagError if Config's attribute `name` cannot have this value."""
    if name in _LEAST:
        flag, least = _LEAST[name]
        _check_kind(f"-{flag}", value, least)
        if value < least:
            raise FlagError(f"-{flag} is {value}; it must be at least {least}")
    elif name in _VALUES:
        flag, allowed = _VALUES[name]
        _check_choice(f"-{flag}", value, allowed)
    elif name == "max_bad_records":
        parse_bad_records(str(value))
    elif setting := next((row for row in SETTINGS if row["name"] == name), None):
        _check_setting(setting, value)


def _check_setting(setting: Mapping[str, Any], value: Any) -> None:
    name = f"-{setting['flag']}" if setting["flag"] else setting["name"]
    allowed, least, most = setting["values"], setting["least"], setting["most"]
    if allowed:
        _check_choice(name, value, allowed)
    _check_kind(name, value, setting["default"])
    if most and value < least:
        raise FlagError(f"{name} is {value}; it must be at least {least}")
    if most and value > most:
        raise FlagError(f"{name} is {value}; it must be at most {most}")


def _check_choice(name: str, value: Any, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise FlagError(f"{name} is '{value}'; it is {' or '.join(allowed)}")


def _check_kind(name: str, value: Any, like: Any) -> None:
    """Raises FlagError if the value is not of the kind of `like`: a switch, number or text."""
    if isinstance(like, bool):
        fits, kind = isinstance(value, bool), "True or False"
    elif isinstance(like, int):
        fits, kind = isinstance(value, Integral) and not isinstance(value, bool), "a whole number"
    else:
        fits, kind = isinstance(value, str), "a text"
    if not fits:
        raise FlagError(f"{name} is {value!r}; it must be {kind}")


def refuse_tool_flags(flags: argparse.Namespace) -> None:
    """Raises FlagError for a flag that no training, test or extraction uses."""
    for flag, attribute, default, text in _OWN_FLAGS:
        if not text and getattr(flags, attribute) != default:
            raise FlagError(
                f"-{flag} is for CaffeOnSpark's conversion tools (hearth Binary2Sequence ...); "
                "-train, -test and -features do not use it: leave it out"
            )
