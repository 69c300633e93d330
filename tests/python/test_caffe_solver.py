"""caffe.SGDSolver and the other solvers: steps, state, callbacks."""

from __future__ import annotations

import gc
import shutil
import signal
import threading
from pathlib import Path

import numpy as np
import pytest

from hearth import caffe

NET = """
layer { name: "data" type: "DummyData" top: "data" top: "target"
  dummy_data_param { shape { dim: 8 dim: 3 } shape { dim: 8 dim: 1 }
    data_filler { type: "gaussian" } data_filler { type: "constant" value: 1 } } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param { num_output: 1 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "EuclideanLoss" bottom: "ip" bottom: "target" top: "loss" }
"""


def write(folder: Path, extra: str = "", net: str = NET) -> str:
    (folder / "net.prototxt").write_text(net)
    file = folder / "solver.prototxt"
    file.write_text(
        f'net: "{folder}/net.prototxt" base_lr: 0.1 lr_policy: "fixed" max_iter: 40 random_seed: 4'
        f' snapshot_prefix: "{folder}/model" test_iter: 2 test_interval: 20 {extra}'
    )
    return str(file)


def weights(solver: caffe.SGDSolver) -> np.ndarray:
    return solver.net.params["ip"][0].data.copy()


@pytest.mark.parametrize(
    ("name", "extra"),
    [("SGD", ""), ("Nesterov", "momentum: 0.9"), ("AdaGrad", ""), ("RMSProp", "rms_decay: 0.9"),
     ("AdaDelta", "momentum: 0.9 delta: 1e-6"), ("Adam", "momentum: 0.9")],
)  # fmt: skip
def test_every_solver_lowers_the_loss(tmp_path: Path, name: str, extra: str) -> None:
    caffe.init_log(2)
    solver = getattr(caffe, name + "Solver")(write(tmp_path, extra))
    solver.net.forward()
    before = float(solver.net.blobs["loss"].data)
    solver.solve()
    assert solver.iter == 40
    assert float(solver.net.blobs["loss"].data) < before
    assert (tmp_path / "model_iter_40.caffemodel").is_file()


def test_get_solver_follows_the_file(tmp_path: Path) -> None:
    assert type(caffe.get_solver(write(tmp_path))) is caffe.SGDSolver
    assert type(caffe.get_solver(write(tmp_path, 'type: "Adam"'))) is caffe.AdamSolver
    with pytest.raises(ValueError, match="'Adamm'"):
        caffe.get_solver(write(tmp_path, 'type: "Adamm"'))


def test_a_class_that_differs_from_the_file_is_reported(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="type Adam, but SGDSolver trains with SGD"):
        solver = caffe.SGDSolver(write(tmp_path, 'type: "Adam"'))
    assert solver.param.type == "SGD"


def test_step_moves_weights_and_counts(tmp_path: Path) -> None:
    solver = caffe.SGDSolver(write(tmp_path))
    before = weights(solver)
    solver.step(3)
    assert solver.iter == 3
    assert not np.array_equal(weights(solver), before)
    assert solver.net is solver.net
    assert [list(net.params) for net in solver.test_nets] == [["ip"]]
    np.testing.assert_array_equal(solver.test_nets[0].params["ip"][0].data, weights(solver))


def test_one_update_by_hand_is_one_step(tmp_path: Path) -> None:
    fixed = NET.replace('"gaussian"', '"constant" value: 2')
    solver = caffe.SGDSolver(write(tmp_path, "momentum: 0.9", fixed))
    other = caffe.SGDSolver(write(tmp_path, "momentum: 0.9", fixed))
    for _ in range(3):
        other.net.clear_param_diffs()
        other.net.forward()
        other.net.backward()
        other.apply_update()
    solver.step(3)
    assert other.iter == solver.iter == 3
    np.testing.assert_allclose(weights(other), weights(solver), rtol=1e-6)


def test_an_update_by_hand_takes_the_files_rate(tmp_path: Path) -> None:
    solver = caffe.SGDSolver(write(tmp_path))
    weight = solver.net.layers[1].blobs[0]
    weight.data[...] = 0
    weight.diff[...] = 1
    solver.apply_update()
    np.testing.assert_allclose(weight.data, -0.1)


def test_solving_writes_state_only_on_request(tmp_path: Path) -> None:
    solver = caffe.SGDSolver(write(tmp_path, "snapshot_after_train: false"))
    solver.solve(None)
    assert solver.iter == 40
    assert not list(tmp_path.glob("model*"))
    nets = [solver.net, *solver.test_nets]
    solver.snapshot()
    suffixes = {file.suffix for file in tmp_path.glob("model_iter_40.*")}
    assert suffixes >= {".caffemodel", ".solverstate"}
    del solver
    gc.collect()
    for net in nets:
        assert np.isfinite(sum(blob.data.sum() + blob.diff.sum() for blob in net._blobs))


