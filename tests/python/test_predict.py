"""predict() without Spark: minibatches across Arrow batches, and models' inputs and outputs."""

from __future__ import annotations

import itertools
import threading
from collections import namedtuple

import numpy as np
import pyarrow as pa
import pytest
from pyspark import cloudpickle

from hearth.ml import predictors
from hearth.ml.executor_prediction import Prediction, predicted
from hearth.ml.predictors import Predictor, Preparer, program_of, takes_dict
from hearth.rows import model_thread
from hearth.rows.predict_rows import WaitingRows, as_columns, blocks, minibatches

MADE = pa.schema([("y", pa.float32())])
LISTS = pa.schema([("y", pa.list_(pa.float32()))])


def arrow_batches(*sizes: int) -> list[pa.RecordBatch]:
    ends = np.cumsum([0, *sizes])
    values = [np.arange(a, b) for a, b in itertools.pairwise(ends)]
    return [
        pa.record_batch(
            {
                "odd.name": pa.array(v),
                "x": pa.FixedSizeListArray.from_arrays(np.repeat(v, 2).astype("f4"), 2),
            }
        )
        for v in values
    ]


def run(function, batches, batch_size=4, made=MADE, inputs=("x",), prepare=None):
    program = program_of(lambda: function, prepare, inputs, made.names)
    kept = tuple(batches[0].schema.names)
    spec = Prediction(program, inputs, kept, batch_size)
    found = pa.Table.from_batches(list(predicted(spec, made, iter(batches))))
    assert found.select(kept).equals(pa.Table.from_batches(batches))
    return found


def test_minibatches_are_full_across_arrow_batches_and_results_stay_with_their_rows():
    sizes = []

    def function(x):
        sizes.append(len(x))
        return x.sum(axis=1)

    batches = arrow_batches(3, 0, 5, 9, 1)
    program = program_of(lambda: function, None, ("x",), ("y",))
    # The function runs in this process, because it records sizes here.
    predictor = Predictor(program)
    predictor._function = function
    model_thread._kept["model", program.key] = predictor
    spec = Prediction(program, ("x",), ("odd.name", "x"), 4)
    out = list(predicted(spec, MADE, iter(batches)))
    assert sizes == [4, 4, 4, 4, 2]
    assert [batch.num_rows for batch in out] == [3, 5, 9, 1]
    table = pa.Table.from_batches(out)
    assert table["odd.name"].to_pylist() == list(range(18))
    assert table["y"].to_pylist() == [2.0 * n for n in range(18)]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_every_size_gives_each_row_once(size):
    found = run(lambda x: x[:, 0], arrow_batches(4, 1, 6), size)
    assert found["y"].to_pylist() == list(range(11))


def test_a_minibatch_within_one_arrow_batch_is_not_copied():
    block = [np.arange(8.0)]
    parts = list(minibatches([block], 4))
    assert all(np.shares_memory(part[0], block[0]) for part in parts)


@pytest.mark.parametrize(
    ("values", "row"),
    [
        ([[1.0], None, [2.0]], 6),
        ([[1.0], [2.0], [None]], 7),
        ([[1.0], [2.0, 3.0], [2.0]], 6),
        ([[1.0, 2.0]], 5),
    ],
)
def test_an_invalid_row_is_named_with_its_column_and_number(values, row):
    kind = pa.list_(pa.float32())
    good = pa.record_batch({"c": pa.array([[0.0]] * 5, kind)})
    bad = pa.record_batch({"c": pa.array(values, kind)})
    with pytest.raises(ValueError, match=rf"'pixels'.* row {row} of partition 3"):
        list(blocks([good, bad], ["pixels"], ["c"], 3))


def test_a_value_that_the_output_cannot_hold_is_named_with_its_rows():
    words = r"column 'y' has the value 1e\+300.*; first in row 7 of partition 0"
    with pytest.raises(ValueError, match=words):
        run(lambda x: np.where(x[:, 0] == 7, 1e300, 0.0), arrow_batches(5, 4))


