"""horovod.tensorflow.keras's API for tf.keras: `import hearth.horovod.tensorflow.keras as hvd`.

docs/horovod_api.md lists each call.
"""

from __future__ import annotations

from tensorflow import keras

from hearth.horovod.objects import allgather_object as allgather_object
from hearth.horovod.objects import broadcast_object as broadcast_object
from hearth.horovod.shared_names import *  # noqa: F403
from hearth.horovod.tensorflow.keras import callbacks as callbacks
from hearth.horovod.tensorflow.keras import elastic as elastic
from hearth.horovod.tensorflow.keras_parts import *  # noqa: F403
from hearth.horovod.tensorflow.keras_parts import loader

load_model = loader(keras)
