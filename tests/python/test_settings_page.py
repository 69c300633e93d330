"""docs/settings.md lists every flag, Spark setting and environment variable for users."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import settings_page  # noqa: E402

# Variables that Hearth sets for its own processes, or that the build uses.
_INTERNAL = {
    "HEARTH_HOROVOD_LAUNCHER",
    "HEARTH_NATIVE_DIR",
    "HEARTH_PYTHON",
    "HEARTH_TORCH_LIBRARIES",
}
_VARIABLE = re.compile(r'"(HEARTH_[A-Z_]+)"')


def _sources(*folders):
    for folder in folders:
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".py", ".cc") and not re.search("_test|testing|stand_in", str(path)):
                yield path.read_text(encoding="utf-8")


def test_the_page_is_current():
    text = settings_page.PAGE.read_text(encoding="utf-8")
    assert text == settings_page.page(), "run .venv/bin/python tools/settings_page.py"


def test_the_page_has_every_setting_of_spark():
    found = set()
    for text in _sources("python/hearth"):
        found |= set(re.findall(r'"(spark\.hearth\.[\w.]*\w)"', text))
    assert found == set(settings_page.SPARK_SETTINGS)


def test_the_page_has_every_variable_of_the_environment():
    found = set()
    for text in _sources("python/hearth", "hearth"):
        found |= set(_VARIABLE.findall(text))
    assert found - _INTERNAL == set(settings_page.VARIABLES)
