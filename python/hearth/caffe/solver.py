"""pycaffe's solvers: SGDSolver("solver.prototxt"), get_solver, step, solve."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any

from hearth.caffe.message import Message
from hearth.caffe.modes import next_seed
from hearth.caffe.net import Net
from hearth.errors import invalid
from hearth.native import _caffe

__all__ = [
    "AdaDeltaSolver",
    "AdaGradSolver",
    "AdamSolver",
    "NesterovSolver",
    "RMSPropSolver",
    "SGDSolver",
    "Solver",
    "get_solver",
]


class SolverParam:
    """A solver's parameters: fields of SolverParameter with defaults. Only base_lr can be set."""

    def __init__(self, native: _caffe.Solver) -> None:
        object.__setattr__(self, "_native", native)

    def __getattr__(self, name: str) -> Any:
        return getattr(Message.from_text("SolverParameter", self._native.prototxt), name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "base_lr":
            raise AttributeError(f"{name} of a running solver cannot be changed; only base_lr can")
        self._native.set_base_lr(value)


class Solver:
    """The training of one net. Not thread-safe; Ctrl-C ends a step after the current iteration.

    Attributes:
        net: the train net.
        test_nets: the test nets; they share the train net's weights after the first test.
        param: the solver's parameters, such as `param.max_iter`; `param.base_lr` can be set.
    """

    type: str = ""

    def __init__(self, solver_file: str | os.PathLike[str]) -> None:
        """Builds the solver of a prototxt file, with the nets that it names.

        Raises:
            ValueError: "file:line:column: ..." or the name of the invalid layer.
            FileNotFoundError: a file does not exist.
        """
        path = os.fspath(solver_file)
        given = Message.from_text("SolverParameter", _caffe.read_solver(path), path)
        if given.HasField("type") and given.type != self.type:
            warnings.warn(
                f"{path} has type {given.type}, but {type(self).__name__} trains with {self.type}: "
                "use caffe.get_solver to follow the file",
                stacklevel=2,
            )
        self._native = _caffe.Solver.read(path, self.type, next_seed())
        self.net = Net.of(self._native.net)
        self.test_nets = [Net.of(net) for net in self._native.test_nets]
        self.param = SolverParam(self._native)

    @property
    def iter(self) -> int:
        """The number of completed iterations."""
        return self._native.iter

    @property
    def lr(self) -> float:
        """The learning rate of the next iteration."""
        return self._native.lr

    def step(self, iterations: int) -> None:
        """Trains for `iterations` iterations, with due tests, displays and snapshots."""
        self._native.step(iterations)

    def solve(self, resume_file: str | os.PathLike[str] | None = None) -> None:
        """Trains to max_iter, optionally from a .solverstate."""
        if resume_file is not None:
            self.restore(resume_file)
        self._native.solve()

    def restore(self, state_file: str | os.PathLike[str]) -> None:
        """Resumes from a .solverstate file and the model that it names."""
        self._native.restore(os.fspath(state_file))

    def snapshot(self) -> tuple[str, str]:
        """Writes the model and the solver's state under snapshot_prefix; returns the file names."""
        return self._native.snapshot()

    def apply_update(self) -> None:
        """Ends an iteration: updates the weights from the net's diffs and increments `iter`."""
        self._native.apply_update()

    def share_weights(self, net: Net) -> None:
        """Uses another net's weights, without a copy, for layers of the same names."""
        self.net.share_with(net)

    def add_callback(
        self, on_start: Callable[[], Any], on_gradients_ready: Callable[[], Any]
    ) -> None:
        """Registers on_start() before every iteration, on_gradients_ready() before every update."""
        self._native.add_callback(on_start, on_gradients_ready)


class SGDSolver(Solver):
    """Stochastic gradient descent with momentum."""

    type = "SGD"


class NesterovSolver(Solver):
    """Nesterov's accelerated gradient."""

    type = "Nesterov"


class AdaGradSolver(Solver):
    """Divides each learning rate by the root of the sum of past squared gradients."""

    type = "AdaGrad"


class RMSPropSolver(Solver):
    """Divides each learning rate by the root of a running mean of squared gradients."""

    type = "RMSProp"


class AdaDeltaSolver(Solver):
    """Derives each learning rate from running means of squared gradients and squared updates."""

    type = "AdaDelta"


class AdamSolver(Solver):
    """Adaptive moment estimation."""

    type = "Adam"


_CLASSES = {kind.type: kind for kind in Solver.__subclasses__()}


def get_solver(solver_file: str | os.PathLike[str]) -> Solver:
    """Creates a solver of the type that the file names (default SGD).

    Raises:
        ValueError: the type is not one of the six solver types.
    """
    path = os.fspath(solver_file)
    kind = Message.from_text("SolverParameter", _caffe.read_solver(path), path).type
    if kind not in _CLASSES:
        raise invalid(f"{path}: solver type {kind!r} is not one of {', '.join(_CLASSES)}")
    return _CLASSES[kind](path)