def test_outputs_of_different_shapes_in_one_batch_are_refused():
    words = r"the model returns rows of shapes \[\(1,\), \(2,\)\]"
    with pytest.raises(ValueError, match=words):
        run(lambda x: x[:, : 1 + (x[0, 0] > 0)], arrow_batches(9), made=LISTS)


def test_outputs_of_one_value_per_row_may_have_a_dimension_of_one():
    assert as_columns([np.ones((3, 1), "f4")], MADE)[0].to_pylist() == [1, 1, 1]
    assert as_columns([np.ones((2, 1), "f4")], LISTS)[0].to_pylist() == [[1], [1]]


Pair = namedtuple("Pair", ["two", "one"])
GIVES = {
    "tuple": lambda x: (x, x * 2),
    "dict": lambda x: {"two": x * 2, "other": x, "one": x},
    "namedtuple": lambda x: Pair(two=x * 2, one=x),
}


@pytest.mark.parametrize("kind", GIVES)
def test_outputs_are_assigned_by_order_or_name(kind):
    predictor = Predictor(program_of(lambda: GIVES[kind], None, ["x"], ["one", "two"]))
    one, two = predictor({"x": np.arange(3)})
    assert (one.tolist(), two.tolist()) == ([0, 1, 2], [0, 2, 4])


def test_wrong_outputs_are_refused():
    def gives(value, outputs=("one", "two")):
        return Predictor(program_of(lambda: lambda x: value, None, ["x"], outputs))(
            {"x": np.ones(2)}
        )

    with pytest.raises(ValueError, match="returned one, but `outputs` names two"):
        gives({"one": np.ones(2)})
    with pytest.raises(ValueError, match=r"returned 1 arrays, but `outputs` has 2 columns"):
        gives(np.ones(2))
    with pytest.raises(ValueError, match=r"'one' of shape \(3,\) for 2 rows"):
        gives(np.ones(3), ("one",))
    with pytest.raises(ValueError, match=r"'one' of shape \(\) for 2 rows"):
        gives(1.0, ("one",))
    with pytest.raises(ValueError, match=r"make_predict\(\) returned a int"):
        Predictor(program_of(lambda: 3, None, ["x"], ["y"]))
    with pytest.raises(ValueError, match="precision are for PyTorch modules"):
        Predictor(program_of(lambda: len, None, ["x"], ["y"], precision="bf16"))
    with pytest.raises(TypeError, match="make_predict is a int"):
        program_of(3, None, ["x"], ["y"])


def test_functions_get_arrays_or_a_dict():
    assert takes_dict(lambda arrays: 0, ("a", "b"))
    assert not takes_dict(lambda a: 0, ("a",))
    assert not takes_dict(lambda a, b: 0, ("a", "b"))
    assert not takes_dict(lambda *arrays: 0, ("a", "b"))

    def annotated(arrays: dict[str, np.ndarray]):
        return arrays["a"]

    assert takes_dict(annotated, ("a",))
    assert Predictor(program_of(lambda: annotated, None, ["a"], ["y"]))({"a": np.ones(1)})


def test_prepared_arrays_are_the_models_arguments():
    def two(x):
        return {"left": x[:, :1], "right": x[:, 1:]}

    found = run(lambda left, right: (left + right)[:, 0], arrow_batches(5), prepare=two)
    assert found["y"].to_pylist() == [0, 2, 4, 6, 8]
    preparer = Preparer(program_of(len, lambda x: x[:1], ["x"], ["y"]))
    with pytest.raises(ValueError, match=r"prepare returned 'x' of shape \(1,\) for 2 rows"):
        preparer([np.ones(2)])


def test_a_model_is_loaded_once_for_the_same_content(tmp_path):
    count = tmp_path / "count"

    def program(number):
        def make():
            with open(count, "a") as file:
                file.write(f"{number} ")
            return lambda x: x * number

        return program_of(cloudpickle.loads(cloudpickle.dumps(make)), None, ["x"], ["y"])

    for number in (1, 1, 2, 2, 1):
        (found,) = predictors.predictor_of(program(number))({"x": np.ones(1)})
        assert found == [number]
    assert count.read_text() == "1 2 1 "


