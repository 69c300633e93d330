"""The backend "hearth" for PyTorch 2.6 to 2.13, whose class Backend cannot be subclassed in Python.

In these versions a backend in Python is a whole process group, which receives the tensors of all
devices. OlderGroup passes CPU tensors to Hearth and, with the backend "cpu:hearth,cuda:nccl", GPU
tensors to NCCL.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch._C import _distributed_c10d as c10d
from torch.distributed import Work
from torch.futures import Future

from hearth.torch.work import CompletedWork

_IS_2_6 = torch.__version__.startswith("2.6.")
_CPU, _GPU = torch.device("cpu"), torch.device("cuda")
# For each method of ProcessGroup: its name in today's Backend, and the class of its last argument
# if that argument is optional.
_METHODS: dict[str, tuple[str, type | None]] = {
    "allreduce": ("allreduce", c10d.AllreduceOptions),
    "allreduce_coalesced": ("allreduce_coalesced", c10d.AllreduceCoalescedOptions),
    "reduce": ("reduce", c10d.ReduceOptions),
    "reduce_scatter": ("reduce_scatter", c10d.ReduceScatterOptions),
    "_reduce_scatter_base": ("reduce_scatter_single", c10d.ReduceScatterOptions),
    "reduce_scatter_tensor_coalesced": (
        "reduce_scatter_single_coalesced",
        c10d.ReduceScatterOptions,
    ),
    "allgather": ("allgather", c10d.AllgatherOptions),
    "allgather_coalesced": ("allgather_coalesced", c10d.AllgatherOptions),
    "_allgather_base": ("all_gather_single", c10d.AllgatherOptions),
    "allgather_into_tensor_coalesced": ("all_gather_single_coalesced", c10d.AllgatherOptions),
    "gather": ("gather", c10d.GatherOptions),
    "scatter": ("scatter", c10d.ScatterOptions),
    "broadcast": ("broadcast", c10d.BroadcastOptions),
    "alltoall": ("alltoall", c10d.AllToAllOptions),
    "alltoall_base": ("all_to_all_single", c10d.AllToAllOptions),
    "send": ("send", None),
    "recv": ("recv", None),
}
# PyTorch 2.13's ProcessGroup already uses Backend's names.
_METHODS |= {name: (name, options) for name, options in _METHODS.values()}


def backends_are_groups() -> bool:
    """Whether this PyTorch needs a process group because it does not support a Backend in
    Python."""
    try:
        type("Probe", (c10d.Backend,), {})(0, 1)
    except TypeError:  # Backend has no constructor
        return True
    return False


class PlainBackend:
    """The base class of a backend written in Python, instead of PyTorch's Backend."""

    def __init__(self, rank: int, world: int):
        self._rank = rank
        self._world = world

    def rank(self) -> int:
        """This process's rank in the group."""
        return self._rank

    def size(self) -> int:
        """The number of ranks in the group."""
        return self._world


class _Held(Work):
    """A Work that stays referenced in `held` until its result is requested, because PyTorch 2.6's
    C++ code keeps no reference to the Python object, and would wait forever for a deleted one."""

    def __init__(self, work: Work, held: set[_Held]):
        super().__init__()
        self._work = work
        self._held = held
        held.add(self)

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        self._held.discard(self)
        return self._work.wait(timeout)

    def get_future(self) -> Future[Any]:
        self._held.discard(self)
        return self._work.get_future()


