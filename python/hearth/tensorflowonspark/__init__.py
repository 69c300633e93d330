"""TensorFlow programs on Spark executors: the TensorFlowOnSpark API on Hearth.

Importing this package, or any of its modules, loads neither tensorflow nor torch nor the core.
"""

import warnings
from importlib import metadata

__version__ = "2.2.5"


def _warn_of_upstream() -> None:
    """Warns if TensorFlowOnSpark itself is installed, because both install a package
    tensorflowonspark, with files of the same names."""
    try:
        found = metadata.version("tensorflowonspark")
    except metadata.PackageNotFoundError:
        return
    warnings.warn(
        f"the distribution tensorflowonspark {found} is installed together with hearth-spark. Both "
        "have the package tensorflowonspark: the last one installed is imported, and uninstalling "
        "one removes the other's files. Run `pip uninstall tensorflowonspark`, then "
        "`pip install --force-reinstall --no-deps hearth-spark`",
        stacklevel=3,
    )


_warn_of_upstream()
