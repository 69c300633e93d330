"""pycaffe on Hearth's engine: nets, solvers, layers in Python, NetSpec, images.

`import caffe` imports the package `caffe`, an alias of this one. The package needs oneDNN (the
wheel's [caffe] extra), and torch for nets on GPUs. The engine raises ValueError, FileNotFoundError
or HearthError; each message says what failed, where, and what to do.
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

from hearth.caffe import coord_map, draw, io, modes, net_spec, proto
from hearth.caffe.alias import warn_of_another_caffe
from hearth.caffe.classifier import Classifier
from hearth.caffe.detector import Detector
from hearth.caffe.layer import Layer
from hearth.caffe.modes import *  # noqa: F403
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

# The pycaffe version whose API this is; some programs check it.
__version__ = "1.0.0"

__all__ = [
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
    "__version__",
    "coord_map",
    "draw",
    "get_solver",
    "io",
    "layers",
    "net_spec",
    "params",
    "proto",
    "to_proto",
    *modes.__all__,
]
