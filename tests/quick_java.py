"""A Java that starts Spark quickly, for the tests, which start some hundred JVMs.

`quick_java.py` creates it in build/java: links to this machine's Java, with a script as bin/java.
The script adds options for JVMs that live for a minute, and for Spark's programs an archive of
their classes, read and verified beforehand (CDS). If the archive does not match (another Spark,
another class path), the JVM loads its classes as usual.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

_HOME = Path(__file__).resolve().parents[1] / "build" / "java"

# Spark operations that tests often use, so that their classes are loaded.
_PROGRAM = """
import sys
from pyspark.ml.classification import LogisticRegression
from pyspark.ml.functions import array_to_vector
from hearth.spark import session

spark = session.start("classes", executors=2)
folder = sys.argv[1]
frame = spark.range(0, 100, 1, 4).selectExpr("id", "double(id % 2) label", "array(double(id)) x")
frame.repartition(2).write.parquet(f"{folder}/rows")
rows = spark.read.parquet(f"{folder}/rows").select("label", array_to_vector("x").alias("features"))
LogisticRegression(maxIter=2).fit(rows.cache()).transform(rows).count()
frame.repartition(2).mapInArrow(lambda batches: batches, frame.schema, barrier=True).collect()
spark.createDataFrame(frame.toPandas()).groupBy("label").count().orderBy("label").collect()
numbers = spark.sparkContext.parallelize(range(100), 2)
numbers.map(lambda n: (n % 3, n)).reduceByKey(max).barrier().mapPartitions(iter).collect()
"""

# exec keeps the process id, so the JVM's files are named after it.
_NOTES = """#!/bin/sh
for word; do printf '%s\\n' "$word"; done >"{notes}/$$.words"
exec {java} {options} -XX:DumpLoadedClassList="{notes}/$$.classes" "$@"
"""
_STARTS = """#!/bin/sh
case "$*" in
  *"-XX:+Use"*GC*) collector= ;;
  *) collector=-XX:+UseSerialGC ;;
esac
case "$*" in
  *" org.apache.spark.launcher.Main "*) archive={home}/launcher.jsa ;;
  *" org.apache.spark."*) archive={home}/spark.jsa ;;
  *) exec {java} {options} $collector "$@" ;;
esac
exec {java} {options} $collector -XX:SharedArchiveFile=$archive -Xlog:cds=off "$@"
"""
_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:-UsePerfData"


def home() -> Path | None:
    """JAVA_HOME for tests, if it was created from the installed Java and Spark."""
    java = _java()
    if java is None or (_HOME / "lib").resolve().parent != java.parents[1]:
        return None
    return _HOME if (_HOME / "spark").resolve() == _spark_home() else None


def make() -> None:
    """Creates or replaces the archive, which takes a minute.

    Raises:
        SystemExit: there is no Java, or it cannot make an archive.
    """
    java = _java() or sys.exit("quick_java: there is no Java")
    new = _HOME.with_name("java.new")
    shutil.rmtree(new, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        programs = _programs(java, Path(folder))
        _link(java, new, _STARTS.format(home=_HOME, java=java, options=_OPTIONS))
        for name in ("launcher", "spark"):
            _archive(java, new / f"{name}.jsa", [one for one in programs if one.name == name])
    (new / "spark").symlink_to(_spark_home())
    shutil.rmtree(_HOME, ignore_errors=True)
    new.rename(_HOME)


def _java() -> Path | None:
    named = os.environ.get("JAVA_HOME")
    found = f"{named}/bin/java" if named else shutil.which("java")
    return Path(found).resolve() if found else None


def _spark_home() -> Path | None:
    spec = find_spec("pyspark")
    return Path(spec.origin).resolve().parent if spec else None


def _link(java: Path, home: Path, script: str) -> None:
    """Creates a Java home in which bin/java is `script`."""
    (home / "bin").mkdir(parents=True)
    for file in [*java.parents[1].iterdir(), *java.parent.iterdir()]:
        if file not in (java, java.parent):
            (home / file.relative_to(java.parents[1])).symlink_to(file)
    program = home / "bin" / "java"
    program.write_text(script)
    program.chmod(0o755)


class _Program:
    """The arguments of one JVM, and the classes that it loaded."""

    def __init__(self, words: Path):
        asked = words.read_text().splitlines()
        self._classes = words.with_suffix(".classes")
        self.name = "launcher" if "org.apache.spark.launcher.Main" in asked else "spark"
        # The session used its own SPARK_HOME of links, which no longer exists.
        own_home = re.compile(r"(?<![^:])[^:]*/hearth-spark-\w+(?=/)")
        self.class_path = own_home.sub(str(_spark_home()), asked[asked.index("-cp") + 1])

    def classes(self) -> Iterable[str]:
        """Lines of the class list, except for classes of loaders other than Java's own."""
        for line in self._classes.read_text().splitlines():
            if " super: " not in line:
                yield line.partition(" id: ")[0]  # without the id, which is unique to the JVM


def _programs(java: Path, folder: Path) -> list[_Program]:
    """The JVMs that a Spark session starts."""
    notes = folder / "notes"
    notes.mkdir()
    _link(java, folder / "java", _NOTES.format(notes=notes, java=java, options=_OPTIONS))
    environment = {**os.environ, "JAVA_HOME": str(folder / "java")}
    command = [sys.executable, "-c", _PROGRAM, str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"quick_java: a session of Spark failed: {done.stderr[-3000:]}")
    return [_Program(words) for words in notes.glob("*.words")]


def _archive(java: Path, file: Path, programs: list[_Program]) -> None:
    """Writes an archive of the classes that `programs`, which share a class path, loaded."""
    (class_path,) = {program.class_path for program in programs}
    lines = dict.fromkeys(line for program in programs for line in program.classes())
    classes = file.with_suffix(".classes")
    classes.write_text("\n".join(lines) + "\n")
    options = [f"-XX:SharedClassListFile={classes}", f"-XX:SharedArchiveFile={file}"]
    command = [str(java), "-Xshare:dump", *_OPTIONS.split(), *options, "-cp", class_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"quick_java: no archive: {done.stdout[-1500:]}{done.stderr[-1500:]}")
    classes.unlink()


if __name__ == "__main__":
    make()
