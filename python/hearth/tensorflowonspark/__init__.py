"""TensorFlow programs on Spark executors: the TensorFlowOnSpark API on Hearth's rooms.

Importing this package, or any of its modules, loads neither tensorflow nor torch nor the core.
"""

__version__ = "2.2.5"
