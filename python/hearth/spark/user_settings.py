"""Merges the user's Spark settings with Hearth's."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

DRIVER_OPTIONS = "spark.driver.extraJavaOptions"
_OPTIONS = (DRIVER_OPTIONS, "spark.executor.extraJavaOptions")
# Options that select a garbage collector; a JVM does not start with two of them.
_COLLECTOR = re.compile(r"-XX:\+Use\w+GC\b")


def user_settings() -> dict[str, str]:
    """The settings of spark-defaults.conf and of $PYSPARK_SUBMIT_ARGS, which take precedence."""
    file, given = _defaults_file(), {}
    words = iter(shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "")))
    for word in words:  # argparse does not accept values that begin with a dash
        name, equals, value = word.partition("=")
        if name not in ("--conf", "-c", "--driver-java-options", "--properties-file"):
            continue
        value = value if equals else next(words, "")
        if name == "--properties-file":
            file = Path(value)
        elif name == "--driver-java-options":
            given[DRIVER_OPTIONS] = value
        else:
            key, _, given_value = value.partition("=")
            given[key] = given_value
    return _properties(file) | given


def with_users(ours: Mapping[str, str], user: Mapping[str, str]) -> dict[str, str]:
    """Hearth's settings, with the user's values where the user set them; joins JVM options."""
    merged = {key: user.get(key, value) for key, value in ours.items()}
    return merged | joined_options(ours, user)


def joined_options(ours: Mapping[str, str], user: Mapping[str, str]) -> dict[str, str]:
    """Joins JVM options: Hearth's, then the user's, so that the user's take precedence."""
    found = {}
    for key in _OPTIONS:
        if key in ours:
            own, theirs = ours[key], user.get(key, "")
            if _COLLECTOR.search(theirs):
                own = " ".join(_COLLECTOR.sub("", own).split())
            found[key] = f"{own} {theirs}".strip()
    return found


def _defaults_file() -> Path:
    home = os.environ.get("SPARK_HOME", "")
    return Path(os.environ.get("SPARK_CONF_DIR") or Path(home, "conf")) / "spark-defaults.conf"


def _properties(file: Path) -> dict[str, str]:
    """Parses a file of Java properties, one per line: `key value` or `key=value`."""
    found = {}
    try:
        lines: Sequence[str] = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return {}
    for line in lines:
        if match := re.match(r"\s*([^#!\s=:][^\s=:]*)(?:\s*[=:]\s*|\s+)(.*)", line):
            found[match[1]] = match[2].strip()
    return found
