"""Spark's settings as its user has made them, and ours beside them."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

DRIVER_OPTIONS = "spark.driver.extraJavaOptions"
_OPTIONS = (DRIVER_OPTIONS, "spark.executor.extraJavaOptions")
# A JVM with two of them does not start.
_COLLECTOR = re.compile(r"-XX:\+Use\w+GC\b")


def user_settings() -> dict[str, str]:
    """What spark-defaults.conf says, and $PYSPARK_SUBMIT_ARGS, which comes before it."""
    file, given = _defaults_file(), {}
    words = iter(shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "")))
    for word in words:  # argparse takes no value that begins with a dash
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
    """Our settings where the user has none of the name; options for a JVM come together."""
    merged = {key: user.get(key, value) for key, value in ours.items()}
    return merged | joined_options(ours, user)


def joined_options(ours: Mapping[str, str], user: Mapping[str, str]) -> dict[str, str]:
    """Options for the JVMs: ours, then the user's, of which the last one counts."""
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
    """A file of Java properties, one in a line: `key value` or `key=value`."""
    found = {}
    try:
        lines: Sequence[str] = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return {}
    for line in lines:
        if match := re.match(r"\s*([^#!\s=:][^\s=:]*)(?:\s*[=:]\s*|\s+)(.*)", line):
            found[match[1]] = match[2].strip()
    return found