def test_base_lr_can_be_changed_while_training(tmp_path: Path) -> None:
    solver = caffe.SGDSolver(write(tmp_path))
    assert solver.param.max_iter == 40
    assert solver.param.base_lr == pytest.approx(0.1)
    assert solver.param.average_loss == 1  # the default
    solver.param.base_lr = 0
    assert solver.lr == 0
    before = weights(solver)
    solver.step(2)
    np.testing.assert_array_equal(weights(solver), before)
    with pytest.raises(AttributeError, match="only base_lr"):
        solver.param.max_iter = 3


def test_callbacks_come_once_per_iteration(tmp_path: Path) -> None:
    solver = caffe.SGDSolver(write(tmp_path, "iter_size: 3"))
    calls: list[tuple[str, int, bool]] = []

    def note(what: str) -> None:
        moved = np.abs(solver.net.params["ip"][0].diff).max() > 0
        calls.append((what, solver.iter, bool(moved)))

    solver.add_callback(lambda: note("start"), lambda: note("ready"))
    solver.step(2)
    assert [(what, iteration) for what, iteration, _ in calls] == [
        ("start", 0), ("ready", 0), ("start", 1), ("ready", 1),
    ]  # fmt: skip
    assert [moved for what, _, moved in calls if what == "ready"] == [True, True]


def test_a_callback_may_change_gradients(tmp_path: Path) -> None:
    solver = caffe.SGDSolver(write(tmp_path))
    before = weights(solver)
    solver.add_callback(lambda: None, solver.net.clear_param_diffs)
    solver.step(2)
    np.testing.assert_array_equal(weights(solver), before)


def test_a_failing_callback_ends_the_step(tmp_path: Path) -> None:
    solver = caffe.SGDSolver(write(tmp_path))
    solver.add_callback(lambda: 1 / 0, lambda: None)
    with pytest.raises(ZeroDivisionError):
        solver.step(1)


def test_net_callbacks_come_while_the_solver_steps(tmp_path: Path) -> None:
    solver = caffe.SGDSolver(write(tmp_path, "test_initialization: false"))
    seen: list[int] = []
    solver.net.after_backward(seen.append)
    solver.step(1)
    assert seen == [2, 1, 0]


def test_a_snapshot_folder_that_vanishes_is_made_again(tmp_path: Path) -> None:
    folder = tmp_path / "snapshots"
    folder.mkdir()
    file = Path(write(tmp_path, "snapshot: 2"))
    file.write_text(file.read_text().replace(f"{tmp_path}/model", f"{folder}/model"))
    solver = caffe.get_solver(str(file))
    solver.step(2)
    shutil.rmtree(folder)
    solver.step(2)
    names = {path.name for path in folder.iterdir()}
    assert {"model_iter_4.caffemodel", "model_iter_4.solverstate"} <= names


def test_restore_resumes_from_a_snapshot(tmp_path: Path) -> None:
    solver = caffe.SGDSolver(write(tmp_path, "momentum: 0.9"))
    solver.step(5)
    solver.snapshot()
    solver.step(5)
    resumed = caffe.SGDSolver(write(tmp_path, "momentum: 0.9"))
    resumed.restore(str(tmp_path / "model_iter_5.solverstate"))
    assert resumed.iter == 5
    resumed.step(5)
    np.testing.assert_array_equal(weights(resumed), weights(solver))
    again = caffe.SGDSolver(write(tmp_path, "momentum: 0.9"))
    again.solve(str(tmp_path / "model_iter_5.solverstate"))
    assert again.iter == 40


def test_shared_weights_are_trained(tmp_path: Path) -> None:
    solver = caffe.SGDSolver(write(tmp_path))
    other = caffe.Net(str(tmp_path / "net.prototxt"), caffe.TRAIN)
    before = other.params["ip"][0].data.copy()
    solver.share_weights(other)
    solver.step(3)
    assert not np.array_equal(other.params["ip"][0].data, before)
    np.testing.assert_array_equal(other.params["ip"][0].data, weights(solver))


def test_ctrl_c_ends_a_long_step(tmp_path: Path) -> None:
    solver = caffe.SGDSolver(write(tmp_path))
    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    with pytest.raises(KeyboardInterrupt):
        timer.start()
        solver.step(100_000_000)
    timer.join()
    assert solver.iter > 0


def test_the_solver_outlives_its_python_object_while_its_net_is_used(tmp_path: Path) -> None:
    net = caffe.SGDSolver(write(tmp_path)).net
    blob = caffe.SGDSolver(write(tmp_path)).net.params["ip"][0]
    assert net.forward()["loss"] >= 0
    assert blob.data.shape == (1, 3)


def test_wrong_solver_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"missing\.prototxt"):
        caffe.SGDSolver(str(tmp_path / "missing.prototxt"))
    with pytest.raises(ValueError, match=r"solver\.prototxt:1:"):
        caffe.SGDSolver(write(tmp_path, "bse_lr: 1"))
