"""What the driver knows of a dataset's partitions over several starts of the nodes."""

from __future__ import annotations

from types import SimpleNamespace

from hearth.cluster.datasets.delivery import Delivery, Plan


class Running:
    """A start of the nodes, which notes what it is told."""

    def __init__(self):
        self.sent, self.failures = [], []
        self.broadcast, self.fail = self.sent.append, self.failures.append


def partition(number, rows, digest):
    return {"event": "dataset", "partition": number, "rows": rows, "hash": digest}


def test_a_partition_that_has_other_rows_after_a_restart_fails_the_cluster():
    plan, first, second = Plan("train", 2), Running(), Running()
    Delivery(plan, first).note(partition(1, 5, "aa"))
    delivery = Delivery(plan, second)
    delivery.note(partition(0, 4, "bb"))
    delivery.note(partition(1, 5, "cc"))
    assert len(second.failures) == 1
    assert "partition 1 of dataset 'train' had 5 rows with hash aa before" in second.failures[0]
    assert first.failures == [] and second.sent == []


def test_files_of_a_dataset_that_may_change_are_kept_only_where_all_partitions_are_known():
    plan = Plan("train", 2, steady=False)
    delivery = Delivery(plan, Running())
    delivery.note(partition(0, 5, "aa"))
    assert not plan.keeps() and Plan("train", 2).keeps()
    delivery.note(partition(1, 5, ""))  # counted, for a rank that has returned
    assert not plan.keeps()
    Delivery(plan, Running()).note(partition(1, 5, "bb"))
    assert plan.keeps()


def test_totals_are_sent_once_all_partitions_are_known_of_ranks_that_have_returned_too():
    running = Running()
    delivery = Delivery(Plan("train", 2), running)
    delivery.note(partition(0, 4, "aa"))
    delivery.note(partition(1, 3, ""))
    delivery.end(SimpleNamespace(error=None, result=[(0, 4, "aa"), (1, 3, "")]))
    totals = {"op": "dataset_totals", "dataset": "train", "rows": [4, 3], "hashes": ["aa", ""]}
    assert running.sent == [totals]
