"""map_blocks and reduce_blocks with functions of TensorFlow and a Keras model."""

import numpy as np
import pytest

from hearth.ml import map_blocks, reduce_blocks


@pytest.fixture(scope="module")
def frame(spark):
    rows = [(i, [float(i), 1.0]) for i in range(100)]
    return spark.createDataFrame(rows, "id bigint, x array<float>")


def test_tensorflows_functions_take_columns(frame):
    def norms(x):
        import tensorflow as tf

        return {"norm": tf.norm(x, axis=1)}

    def sums(x_input):
        import tensorflow as tf

        return {"x": tf.reduce_sum(x_input, axis=0)}

    found = map_blocks(norms, frame)
    assert found.schema["norm"].dataType.simpleString() == "float"
    assert found.where("id = 3").first().norm == pytest.approx(np.hypot(3, 1))
    np.testing.assert_array_equal(reduce_blocks(sums, frame.repartition(3))["x"], [4950, 100])


def test_a_keras_model_adds_its_output(frame):
    import keras

    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(3)])
    found = map_blocks(model, frame, outputs="y array<float>", columns=["x"])
    assert found.columns == ["id", "x", "y"]
    row = found.where("id = 9").first()
    np.testing.assert_allclose(row.y, np.asarray(model(np.array([[9.0, 1.0]])))[0], rtol=1e-4)
