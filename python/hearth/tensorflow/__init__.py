"""TensorFlow reads and writes hdfs:// again: tf.io.gfile, datasets, checkpoints, SavedModels.

A node of a TensorFlow cluster has these file systems once it imports TensorFlow; other programs
call register_filesystems().
"""

from hearth.tensorflow.filesystems import register_filesystems

__all__ = ["register_filesystems"]
