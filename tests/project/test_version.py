"""All files that contain the version have the same one."""

import re
from pathlib import Path

import hearth

ROOT = Path(__file__).resolve().parents[2]
# The text around the version in each file.
VERSIONS = {
    "CMakeLists.txt": r"project\(hearth VERSION ([\d.]+) ",
    "pyproject.toml": r'(?m)^version = "(.+)"$',
    "jvm/pom.xml": r"<artifactId>hearth-spark_2\.13</artifactId>\s*<version>(.+)</version>",
    "CHANGELOG.md": r"(?m)^## ([\d.]+)",  # the newest version
    "docs/releases.md": r"(?m)^\| \| ([\d.]+) \| by \|$",
    "docs/install.md": r"hearth_spark-([\d.]+)-cp311",
}


def test_all_files_name_the_same_version():
    found = {}
    for name, pattern in VERSIONS.items():
        match = re.search(pattern, (ROOT / name).read_text(encoding="utf-8"))
        found[name] = match[1] if match else None
    assert found == dict.fromkeys(VERSIONS, hearth.__version__)
