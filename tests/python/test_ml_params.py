"""The estimators' Params, queues for task slots, early stopping and weights, without Spark."""

from __future__ import annotations

import math
import threading
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from hearth.ml import KerasEstimator, TorchEstimator, TrainingSummary, training_slots
from hearth.ml.early_stop import EarlyStop
from hearth.ml.training_slots import SlotQueue, exclusive_store, slots_of_trainings
from hearth.ml.training_spec import TrainingSpec


def function(**_):
    return None


def torch_stage(**params):
    return TorchEstimator(function, function, function, **params)


@pytest.mark.parametrize("kind", [TorchEstimator, KerasEstimator])
def test_params_are_set_by_name_and_by_the_names_of_other_libraries(kind):
    stage = kind(function, function, function, numWorkers=3, featuresCols=["a", "b"], epochs=7)
    assert (stage.getWorkers(), stage.getInputCols(), stage.getEpochs()) == (3, ["a", "b"], 7)
    assert stage.setNumWorkers(4).setFeaturesCols(["c"]).getWorkers() == 4
    stage = kind(function, function, function, validationCol="held", checkpointDir="/tmp/run")
    assert stage.getOrDefault("validationIndicatorCol") == "held"
    assert stage.getStoreDir() == "/tmp/run"
    with pytest.raises(TypeError, match=f"{kind.__name__} has no Param 'epoch'"):
        kind(function, function, function, epoch=7)


def test_mlflow_gets_each_param_and_each_argument_of_the_model():
    params = torch_stage(epochs=7, modelArgs={"hidden": 32}, labelCols=["a", "b"])._plain_params()
    wanted = {"estimator": "TorchEstimator", "epochs": 7, "modelArgs.hidden": 32, "workers": 1}
    assert {**wanted, "labelCols": ["a", "b"]}.items() <= params.items()
    assert "modelArgs" not in params and "lossWeights" not in params


def test_each_param_reaches_its_field_of_the_training():
    values = {
        "weightCol": "w", "batchSize": 7, "epochs": 3, "learningRate": 0.5, "seed": 9,
        "shuffle": False, "accumulationSteps": 2, "gradientClipNorm": 1.5,
        "gradientClipValue": 2.5, "precision": "bf16", "device": "cpu", "patience": 4,
        "monitor": "loss", "monitorMode": "min", "minDelta": 0.25, "restoreBest": False,
        "lossWeights": [0.75], "schedulerInterval": "step", "modelArgs": {"a": 1},
        "optimizerArgs": {"b": 2}, "loaderThreads": 6, "checkpointSteps": 5, "storeDir": "/s",
        "verbose": True,
    }  # fmt: skip
    columns = {"featuresCol": "x", "labelCol": "y"}
    assert torch_stage(**columns, **values)._spec(None) == TrainingSpec(
        ("x",), ("y",), weight="w", batch_size=7, epochs=3, learning_rate=0.5, seed=9,
        shuffle=False, accumulation=2, clip_norm=1.5, clip_value=2.5, precision="bf16",
        device="cpu", patience=4, monitor="loss", monitor_mode="min", min_delta=0.25,
        restore_best=False, loss_weights=(0.75,), scheduler_interval="step", model_args={"a": 1},
        optimizer_args={"b": 2}, threads=6, checkpoint_steps=5, resumes=True, verbose=True,
    )  # fmt: skip
    assert torch_stage(**columns)._spec(None) == TrainingSpec(("x",), ("y",), learning_rate=1e-3)


def test_arguments_of_the_model_are_a_param_that_json_holds():
    stage = torch_stage(modelArgs={"hidden": 32})
    trial = stage.copy({stage.modelArgs: {"hidden": 64}})
    assert (stage.getModelArgs(), trial.getModelArgs()) == ({"hidden": 32}, {"hidden": 64})
    for wrong in ("hidden", {"hidden": function}, {1: 2}):
        with pytest.raises(TypeError):
            torch_stage(modelArgs=wrong)


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"precision": "fp8"}, "precision is 'fp8': it must be one of float32, bf16, fp16"),
        ({"batchSize": 0}, "batchSize is 0: it must be at least 1"),
        ({"epochs": 0}, "epochs is 0: it must be at least 1"),
        ({"accumulationSteps": 0}, "accumulationSteps is 0: it must be at least 1"),
    ],
)
def test_values_that_no_training_can_have_are_refused(params, said):
    with pytest.raises(ValueError, match=said):
        torch_stage(**params)._check_params()


def test_code_of_an_untrusted_stage_is_not_unpickled():
    stage = torch_stage()
    assert stage._kept().model is not None
    stage._distrusted = "/some/folder"
    with pytest.raises(ValueError, match=r"was loaded from /some/folder as untrusted"):
        stage._kept()


