"""What a session's settings say of its ranks before any of them starts."""

from types import SimpleNamespace

import pytest

from hearth import HearthError
from hearth.caffeonspark.places import check_before_start
from hearth.spark.preflight import unused_cores


class Session:
    """A classic session, as far as the checks look at it."""

    def __init__(self, cores: list[int], **conf: str):
        self.conf = {key.replace("_", "."): value for key, value in conf.items()}
        infos = [SimpleNamespace(totalCores=lambda cores=cores: cores) for cores in cores]
        found = SimpleNamespace(size=lambda: len(infos), apply=lambda i: infos[i])
        store = SimpleNamespace(executorList=lambda active: found)
        context = SimpleNamespace(statusStore=lambda: store)
        self._jsc = SimpleNamespace(sc=lambda: context)


def test_cores_that_ranks_do_not_use_are_told_with_what_to_set():
    text = unused_cores(Session([0, 8, 8], spark_master="yarn", spark_task_cpus="2"))
    assert "executors have 8 cores, and a rank uses 2" in text
    assert "spark.task.cpus=8" in text and "\n" not in text


@pytest.mark.parametrize(
    ("cores", "conf"),
    [
        ([0, 4], {"spark_master": "yarn", "spark_task_cpus": "4"}),
        ([0], {"spark_master": "yarn"}),
        ([], {"spark_master": "yarn"}),
        ([8], {"spark_master": "local[8]"}),
    ],
)
def test_nothing_is_told_where_they_use_all(cores, conf):
    assert unused_cores(Session(cores, **conf)) is None


def test_dynamic_allocation_is_refused_before_spark_has_an_application():
    config = SimpleNamespace(is_training=True, is_test=False, is_feature=False)
    conf = {"spark.dynamicAllocation.enabled": "true"}
    with pytest.raises(HearthError, match=r"dynamicAllocation.enabled is true.*enabled=false"):
        check_before_start(config, SimpleNamespace(default="file:///"), conf.get)
