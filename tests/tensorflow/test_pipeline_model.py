"""TFModel: a .keras file, several inputs and outputs by name, and what is wrong said plainly."""

import pytest

from tensorflowonspark import pipeline

tf = pytest.importorskip("tensorflow")


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A Keras 3 file of two inputs, and a SavedModel of two outputs."""
    import keras

    folder = tmp_path_factory.mktemp("models")
    a, b = keras.Input((1,), name="a"), keras.Input((2,), name="b")
    both = keras.layers.Concatenate()([a, b, b])
    model = keras.Model([a, b], keras.layers.Dense(1, kernel_initializer="ones")(both))
    model.save(folder / "sum.keras")

    module = tf.Module()

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, name="x")])
    def serve(x):
        return {"z_double": 2 * x, "a_square": x * x}

    tf.saved_model.save(module, str(folder / "two"), signatures=serve.get_concrete_function())
    return folder


def predicted(frame, model):
    return [tuple(row) for row in model.transform(frame).collect()]


def test_outputs_of_a_saved_model_go_where_they_are_named(spark, models):
    frame = spark.createDataFrame([(1.0, "p"), (3.0, "q")], "v float, name string").coalesce(1)
    model = pipeline.TFModel({}).setExportDir(str(models / "two")).setInputMapping({"v": "x"})
    model.setOutputMapping({"z_double": "double", "a_square": "square"})
    assert predicted(frame, model) == [(1.0, 2.0), (9.0, 6.0)]
    found = model.setKeepColumns(True).transform(frame)
    assert found.columns == ["v", "name", "square", "double"]
    assert [tuple(row) for row in found.collect()] == [(1.0, "p", 1.0, 2.0), (3.0, "q", 9.0, 6.0)]
    with pytest.raises(Exception, match="has no output 'none', but: "):
        model.setOutputMapping({"none": "n"}).transform(frame)
    with pytest.raises(Exception, match="has no input 'y', but: x"):
        model.setInputMapping({"v": "y"}).transform(frame)


@pytest.mark.parametrize("scheme", ["", "file:"])
def test_a_keras_file_is_a_model(spark, models, scheme):
    frame = spark.createDataFrame([(1.0, [1.0, 2.0]), (0.5, [0.0, 4.0])], "p float, q array<float>")
    model = pipeline.TFModel({}).setExportDir(f"{scheme}{models / 'sum.keras'}")
    model.setInputMapping({"p": "a", "q": "b"}).setOutputMapping({"output_0": "total"})
    found = model.transform(frame.coalesce(1))
    assert found.columns == ["total"]
    assert [row.total for row in found.collect()] == [7.0, 8.5]
