"""horovod.tensorflow's API on Hearth's collective: `import hearth.horovod.tensorflow as hvd`.

docs/horovod_api.md lists each call.
"""

from __future__ import annotations

from hearth.horovod.shared_names import *  # noqa: F403
from hearth.horovod.tensorflow import elastic as elastic
from hearth.horovod.tensorflow.compression import Compression as Compression
from hearth.horovod.tensorflow.functions import allgather_object as allgather_object
from hearth.horovod.tensorflow.functions import (
    broadcast_global_variables as broadcast_global_variables,
)
from hearth.horovod.tensorflow.functions import broadcast_object as broadcast_object
from hearth.horovod.tensorflow.functions import broadcast_object_fn as broadcast_object_fn
from hearth.horovod.tensorflow.functions import broadcast_variables as broadcast_variables
from hearth.horovod.tensorflow.functions import local_rank_op as local_rank_op
from hearth.horovod.tensorflow.functions import local_size_op as local_size_op
from hearth.horovod.tensorflow.functions import process_set_included_op as process_set_included_op
from hearth.horovod.tensorflow.functions import rank_op as rank_op
from hearth.horovod.tensorflow.functions import size_op as size_op
from hearth.horovod.tensorflow.gradients import DistributedGradientTape as DistributedGradientTape
from hearth.horovod.tensorflow.gradients import (
    PartialDistributedGradientTape as PartialDistributedGradientTape,
)
from hearth.horovod.tensorflow.operations import allgather as allgather
from hearth.horovod.tensorflow.operations import allreduce as allreduce
from hearth.horovod.tensorflow.operations import alltoall as alltoall
from hearth.horovod.tensorflow.operations import broadcast as broadcast
from hearth.horovod.tensorflow.operations import broadcast_ as broadcast_
from hearth.horovod.tensorflow.operations import grouped_allgather as grouped_allgather
from hearth.horovod.tensorflow.operations import grouped_allreduce as grouped_allreduce
from hearth.horovod.tensorflow.operations import grouped_reducescatter as grouped_reducescatter
from hearth.horovod.tensorflow.operations import reducescatter as reducescatter
from hearth.horovod.tensorflow.optimizer import DistributedOptimizer as DistributedOptimizer
from hearth.horovod.tensorflow.sync_batch_norm import (
    SyncBatchNormalization as SyncBatchNormalization,
)
