"""horovod.torch's API on Hearth's collective: `import hearth.horovod.torch as hvd`.

docs/horovod_api.md lists each call.
"""

from __future__ import annotations

from hearth.horovod.objects import allgather_object as allgather_object
from hearth.horovod.objects import broadcast_object as broadcast_object
from hearth.horovod.shared_names import *  # noqa: F403
from hearth.horovod.torch import elastic as elastic
from hearth.horovod.torch.asynchronous import *  # noqa: F403
from hearth.horovod.torch.compression import Compression as Compression
from hearth.horovod.torch.functions import broadcast_optimizer_state as broadcast_optimizer_state
from hearth.horovod.torch.functions import broadcast_parameters as broadcast_parameters
from hearth.horovod.torch.handles import poll as poll
from hearth.horovod.torch.handles import synchronize as synchronize
from hearth.horovod.torch.operations import allgather as allgather
from hearth.horovod.torch.operations import allreduce as allreduce
from hearth.horovod.torch.operations import allreduce_ as allreduce_
from hearth.horovod.torch.operations import alltoall as alltoall
from hearth.horovod.torch.operations import broadcast as broadcast
from hearth.horovod.torch.operations import broadcast_ as broadcast_
from hearth.horovod.torch.operations import grouped_allgather as grouped_allgather
from hearth.horovod.torch.operations import grouped_allreduce as grouped_allreduce
from hearth.horovod.torch.operations import grouped_allreduce_ as grouped_allreduce_
from hearth.horovod.torch.operations import grouped_reducescatter as grouped_reducescatter
from hearth.horovod.torch.operations import reducescatter as reducescatter
from hearth.horovod.torch.optimizer import DistributedOptimizer as DistributedOptimizer
from hearth.horovod.torch.sync_batch_norm import SyncBatchNorm as SyncBatchNorm
