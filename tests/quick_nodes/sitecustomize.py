"""On the path of the tests' processes: Keras imports scikit-learn and Matplotlib where they are
installed; in nodes of a cluster it is told that they are not. That saves a third of the 5 s of
processor time that a node takes to import TensorFlow.
"""

import sys


class _NotForKeras:
    """A finder that refuses both while a module of Keras is being imported."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name in ("sklearn", "matplotlib"):
            for importer, module in list(sys.modules.items()):
                spec = getattr(module, "__spec__", None)
                if importer.startswith("keras") and getattr(spec, "_initializing", False):
                    raise ModuleNotFoundError(f"no {name} for {importer}", name=name)


if "hearth.cluster.node.program" in sys.orig_argv:
    sys.meta_path.insert(0, _NotForKeras)
