"""Every solver, option and learning rate policy for five steps, compared with BVLC Caffe."""

from __future__ import annotations

import numpy as np
import pytest
from golden import Case, cases, computed_on  # noqa: F401 (a fixture)
from hand_fed import fed_solver, set_params

from hearth.native import _caffe


def compare_iteration(case: Case, solver: _caffe.Solver, arrays: dict[str, np.ndarray]) -> None:
    """Compares parameters, history and loss with the arrays of the iteration that just ended."""
    prefix = f"iter{solver.iter}/"
    history = solver.history
    for key, expected in arrays.items():
        if not key.startswith(prefix):
            continue
        kind, _, rest = key.removeprefix(prefix).partition("/")
        if kind == "param":
            layer, index = rest.split("/")
            case.close(solver.net.params[layer][int(index)].data, expected, key)
        elif kind == "history":
            case.close(history[int(rest)], expected, key)
        elif kind == "last_loss":
            case.close(np.float32(solver.last_loss), expected, key)


@pytest.mark.usefixtures("computed_on")
@pytest.mark.parametrize("case", cases("solver"), ids=lambda case: case.name)
def test_solver_steps_as_caffe_did(case: Case) -> None:
    arrays = case.arrays()
    solver = fed_solver(case["solver_prototxt"], arrays)
    set_params(solver.net, arrays, "param/")
    for iteration in range(1, case["iterations"] + 1):
        case.close(np.float32(solver.lr), arrays[f"iter{iteration}/lr"], "lr")
        solver.step(1)
        compare_iteration(case, solver, arrays)


@pytest.mark.parametrize("case", cases("solver"), ids=lambda case: case.name)
def test_a_solver_applies_the_multipliers(case: Case) -> None:
    solver = fed_solver(case["solver_prototxt"], case.arrays())
    expected = [(param["lr_mult"], param["decay_mult"]) for param in case["learnable"]]
    assert solver.net.learnable == expected


@pytest.mark.parametrize("case", cases("lr"), ids=lambda case: case.name)
def test_learning_rate_follows_its_policy(case: Case) -> None:
    rate = _caffe.LearningRate(case["solver_prototxt"])
    expected = case.arrays()["lr"]
    case.close(np.float32([rate.at(i) for i in range(len(expected))]), expected, "lr")
