"""Hides scikit-learn and Matplotlib from Keras in the tests' nodes.

Keras imports them if they are installed. Without them, importing TensorFlow takes a node a third
less of its 5 s of processor time.
"""

import sys


class _NotForKeras:
    """A finder that hides both packages while a module of Keras is being imported."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name in ("sklearn", "matplotlib"):
            for importer, module in list(sys.modules.items()):
                spec = getattr(module, "__spec__", None)
                if importer.startswith("keras") and getattr(spec, "_initializing", False):
                    raise ModuleNotFoundError(f"no {name} for {importer}", name=name)


if "hearth.cluster.node.program" in sys.orig_argv:
    sys.meta_path.insert(0, _NotForKeras)
