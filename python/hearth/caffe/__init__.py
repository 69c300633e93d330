"""pycaffe on Hearth's engine: nets, solvers, layers in Python, NetSpec, images.

Programs that `import caffe` use the package `caffe`, an alias of this one. It needs oneDNN (the
wheel's [caffe] extra), and torch for nets on GPUs. Failures of the engine are ValueError,
FileNotFoundError or HearthError; each says what failed, where, and what to do.
"""

from __future__ import annotations

try:
    from hearth.native import load_engine_libraries

    load_engine_libraries()
    from hearth.native import _caffe  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"hearth.caffe needs the compiled engine: pip install 'hearth-spark[caffe]' ({error})"
    ) from error

from hearth.caffe import coord_map, draw, io, net_spec, proto
from hearth.caffe.alias import warn_of_another_caffe
from hearth.caffe.classifier import Classifier
from hearth.caffe.detector import Detector
from hearth.caffe.layer import Layer
from hearth.caffe.modes import (
    NCCL,
    TEST,
    TRAIN,
    Timer,
    has_nccl,
    init_log,
    layer_type_list,
    log,
    set_device,
    set_mode_cpu,
    set_mode_gpu,
    set_multiprocess,
    set_random_seed,
    set_solver_count,
    set_solver_rank,
    solver_count,
    solver_rank,
)
from hearth.caffe.net import Net
from hearth.caffe.net_spec import NetSpec, layers, params, to_proto
from hearth.caffe.solver import (
    AdaDeltaSolver,
    AdaGradSolver,
    AdamSolver,
    NesterovSolver,
    RMSPropSolver,
    SGDSolver,
    get_solver,
)

warn_of_another_caffe()

# The pycaffe version of this API; programs compare it.
__version__ = "1.0.0"

__all__ = [
    "NCCL",
    "TEST",
    "TRAIN",
    "AdaDeltaSolver",
    "AdaGradSolver",
    "AdamSolver",
    "Classifier",
    "Detector",
    "Layer",
    "NesterovSolver",
    "Net",
    "NetSpec",
    "RMSPropSolver",
    "SGDSolver",
    "Timer",
    "__version__",
    "coord_map",
    "draw",
    "get_solver",
    "has_nccl",
    "init_log",
    "io",
    "layer_type_list",
    "layers",
    "log",
    "net_spec",
    "params",
    "proto",
    "set_device",
    "set_mode_cpu",
    "set_mode_gpu",
    "set_multiprocess",
    "set_random_seed",
    "set_solver_count",
    "set_solver_rank",
    "solver_count",
    "solver_rank",
    "to_proto",
]
