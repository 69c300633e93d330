"""TFModel: .keras files, several inputs and outputs by name, and error messages."""

import os
import re
import shutil
import time

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import PythonException
from pyspark.ml.linalg import Vectors

from hearth.tensorflowonspark import model_files, pipeline_model, tensor_names
from tensorflowonspark import compat, pipeline

tf = pytest.importorskip("tensorflow")


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A Keras 3 file with two inputs, and a SavedModel with two outputs."""
    import keras

    folder = tmp_path_factory.mktemp("models")
    a, b = keras.Input((1,), name="a"), keras.Input((2,), name="b")
    both = keras.layers.Concatenate()([a, b, b])
    total = keras.layers.Dense(1, kernel_initializer="ones", name="dense")(both)
    model = keras.Model([a, b], total)
    model.save(folder / "sum.keras")

    module = tf.Module()

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, name="x")])
    def serve(x):
        return {"z_double": 2 * x, "a_square": x * x}

    tf.saved_model.save(module, str(folder / "two"), signatures=serve.get_concrete_function())

    shapes = tf.Module()

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, name="x")])
    def shape(x):
        column = x[:, None]
        return {
            "column": column,
            "cube": column[:, None, None] * tf.ones([1, 2, 1, 3]),
            "empty": column[:, 1:],
            "small": tf.cast(x, tf.uint8),
            "half": tf.cast(column, tf.float16),
            "texts": tf.as_string(tf.cast(tf.concat([column, column], 1), tf.int32)),
            "whole": tf.reduce_sum(x)[None],
        }

    tf.saved_model.save(shapes, str(folder / "shapes"), signatures=shape.get_concrete_function())
    return folder


def predicted(frame, model):
    return [tuple(row) for row in model.transform(frame).collect()]


def test_outputs_of_a_saved_model_are_assigned_by_name(spark, models):
    frame = spark.createDataFrame([(1.0, "p"), (3.0, "q")], "v float, name string").coalesce(1)
    model = pipeline.TFModel({}).setExportDir(str(models / "two")).setInputMapping({"v": "x"})
    model.setOutputMapping({"z_double": "double", "a_square": "square"})
    assert predicted(frame, model) == [(1.0, 2.0), (9.0, 6.0)]
    found = model.setKeepColumns(True).transform(frame)
    assert found.columns == ["v", "name", "square", "double"]
    assert [tuple(row) for row in found.collect()] == [(1.0, "p", 1.0, 2.0), (3.0, "q", 9.0, 6.0)]
    with pytest.raises(ValueError, match="has no output 'none'; it has "):
        model.setOutputMapping({"none": "n"}).transform(frame)
    with pytest.raises(ValueError, match="has no input 'y'; it has x"):
        model.setInputMapping({"v": "y"}).transform(frame)


@pytest.mark.parametrize("scheme", ["", "file:"])
def test_a_keras_file_is_a_model(spark, models, scheme):
    frame = spark.createDataFrame([(1.0, [1.0, 2.0]), (0.5, [0.0, 4.0])], "p float, q array<float>")
    model = pipeline.TFModel({}).setExportDir(f"{scheme}{models / 'sum.keras'}")
    model.setInputMapping({"p": "a", "q": "b"}).setOutputMapping({"output_0": "total"})
    found = model.transform(frame.coalesce(1))
    assert found.columns == ["total"]
    assert [row.total for row in found.collect()] == [[7.0], [8.5]]
    spec = model_spec(str(models / "sum.keras"), {"p": "a", "q": "b"}, {"dense": "by_layer"})
    assert pipeline_model.LoadedModel(spec).columns == [("output_0", "by_layer")]


def test_outputs_keep_their_shape_as_in_tensorflowonspark(spark, models):
    frame = spark.createDataFrame([(1.0,), (3.0,)], "v float").coalesce(1)
    model = pipeline.TFModel({}).setExportDir(str(models / "shapes")).setInputMapping({"v": "x"})
    names = ["column", "cube", "empty", "small", "half", "texts"]
    found = model.setOutputMapping({name: name for name in names}).transform(frame)
    kinds = ["float", "float", "float", "bigint", "float", "string"]
    depths = {"cube": 3, "small": 0}
    wanted = [
        (name, "array<" * depths.get(name, 1) + kind + ">" * depths.get(name, 1))
        for name, kind in sorted(zip(names, kinds, strict=True))
    ]
    assert found.dtypes == wanted
    first, second = (row.asDict() for row in found.collect())
    cube = [[[1.0] * 3], [[1.0] * 3]]
    assert first == {
        "column": [1.0], "cube": cube, "empty": [], "small": 1, "half": [1.0], "texts": ["1", "1"]
    }  # fmt: skip
    assert second["cube"] == [[[3.0] * 3], [[3.0] * 3]]
    spec = model_spec(str(models / "shapes"), {"v": "x"}, {"whole": "w"})
    rows = pa.record_batch({"v": pa.array([1.0, 3.0], pa.float32())})
    with pytest.raises(ValueError, match=r"output 'whole' of .* its first dimension must"):
        next(pipeline_model.predict(spec, iter([rows])))


def dense_model(keras):
    """Two layers without explicit names, as in most programs."""
    keras.backend.clear_session()
    given = {"input_shape": (2,), "kernel_initializer": "ones"}
    layers = [keras.layers.Dense(3, **given), keras.layers.Dense(1, kernel_initializer="ones")]
    return keras.Sequential(layers)


@pytest.mark.parametrize("library", ["keras", "tf_keras"])
def test_exports_have_the_names_of_layers_and_answer_to_the_others(tmp_path, library):
    keras = pytest.importorskip(library)
    path = str(tmp_path / "model")
    compat.export_saved_model(dense_model(keras), path, is_chief=True)
    serve = tf.saved_model.load(path).signatures["serving_default"]
    (given,) = serve.structured_input_signature[1]
    assert given == "dense_input"
    assert serve(dense_input=tf.constant([[1.0, 2.0]]))["dense_1"].numpy().tolist() == [[9.0]]

    # Without Spark, because each case would load TensorFlow in a worker again.
    rows = pa.record_batch({"c1": pa.array([[1.0, 2.0]], pa.list_(pa.float32()))})
    for outputs in ({}, {"dense_1": "cout"}, {"output_0": "cout"}):
        spec = model_spec(path, {"c1": "dense_input"}, outputs)
        (found,) = pipeline_model.predict(spec, iter([rows]))
        assert found.to_pylist() == [{"cout" if outputs else "dense_1": [9.0]}]
    with pytest.raises(ValueError, match="has no output 'dense'; it has dense_1"):
        pipeline_model.LoadedModel(model_spec(path, {"c1": "dense_input"}, {"dense": "cout"}))


def model_spec(path, inputs, outputs):
    return pipeline_model.ModelSpec(
        path, "serving_default", ("serve",), inputs, outputs, batch_size=10
    )


def several_outputs(keras, inputs):
    a, b = keras.Input((2,), name="a"), keras.Input((1,), name="b")
    both = keras.layers.Concatenate()([a, b])
    late = keras.layers.Dense(1, name="late", kernel_initializer="ones")(both)
    early = keras.layers.Dense(2, name="early", kernel_initializer="ones")(a)
    return keras.Model({"list": [a, b], "dict": {"b": b, "a": a}}[inputs], [late, early])


@pytest.mark.parametrize(
    ("library", "inputs"), [("keras", "list"), ("keras", "dict"), ("tf_keras", "list")]
)
def test_numbers_of_outputs_are_those_of_the_model(tmp_path, library, inputs):
    keras = pytest.importorskip(library)
    path = str(tmp_path / "model")
    compat.export_saved_model(several_outputs(keras, inputs), path, is_chief=True)
    spec = model_spec(path, {"p": "a", "q": "b"}, {"output_0": "x"})
    model = pipeline_model.LoadedModel(spec)
    assert model.columns == [("late", "x")]
    arrays = {"a": np.float32([[1, 2]]), "b": np.float32([[5]])}
    found = model.predict(arrays)
    assert found["late"].tolist() == [[8.0]]
    assert found["early"].tolist() == [[3.0, 3.0]]


def test_models_with_named_outputs_or_without_layers_are_unchanged(tmp_path):
    import keras

    given = keras.Input((2,), name="a")
    named = keras.Model(given, {"sum": keras.layers.Dense(1)(given)})

    class Plain(keras.Model):
        def call(self, x):
            return 2 * x

    plain = Plain()
    plain(np.zeros((1, 2), np.float32))
    for name, model, wanted in (("named", named, "sum"), ("plain", plain, "output_0")):
        path = str(tmp_path / name)
        compat.export_saved_model(model, path, is_chief=True)
        serve = tf.saved_model.load(path).signatures["serving_default"]
        assert list(serve.structured_outputs) == [wanted]


def test_a_damaged_file_of_names_is_named(tmp_path):
    (tmp_path / "assets.extra").mkdir()
    (tmp_path / "assets.extra" / "tensor_names.json").write_text('{"inputs": 5}')
    with pytest.raises(ValueError, match=r"tensor_names.json is damaged .*: remove it, or export"):
        tensor_names.read(str(tmp_path), ["a"])


def save_factor(path, factor):
    """Saves a SavedModel that returns `factor` times its input."""
    module = tf.Module()
    module.factor = tf.Variable(factor)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, name="x")])
    def serve(x):
        return {"y": module.factor * x}

    tf.saved_model.save(module, path, signatures=serve.get_concrete_function())


def test_a_model_that_was_replaced_is_loaded_again_and_takes_streams(spark, tmp_path):
    path = str(tmp_path / "model")
    frame = spark.createDataFrame([(1.0,), (2.0,)], "v float").coalesce(1)
    model = pipeline.TFModel({}).setExportDir(path).setInputMapping({"v": "x"})
    save_factor(path, 2.0)
    old = model.transform(frame)
    assert [row.y for row in old.collect()] == [2, 4]
    save_factor(path, 100.0)
    assert [row.y for row in model.transform(frame).collect()] == [100, 200]
    try:  # workers may use the old model if they have it, but never the new one
        assert [row.y for row in old.collect()] == [2, 4]
    except PythonException as error:
        assert re.search(r"is not the one that transform.* found: it was replaced", str(error))
    frame.write.parquet(str(tmp_path / "rows"))
    stream = spark.readStream.schema("v float").parquet(str(tmp_path / "rows"))
    found = model.setKeepColumns(True).transform(stream).writeStream.format("memory")
    found.queryName("outputs").trigger(availableNow=True).start().awaitTermination()
    assert sorted(map(tuple, spark.table("outputs").collect())) == [(1, 100), (2, 200)]


def test_a_model_is_known_by_its_content(tmp_path):
    path = str(tmp_path / "model")
    save_factor(path, 2.0)
    first = model_files.digest(path)
    (tmp_path / "model" / "checkpoint").write_text("beside the model")
    for file in (tmp_path / "model").rglob("*"):
        os.utime(file, (1, 1))
    assert model_files.digest(path) == first == model_files.digest(f"file:{path}/")
    shutil.copytree(path, tmp_path / "copy")
    assert model_files.digest(str(tmp_path / "copy")) == first
    save_factor(path, 3.0)
    assert model_files.digest(path) != first


def test_a_model_that_is_replaced_within_a_tick_of_its_file_system_is_another(tmp_path):
    file, found, now = tmp_path / "model.keras", set(), time.time()
    for content in (b"first", b"other"):
        file.write_bytes(content)
        os.utime(file, (now, now))
        found.add(model_files.digest(str(file)))
    assert len(found) == 2


def save_kinds(path):
    module = tf.Module()
    names = {"small": tf.int32, "half": tf.float16, "text": tf.string, "flag": tf.bool}
    signature = [tf.TensorSpec([None], kind, name=name) for name, kind in names.items()]

    @tf.function(input_signature=signature)
    def serve(small, half, text, flag):
        return {"y": small, "z": half, "t": text, "f": flag}

    tf.saved_model.save(module, path, signatures=serve.get_concrete_function())


def test_values_that_a_tensor_cannot_hold_are_refused(tmp_path):
    path = str(tmp_path / "kinds")
    save_kinds(path)
    names = ["small", "half", "text", "flag"]
    spec = model_spec(path, {name: name for name in names}, {})

    def predicts(**changed):
        row = {"small": [1, 2], "half": [0.5, 3.0], "text": ["a", "b"], "flag": [True, False]}
        return next(pipeline_model.predict(spec, iter([pa.record_batch({**row, **changed})])))

    assert predicts().to_pylist() == [
        {"f": True, "t": "a", "y": 1, "z": 0.5}, {"f": False, "t": "b", "y": 2, "z": 3.0}
    ]  # fmt: skip
    assert predicts(small=[1.0, -7.0])["y"].to_pylist() == [1, -7]
    for name, values, said in (
        ("small", [1, None], r"\(int64\) has 1 null in a batch of 2 rows: fill"),
        ("small", [1, 2**40 + 5], "has the value 1099511627781, which does not fit int32"),
        ("small", [3e10, 1.5], r"value 30000000000.0, which does not fit int32 \(2 of 2 values"),
        ("half", [70000.0, 1.0], "has the value 70000.0, which does not fit float16"),
        ("text", ["a", None], "has 1 null in a batch of 2 rows"),
        ("text", [1, 2], r"\(int64\) cannot be the input 'text' of type string: cast"),
        ("small", ["1", "2"], r"\(string\) cannot be the input 'small' of type int32: cast"),
        ("flag", [1, 2], "has the value 2, which does not fit bool"),
        ("small", [[1, 2], [3, 4]], r"has rows of shape \(2,\), but the input 'small' expects"),
    ):
        with pytest.raises(ValueError, match=f"the column '{name}' .*{said}"):
            predicts(**{name: values})


def test_columns_of_any_names_are_kept_and_read(spark, models):
    rows = [(1.0, "p", "q", Vectors.sparse(1, [0], [3.0]))]
    frame = spark.createDataFrame(rows, ["v", "a", "b", "vector"]).toDF(
        "the.v", "two", "two", "w.w"
    )
    model = pipeline.TFModel({}).setExportDir(str(models / "two")).setInputMapping({"the.v": "x"})
    model.setOutputMapping({"z_double": "y.y", "a_square": "s"})
    assert predicted(frame, model) == [(1.0, 2.0)]
    found = model.setKeepColumns(True).transform(frame)
    assert found.columns == [*frame.columns, "s", "y.y"]
    assert [tuple(row) for row in found.collect()] == [(*rows[0], 1.0, 2.0)]
    assert model.setInputMapping({"W.W": "x"}).transform(frame).first().s == 9
    for name, known in (("TWO", "already, as 'two'"), ("s", "already:")):
        with pytest.raises(ValueError, match=f"TFModel adds a column '{name}', .*{known}"):
            model.setOutputMapping({"z_double": name, "a_square": "s"}).transform(frame)
    with pytest.raises(ValueError, match="TFModel reads the column 'two', but 2 columns"):
        model.setInputMapping({"two": "x"}).transform(frame)