def test_modules_are_models_and_leave_sparks_columns_as_they_are():
    torch = pytest.importorskip("torch")

    class Twice(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.tensor(2.0))
            self.drop = torch.nn.Dropout(0.9)

        def forward(self, x):
            x.mul_(self.weight)
            return self.drop(x)

    module = Twice()
    predictor = Predictor(program_of(module, None, ["x"], ["y"]))
    values = np.arange(3, dtype="f8")
    assert predictor({"x": values})[0].tolist() == [0, 2, 4]
    assert values.tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match=r"'x' .* 1e\+300, which the model's torch.float32"):
        predictor({"x": np.array([1e300])})
    data = np.array([b"\x01\x02", b"\x03\x04"], object)
    same = Predictor(program_of(torch.nn.Identity(), None, ["x"], ["y"]))
    assert same({"x": data})[0].tolist() == [[1, 2], [3, 4]]
    with pytest.raises(ValueError, match="'x' has bytes of different lengths"):
        predictor({"x": np.array([b"\x01\x02", b"\x03"], object)})


def test_bf16_runs_a_module_under_autocast():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    module = torch.nn.Linear(64, 8)
    x = np.random.default_rng(0).normal(size=(5, 64)).astype("f4")
    exact, rounded = (
        Predictor(program_of(module, None, ["x"], ["y"], precision=precision))({"x": x})[0]
        for precision in ("", "bf16")
    )
    assert rounded.dtype == np.float32
    assert 0 < np.abs(exact - rounded).max() < 0.1


def test_rows_wait_for_results_within_bounds(monkeypatch):
    from hearth.rows import predict_rows

    monkeypatch.setattr(predict_rows, "MOST_WAITING_BYTES", 1)
    rows = WaitingRows(["odd.name"], MADE, 0, least=4)
    entered = threading.Semaphore(0)

    def feed():
        for _ in rows.through(arrow_batches(3, 3, 3)):
            entered.release()

    feeder = threading.Thread(target=feed, daemon=True)
    feeder.start()
    for _ in range(2):  # 3 rows are below `least`: no blocking
        assert entered.acquire(timeout=60)
    assert not entered.acquire(timeout=0.1)
    assert len(list(rows.with_results([np.ones(3)]))) == 1
    assert entered.acquire(timeout=60)
    feeder.join(60)
    with pytest.raises(ValueError, match="no results for 6 rows"):
        rows.check_none()
    with pytest.raises(ValueError, match="1 more results than rows"):
        list(rows.with_results([np.ones(7)]))


@pytest.mark.parametrize("sizes", [(10,) * 6, (1,) * 30, (3, 40, 3)])
def test_minibatches_fill_up_although_rows_wait_for_space(monkeypatch, sizes):
    """A minibatch may need rows of a batch that is still waiting for space."""
    from queue import SimpleQueue

    from hearth.rows import predict_rows

    monkeypatch.setattr(predict_rows, "MOST_WAITING_BYTES", 1)
    rows, sent = WaitingRows(["odd.name"], MADE, 0, least=2 * 4), SimpleQueue()

    def feed():
        for batch in minibatches(blocks(rows.through(arrow_batches(*sizes)), ["x"], ["x"], 0), 4):
            sent.put(batch[0])
        sent.put(None)

    threading.Thread(target=feed, daemon=True).start()
    found = []
    while (x := sent.get(timeout=60)) is not None:
        assert len(x) == 4 or sum(map(len, found)) + len(x) <= sum(sizes)
        found += rows.with_results([x[:, 0]])
    rows.check_none()
    table = pa.Table.from_batches(found)
    assert table["y"].to_pylist() == table["odd.name"].to_pylist() == list(range(sum(sizes)))
