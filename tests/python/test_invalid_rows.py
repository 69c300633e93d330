"""Rows without a prediction are found by comparing names, and reported once."""

import pickle
import sys
from types import SimpleNamespace

import pyarrow as pa
import pytest

from hearth.rows.invalid_rows import NAMED_ROWS, InvalidRows, PartsParam, Report, Tally, add_up


def tally_of(given, came, **columns):
    """The tally of a partition in batches of three rows; only rows in `came` have an output."""
    tally = Tally()
    table = pa.table({"id": given, **columns})
    assert sum(batch.num_rows for batch in tally.watch(table.to_batches(3))) == len(given)
    tally.take(came)
    return tally


@pytest.mark.parametrize(
    ("given", "came", "names"),
    [
        (["a", "b", "c", "d"], ["a", "b", "c", "d"], ()),
        (["a", "b", "c", "d"], ["b", "d"], ("a", "c")),
        (["a", "b", "c", "d"], [], ("a", "b", "c", "d")),
        (["a", "a", "a", "b"], ["a", "b"], ("a", "a")),
        ([7, 8, 9], ["7", "9"], ("8",)),
        ([], [], ()),
    ],
)
def test_rows_without_output_are_counted_and_named(given, came, names):
    assert tally_of(given, came).result() == InvalidRows(len(given), len(names), names)


def test_names_formatted_differently_are_omitted():
    assert tally_of([1.5, 2.5, 3.5], ["1.500", "3.500"]).result() == InvalidRows(3, 1, ())


def test_only_the_first_are_named():
    found = tally_of([str(row) for row in range(50)], []).result()
    assert (found.count, len(found.names)) == (50, NAMED_ROWS)
    assert found.named.endswith("9, ...")
    assert len(add_up([found, found]).names) == NAMED_ROWS


def test_a_recomputed_partition_counts_once():
    first, second = tally_of(["a", "b"], ["b"]), tally_of(["c", "d"], [])
    param = PartsParam()
    task_side = pickle.loads(pickle.dumps(PartsParam(print)))
    value = param.zero({})
    for tally in (first, second, first):
        value = param.addInPlace(value, task_side.addInPlace({}, {tally.key(): tally.result()}))
    assert add_up(value.values()) == InvalidRows(4, 3, ("a", "c", "d"))


def reporting():
    """A report on a fake session, its accumulators' parameters, and its notifications."""
    reported, made = [], []

    def accumulator(value, param):
        made.append(param)
        return SimpleNamespace(value=value)

    spark = SimpleNamespace(_jsc=None, sparkContext=SimpleNamespace(accumulator=accumulator))
    return Report(spark, reported.append), made[0], reported


def settle(report):
    """Waits until the report has notified the driver."""
    if (timer := report._timer) is not None:
        timer.join(60)


def test_each_change_is_reported_once_to_the_driver():
    report, param, reported = reporting()
    found = InvalidRows(5, 2, ("a", "b"))
    for part in ({"x": found}, {"y": InvalidRows(5)}, {"x": found}):
        param.addInPlace(report.parts.value, part)
    settle(report)
    param.addInPlace(report.parts.value, {"x": found})
    settle(report)
    assert reported == [InvalidRows(10, 2, ("a", "b"))]


def test_a_muted_report_is_not_repeated():
    report, param, reported = reporting()
    param.addInPlace(report.parts.value, {"x": InvalidRows(5, 1, ("a",))})
    assert report.mute() == InvalidRows(5, 1, ("a",))
    settle(report)
    assert reported == []


def test_a_session_without_counters_logs_a_warning(monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "pyspark.sql.connect.observation", None)  # like Spark 3.5
    assert not Report(SimpleNamespace(), print).counts
    assert "3.5 cannot count invalid rows" in caplog.text
