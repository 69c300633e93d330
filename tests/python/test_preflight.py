"""How many ranks a master can hold is known from its name where it is this machine."""

import pytest

from hearth.spark.preflight import local_slots


@pytest.mark.parametrize(
    ("master", "task_cpus", "slots"),
    [
        ("local[4]", 1, 4),
        ("local[4, 3]", 2, None),
        ("local[4,3]", 2, 2),
        ("local-cluster[2,1,1024]", 1, 2),
        ("local-cluster[2,5,1024]", 2, 4),
        ("local[*]", 1, None),
        ("spark://host:7077", 1, None),
        ("yarn", 1, None),
    ],
)
def test_slots_by_master(master, task_cpus, slots):
    assert local_slots(master, task_cpus) == slots