class OlderGroup(dist.ProcessGroup):
    """One rank of a process group that passes CPU tensors to `cpu`, a HearthBackend.

    `options`: PyTorch's options of the group; `gpu_options`: NCCL's, if the program passed them.
    """

    def __init__(self, cpu: Any, options: Any, gpu_options: Any):
        super().__init__(options.group_rank, options.group_size)
        self.cpu = cpu
        self._store = options.store
        self._make_gpu_backend = functools.partial(_gpu_backend, options, gpu_options)
        self._name, self._description = options.group_id, ""
        self._gpu: dist.ProcessGroup | None = None
        self._held: set[_Held] = set()
        self._lock = threading.Lock()

    def barrier(self, opts: Any = None) -> Work:
        """Uses NCCL if the caller names a GPU, as in barrier(device_ids=[0])."""
        opts = opts or c10d.BarrierOptions()
        named = opts.device_ids or (opts.device is not None and opts.device.type == _GPU.type)
        if named and self._takes_gpu():
            if opts.device_ids:  # PyTorch 2.6 also names the CPU
                opts.device = torch.device(_GPU.type, opts.device_ids[0])
            return _work(self._gpu_group().barrier(opts))
        return self._hold(self.cpu.barrier(opts))

    def abort(self) -> None:
        """Aborts running operations on all ranks."""
        self.cpu.abort()
        if self._gpu is not None:
            self._gpu.abort()

    def shutdown(self) -> None:
        """Leaves the group and drops the tensors of finished operations."""
        self.cpu.shutdown()
        if self._gpu is not None:
            self._gpu.shutdown()
        self._held.clear()

    def __del__(self) -> None:
        # destroy_process_group() of PyTorch 2.6 only shuts down NCCL's groups.
        if _IS_2_6 and hasattr(self, "cpu") and not sys.is_finalizing():
            self.shutdown()

    # Accessors that PyTorch's C++ calls by name.

    def get_group_store(self) -> Any:
        """The store of the group's rendezvous."""
        return self._store

    def getBackendName(self) -> str:
        """The name of the backend for the CPU's tensors."""
        return self.cpu.getBackendName()

    def getGroupName(self) -> str:
        """The group's name."""
        return self._name

    def setGroupName(self, name: str) -> None:
        """Sets the group's name."""
        self._name = name

    def getGroupDesc(self) -> str:
        """The group's description."""
        return self._description

    def setGroupDesc(self, description: str) -> None:
        """Sets the group's description."""
        self._description = description

    @property
    def _device_types(self) -> list[torch.device]:
        return [_CPU, _GPU] if self._takes_gpu() else [_CPU]

    def _get_backend(self, device: torch.device) -> Any:
        """Raises RuntimeError if the group has no backend for the device."""
        kind = torch.device(device).type
        if kind == _CPU.type:
            return self.cpu
        # init_process_group(device_id=...) calls this method before the group has a configuration.
        if kind == _GPU.type and (self._takes_gpu() or self._configuration() is None):
            self._gpu_group()
        return super()._get_backend(device)

    def _start_coalescing(self, device: torch.device) -> None:
        self._get_backend(device)
        super()._start_coalescing(device)

    def _hold(self, work: Work) -> Work:
        return _Held(work, self._held) if _IS_2_6 else work

    # GPU tensors go to NCCL's group, which is created on first use.

    def _configuration(self) -> str | None:
        return dist.distributed_c10d._world.pg_backend_config.get(self)

    def _takes_gpu(self) -> bool:
        return "cuda:nccl" in (self._configuration() or "")

    def _gpu_group(self) -> dist.ProcessGroup:
        """NCCL's group, created on first use by all ranks together."""
        with self._lock:
            if self._gpu is None:
                device, kind, backend = self._make_gpu_backend()
                gpu = dist.ProcessGroup(self.rank(), self.size())
                gpu._set_default_backend(kind)
                for group in (gpu, self):
                    group._register_backend(device, kind, backend)
                gpu._set_group_name(self._name)
                self._gpu = gpu
            return self._gpu


def _method(name: str, own: str, options: type | None) -> Callable[..., Work]:
    def method(self: OlderGroup, *given: Any, **last: Any) -> Work:
        given += tuple(last.values())
        if options is not None and not isinstance(given[-1], options):
            given += (options(),)
        tensor = _first_tensor(given)
        if tensor is not None and _on_gpu(tensor) and self._takes_gpu():
            return _work(getattr(self._gpu_group(), name)(*given))
        return self._hold(getattr(self.cpu, own)(*given))

    return method


for _name, _called in _METHODS.items():
    setattr(OlderGroup, _name, _method(_name, *_called))


def _first_tensor(given: Sequence[Any]) -> Tensor | None:
    for each in given:
        if isinstance(each, Tensor):
            return each
        if isinstance(each, list | tuple) and (found := _first_tensor(each)) is not None:
            return found
    return None


def _on_gpu(tensor: Tensor) -> bool:
    return tensor.device.type == _GPU.type


def _work(work: Work | None) -> Work:
    """NCCL returns None for work that is already on the current stream."""
    return CompletedWork([]) if work is None else work


def _gpu_backend(options: Any, gpu_options: Any) -> tuple[torch.device, Any, Any]:
    """NCCL's backend for a group, created as torch.distributed creates it."""
    nccl = dist.ProcessGroupNCCL
    if not isinstance(gpu_options, nccl.Options):
        gpu_options = nccl.Options()
    gpu_options._timeout = options.timeout
    gpu_options.global_ranks_in_group = options.global_ranks_in_group
    gpu_options.group_name = options.group_id
    store = dist.PrefixStore(f"{_GPU.type}/", options.store)
    backend = nccl(store, options.group_rank, options.group_size, gpu_options)
    backend._set_sequence_number_for_group()
    return _GPU, dist.ProcessGroup.BackendType.NCCL, backend
