"""Hadoop's jars for the tests: Maven downloads them once into the user's cache."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

_POM = Path(__file__).with_name("pom.xml")
_MAVEN = Path(__file__).parents[2] / "tools" / "maven.sh"
_FETCH_S = 900.0


def version() -> str:
    """The version of Hadoop that pom.xml names."""
    found = re.search(r"<hadoop\.version>(.+)</hadoop\.version>", _POM.read_text(encoding="utf-8"))
    assert found is not None, f"{_POM} names no hadoop.version"
    return found[1]


def jars() -> Path:
    """The folder of the jars; downloads them (100 MB) if they are missing.

    It is $HEARTH_HADOOP_JARS, or `hearth/hadoop-VERSION` in $XDG_CACHE_HOME (~/.cache).

    Raises:
        RuntimeError: Maven is not installed, or could not fetch them.
    """
    if named := os.environ.get("HEARTH_HADOOP_JARS"):
        return Path(named)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hearth"
    folder = cache / f"hadoop-{version()}"
    if folder.is_dir():
        return folder
    cache.mkdir(parents=True, exist_ok=True)
    with open(cache / "hadoop.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            _fetch(folder)
    return folder


def _fetch(folder: Path) -> None:
    if shutil.which("mvn") is None:
        raise RuntimeError("Hadoop's jars are fetched by Maven: apt-get install maven")
    print(f"hadoop: fetching {version()} into {folder} (100 MB, once)", file=sys.stderr, flush=True)
    part = folder.with_name(folder.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    status, said = _run_maven(
        "-q", "-B", "-f", str(_POM), "dependency:copy-dependencies",
        f"-DoutputDirectory={part}", "-DincludeScope=runtime",
    )  # fmt: skip
    if status:
        said = said.partition("[ERROR] ")[2].partition("\n")[0] or said[-4000:]
        raise RuntimeError(f"Maven could not fetch Hadoop's jars of {_POM}: {said}")
    part.rename(folder)


def _run_maven(*arguments: str) -> tuple[int, str]:
    """Runs Maven; returns its status and output. On any exit its JVM is killed as well, because it
    would otherwise write into the next run's folder.
    """
    maven = subprocess.Popen(
        [str(_MAVEN), *arguments],
        stdout=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        said, _ = maven.communicate(timeout=_FETCH_S)
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"Maven has not fetched Hadoop's jars within {_FETCH_S:.0f} s") from None
    finally:
        with suppress(ProcessLookupError):
            os.killpg(maven.pid, signal.SIGKILL)
        maven.wait()
    return maven.returncode, said


if __name__ == "__main__":
    try:
        print(jars())
    except RuntimeError as error:
        sys.exit(f"hadoop: {error}")