class Requests:
    """Threads that request slots from a queue and hold them until released."""

    def __init__(self, slots):
        self.queue, self.slots, self.running = SlotQueue(), slots, {}
        self.changed = threading.Condition()

    def start(self, name, count):
        go = threading.Event()

        def run():
            with self.queue.hold(count, lambda: self.slots):
                with self.changed:
                    self.running[name] = go
                    self.changed.notify_all()
                assert go.wait(60)
                with self.changed:
                    del self.running[name]
                    self.changed.notify_all()

        threading.Thread(target=run, daemon=True).start()

    def wait_for(self, *names):
        with self.changed:
            assert self.changed.wait_for(lambda: set(self.running) == set(names), 60)

    def queued(self, count):
        turns = self.queue
        with turns._changed:
            assert turns._changed.wait_for(lambda: len(turns._queue) == count, 60)


def test_trainings_run_concurrently_while_there_are_slots():
    requests = Requests(slots=2)
    requests.start("a", 1)
    requests.wait_for("a")
    requests.start("b", 1)
    requests.wait_for("a", "b")
    requests.start("c", 2)
    requests.queued(1)
    requests.start("d", 1)  # queued after c, so that c does not starve
    requests.queued(2)
    requests.running["a"].set()
    requests.wait_for("b")
    requests.running["b"].set()
    requests.wait_for("c")
    requests.running["c"].set()
    requests.wait_for("d")
    requests.running["d"].set()
    requests.wait_for()


@pytest.mark.parametrize("slots", [1, None])
def test_a_training_that_needs_more_slots_than_there_are_runs_alone(slots):
    requests = Requests(slots)
    requests.start("a", 3)
    requests.wait_for("a")
    requests.start("b", 1)
    requests.queued(1)
    requests.running["a"].set()
    requests.wait_for("b")
    requests.running["b"].set()
    requests.wait_for()


def profile(cpus):
    request = SimpleNamespace(amount=cpus)
    return SimpleNamespace(taskResources={"cpus": request}, executorResources={})


@pytest.mark.parametrize(
    ("cpus", "slots_of_kind", "conf", "found"),
    [
        (None, 8, {}, 8),
        (2, 4, {}, 3),  # of eight cores, two remain to feed three trainings' rows
        (1, 2, {}, 2),  # one per GPU, and enough cores remain
        (8, 1, {}, 0),
        (2, 4, {"spark.task.cpus": "2"}, 3),
        (2, 4, {"spark.dynamicAllocation.enabled": "true"}, 4),
        (2, None, {}, None),
    ],
)
def test_workers_that_hold_cores_leave_a_slot_to_the_rows(
    monkeypatch, cpus, slots_of_kind, conf, found
):
    ordinary = 8 // int(conf.get("spark.task.cpus", "1"))
    monkeypatch.setattr(
        training_slots, "slots_now", lambda spark, kind: ordinary if kind is None else slots_of_kind
    )
    spark = SimpleNamespace(conf=SimpleNamespace(get=lambda key, default: conf.get(key, default)))
    assert slots_of_trainings(spark, None if cpus is None else profile(cpus)) == found


def test_a_folder_of_checkpoints_is_one_trainings_at_a_time():
    with exclusive_store("hdfs:///a/"), exclusive_store("hdfs:///b"):
        with pytest.raises(
            ValueError, match="another fit of this program is using storeDir hdfs:///a"
        ):
            exclusive_store("hdfs:///a").__enter__()
        with exclusive_store(""), exclusive_store(""):
            pass
    with exclusive_store("hdfs:///a"):
        pass


def test_early_stopping_counts_epochs_without_a_better_one():
    stop = EarlyStop("val_loss", 2, min_delta=0.1)
    found = [stop.observe({"val_loss": v}, i) for i, v in enumerate([1.0, 0.95, 0.8, math.nan])]
    assert found == [True, False, True, False] and not stop.is_over
    assert not stop.observe({"val_loss": 0.75}, 4) and stop.is_over
    assert stop.state == {"best": 0.8, "best_epoch": 2, "waited": 2}
    greater = EarlyStop("val_accuracy", 1)
    assert [greater.observe({"val_accuracy": v}, 0) for v in (0.5, 0.6, 0.4)] == [True, True, False]


def test_a_summary_is_one_of_pyspark():
    rows = [{"epoch": 0, "loss": 2.0}, {"epoch": 1, "loss": 1.0}]
    summary = TrainingSummary(rows, 1, False)
    assert (summary.totalIterations, summary.objectiveHistory) == (2, [2.0, 1.0])
    assert TrainingSummary(**summary.to_dict()).history == rows


def test_weights_that_share_memory_are_safetensors_too():
    torch = pytest.importorskip("torch")
    pytest.importorskip("safetensors")
    from hearth.ml import weights

    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 3))
    model[1].weight = model[0].weight
    state = model.state_dict()
    found = weights.unpacked(weights.packed(state))
    assert all(torch.equal(found[name], value) for name, value in state.items())
    with pytest.raises(ValueError, match="'extra' of the module's state is a int"):
        weights.packed({"extra": 3})


def test_without_a_jvm_a_stage_is_overwritten_by_a_table():
    client = Mock(spec=["range"])  # of Spark Connect
    writer = torch_stage().write().session(client).overwrite()
    writer.saveImpl = Mock()
    writer.save("/models/line")
    mode = client.range.return_value.selectExpr.return_value.write.mode
    mode.assert_called_once_with("overwrite")
    mode.return_value.text.assert_called_once_with("/models/line")
    writer.saveImpl.assert_called_once_with("/models/line")
