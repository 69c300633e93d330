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
            # The module that imports it is the last one whose own import has begun.
            importers = [
                importer
                for importer, module in list(sys.modules.items())
                if getattr(getattr(module, "__spec__", None), "_initializing", False)
            ]
            if importers and importers[-1].startswith("keras"):
                raise ModuleNotFoundError(f"no {name} for {importers[-1]}", name=name)


if "hearth.cluster.node.program" in sys.orig_argv:
    sys.meta_path.insert(0, _NotForKeras)
