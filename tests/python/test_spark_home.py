"""The folder that a local cluster uses instead of Spark's installation."""

from __future__ import annotations

import pyspark
import pytest

from hearth.spark.session import writable_home


@pytest.fixture
def installed(tmp_path, monkeypatch):
    def install(package):
        for folder in ("bin", "jars", "python/lib", "work"):
            (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / package).mkdir(parents=True, exist_ok=True)
        monkeypatch.setattr(pyspark, "__file__", str(tmp_path / package / "__init__.py"))
        monkeypatch.setenv("SPARK_HOME", str(tmp_path))
        monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
        return {entry.name for entry in writable_home().iterdir()}

    return install


def test_a_distribution_is_linked_with_its_python_folder(installed):
    assert installed("python/pyspark") == {"bin", "jars", "python"}


def test_an_installed_package_needs_no_archive_of_itself(installed):
    assert installed(".") == {"bin", "jars"}
