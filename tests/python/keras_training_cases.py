"""The epochs of KerasEstimator on one rank, without Spark."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from dataset_ranks import partitions_of, rank_dataset

from hearth.ml.training_spec import TrainingCode, TrainingSpec

keras = pytest.importorskip("keras")


def line_code(**more):
    def make(units=1):
        return keras.Sequential([keras.Input((1,)), keras.layers.Dense(units)])

    return TrainingCode(make, "mse", "sgd", **more)


def spec(**more):
    given = {"learning_rate": 0.1, "epochs": 3, "batch_size": 8, "seed": 3, **more}
    return TrainingSpec(("x",), ("y",), **given)


def loader(uneven="repeat", rows=40, **options):
    from hearth.data.loader import Loader
    from hearth.data.options import LoaderOptions

    # The partitions have 40 rows, so that each column's values follow from the row's number.
    columns = {"x": lambda i: [i / 20.0], "y": lambda i: [i / 10.0 + 1], "w": lambda i: i % 2 + 0.0}
    made = LoaderOptions(8, uneven=uneven, seed=3, **options)
    return Loader(rank_dataset(partitions_of(rows, **columns), 0, 1), made)


def trainer(code=None, **more):
    from hearth.ml.keras_ranks import Alone
    from hearth.ml.keras_training import KerasTrainer

    return KerasTrainer(code or line_code(), spec(**more), Alone())


def test_epochs_have_figures_and_validation_counts_each_row_once():
    one = trainer(line_code(metrics=["mae"]), validates=True)
    one.fit(loader(), loader("weight", rows=21, shuffle=False))
    assert [row["epoch"] for row in one.run["history"]] == [0, 1, 2]
    row = one.run["history"][-1]
    assert {"loss", "mae", "val_loss", "val_mae", "lr", "seconds"} <= set(row)
    x = np.arange(21)[:, None]
    found = one.model.predict(x / 20.0, verbose=0)
    assert row["val_mae"] == pytest.approx(np.abs(found - (x / 10.0 + 1)).mean(), rel=1e-4)
    assert row["loss"] < one.run["history"][0]["loss"]


def test_early_stopping_goes_back_to_the_best_epoch():
    weights = []

    def worsen(model, row):
        weights.append(model.get_weights())
        model.optimizer.learning_rate = 0.0 if row["epoch"] < 2 else 0.5

    one = trainer(line_code(callbacks=[worsen]), epochs=20, patience=2, monitor="loss")
    one.run["stop"].update(best=-1.0, best_epoch=0)
    one.best = [np.full_like(w, 7) for w in one.model.get_weights()]
    one.fit(loader())
    assert len(one.run["history"]) == 2 and one.run["stopped"]
    assert all((w == 7).all() for w in one.model.get_weights())


def test_a_checkpoint_holds_weights_optimizer_and_epochs():
    code = TrainingCode(line_code().model, "mse", "adam")
    whole = trainer(code, epochs=4)
    whole.fit(loader())
    first = trainer(code, epochs=2)
    first.fit(loader())
    state, run = first.state(), dict(first.run)
    second = trainer(code, epochs=4)
    second.restore(state)
    second.run = run
    rows = loader()
    rows.set_epoch(2)
    second.fit(rows)
    assert [row["epoch"] for row in second.run["history"]] == [0, 1, 2, 3]
    for one, other in zip(whole.model.get_weights(), second.model.get_weights(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)
    with pytest.raises(ValueError, match="the checkpoint in storeDir is of another model"):
        trainer(code, model_args={"units": 2}).restore(state)


def test_weights_of_rows_and_params_reach_the_optimizer():
    one = trainer(
        line_code(metrics=["mae"]), weight="w", clip_norm=0.5, accumulation=2, epochs=1,
        optimizer_args={"momentum": 0.9},
    )  # fmt: skip
    one.fit(loader())
    config = one.model.optimizer.get_config()
    assert config["global_clipnorm"] == 0.5 and config["momentum"] == pytest.approx(0.9)
    assert config["gradient_accumulation_steps"] == 2
    assert config["learning_rate"] == pytest.approx(0.1)


def test_a_loss_that_is_not_finite_and_wrong_columns_are_errors():
    with pytest.raises(ValueError, match=r"the loss is (nan|inf) in step"):
        trainer(learning_rate=1e30, epochs=9).fit(loader())
    with pytest.raises(ValueError, match="there are no rows to validate on"):
        trainer(validates=True).fit(loader(), [])
    drops = loader(map=lambda batch: {"x": batch["x"]})
    with pytest.raises(ValueError, match="a minibatch has no 'y', only x"):
        trainer().fit(drops)
    with pytest.raises(ValueError, match=r"returns a int: it must return a keras\.Model"):
        trainer(TrainingCode(lambda: 3, "mse", "sgd"))


def test_a_model_that_is_compiled_needs_neither_loss_nor_optimizer():
    model = line_code().model()
    model.compile(keras.optimizers.Adam(0.05), "mse")
    one = trainer(pickle.loads(pickle.dumps(TrainingCode(model, None, None))))
    one.fit(loader())
    assert type(one.model.optimizer).__name__ == "Adam"
    assert one.outputs() == [["float32", 1]]
    assert float(one.model.optimizer.learning_rate) == pytest.approx(0.1)
    with pytest.raises(ValueError, match="the model is compiled, so gradientClipNorm cannot be"):
        trainer(TrainingCode(model, None, None), clip_norm=1.0)
