"""Elastic programs of PyTorch: `@hvd.elastic.run` and hvd.elastic.TorchState."""

from __future__ import annotations

from hearth.horovod.elastic import ObjectState as ObjectState
from hearth.horovod.elastic import State as State
from hearth.horovod.elastic import run as run
from hearth.horovod.torch.elastic.sampler import ElasticSampler as ElasticSampler
from hearth.horovod.torch.elastic.state import TorchState as TorchState
