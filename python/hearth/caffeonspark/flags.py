"""The command line of CaffeOnSpark: single-dash long flags, their defaults and help."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from numbers import Integral
from typing import Any, NoReturn

from hearth.errors import InvalidArgumentError
from hearth.native import _core


class FlagError(InvalidArgumentError):
    """A flag is unknown, lacks its value or has an invalid value. The message is one sentence."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise FlagError(message)


# The default of clusterSize: all executors.
ALL = -1


@dataclass(frozen=True)
class Flag:
    """A command-line flag and the attribute of Config that it sets."""

    flag: str  # empty: the attribute has no flag
    name: str  # the attribute's name
    default: Any  # a bool makes the flag a switch, a number makes it numeric
    help: str  # empty: only for the conversion tools, and refused for a run
    least: int | None = None  # minimum of a number; None: no limit
    most: int | None = None
    values: Sequence[str] = ()  # allowed values of a text; empty: any
    must_be: str = ""  # what `allows` requires of a text, for error messages
    allows: Callable[[str], bool] | None = None


_OWN_FLAGS = (
    Flag("conf", "proto_file", "", "solver prototxt, a local path on the driver"),
    Flag(
        "train", "is_training", False, "train; validates as well if the solver has a test interval"
    ),
    Flag(
        "test", "is_test", False, "run the TEST net over its source, write the means of its outputs"
    ),
    Flag("features", "features", "", "comma-separated blobs of the TEST net to extract"),
    Flag("label", "label", "", "label blob, appended to -features"),
    Flag("outputFormat", "output_format", "json", "Spark format of -features' DataFrame"),
    Flag("model", "model_path", "", "model to write (training) or to load (test, features)"),
    Flag("output", "output_path", "output", "DataFrame folder (-features) or text file (-test)"),
    Flag("persistent", "is_rdd_persistent", False, "persist the DataFrames of a training on disk"),
    Flag(
        "spill",
        "spill",
        "on",
        "spool the rows of Parquet files; off reads the files again in each epoch",
        values=("on", "off"),
    ),
    Flag("snapshot", "snapshot_state_file", "", ".solverstate to resume from; needs -weights"),
    Flag("weights", "snapshot_model_file", "", ".caffemodel of -snapshot, or to fine-tune from"),
    Flag("clusterSize", "cluster_size", ALL, "executors that train together (default: all)", 1),
    Flag(
        "maxRestarts",
        "max_restarts",
        3,
        "limit of restarts of lost ranks from the last snapshot",
        0,
    ),
    Flag(
        "logDir", "log_dir", "", "folder for TensorBoard's event file of a training, a path or URI"
    ),
    Flag(
        "ui", "ui", False, "serve a page with the training's curves on this host; prints its link"
    ),
    Flag(
        "lmdb_partitions",
        "lmdb_partitions",
        0,
        "parts in which -test and -features read a database",
        0,
    ),
    Flag("imageRoot", "image_root", "", ""),
    Flag("labelFile", "label_file", "", ""),
    Flag("captionFile", "caption_file", "", ""),
    Flag("captionLength", "caption_length", 20, ""),
    Flag("vocabSize", "vocab_size", -1, ""),
    Flag("imageCaptionDFDir", "image_caption_df_dir", "", ""),
    Flag("vocabDir", "vocab_dir", "", ""),
    Flag("embeddingDFDir", "embedding_df_dir", "", ""),
)

# Settings of the trainers, from the core's table.
SETTINGS = tuple(Flag(**setting) for setting in _core.settings())

FLAGS = _OWN_FLAGS + SETTINGS
# The flags whose values are also checked when an attribute of Config is set.
_CHECKED = {f.name: f for f in FLAGS if f in SETTINGS or f.values or f.least is not None}


def build_parser() -> argparse.ArgumentParser:
    """A parser of these flags that raises FlagError instead of ending the program."""
    parser = _Parser(prog="hearth.caffeonspark", allow_abbrev=False)
    for flag in FLAGS:
        if not flag.flag:
            continue
        names = (f"-{flag.flag}", f"--{flag.flag}")
        text, default = flag.help or argparse.SUPPRESS, flag.default
        if isinstance(default, bool):
            parser.add_argument(*names, dest=flag.name, action="store_true", help=text)
            continue
        if default not in ("", ALL) and text != argparse.SUPPRESS:
            text = f"{text} (default: {default})"
        parser.add_argument(
            *names, dest=flag.name, default=default, type=type(default), help=text, metavar="X"
        )
    return parser


def dict_to_arguments(flags: Mapping[str, Any]) -> list[str]:
    """Converts a dict of flags to a command line; keys may have dashes, and switches are booleans.

    Raises:
        FlagError: a switch has a value that is neither true nor false.
    """
    switches = {flag.flag for flag in FLAGS if isinstance(flag.default, bool)}
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


def parse_flags(
    arguments: Sequence[str], defaults: Mapping[str, Any] | None = None
) -> argparse.Namespace:
    """Parses a command line and checks everything that needs no file.

    `defaults`: defaults that differ in this program, by attribute.

    Raises:
        FlagError: a flag is invalid; the message is one sentence.
    """
    parser = build_parser()
    parser.set_defaults(**(defaults or {}))
    flags, unknown = parser.parse_known_args(list(arguments))
    if unknown:
        raise FlagError(_unknown_text(unknown[0], parser))
    for name, value in vars(flags).items():
        if (name, value) != ("cluster_size", ALL):
            check_value(name, value)
    if flags.snapshot_state_file and not flags.snapshot_model_file:
        raise FlagError("-snapshot also needs -weights, the .caffemodel of that state")
    return flags


def _unknown_text(argument: str, parser: argparse.ArgumentParser) -> str:
    if not argument.startswith("-"):
        return f"unexpected argument {argument!r}: flags begin with '-'"
    near = get_close_matches(argument, parser._option_string_actions, 1)
    return f"there is no flag {argument}" + (f"; did you mean {near[0]}?" if near else "")


def check_value(name: str, value: Any) -> None:
    """Raises FlagError if Config's attribute `name` cannot have this value."""
    flag = _CHECKED.get(name)
    if flag is None:
        return
    shown = f"-{flag.flag}" if flag.flag else name
    if flag.values and value not in flag.values:
        raise FlagError(f"{shown} is '{value}'; it must be {' or '.join(flag.values)}")
    _check_kind(shown, value, flag.default)
    if flag.least is not None and value < flag.least:
        raise FlagError(f"{shown} is {value}; it must be at least {flag.least}")
    if flag.most is not None and value > flag.most:
        raise FlagError(f"{shown} is {value}; it must be at most {flag.most}")
    if flag.allows and not flag.allows(value):
        raise FlagError(f"{shown} is '{value}'; it must be {flag.must_be}")


def _check_kind(name: str, value: Any, like: Any) -> None:
    """Raises FlagError unless the value has `like`'s kind: a switch, a number or text."""
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
    for flag in _OWN_FLAGS:
        if not flag.help and getattr(flags, flag.name) != flag.default:
            raise FlagError(
                f"-{flag.flag} is for CaffeOnSpark's conversion tools (hearth Binary2Sequence "
                "...); -train, -test and -features do not use it: leave it out"
            )
