"""The torch.distributed backend "hearth": exchanges CPU tensors through the core's collective.

    torch.distributed.init_process_group("hearth")

The installed package registers the backend as an entry point, so PyTorch finds it by name; nodes of
a Hearth cluster register it before the main function runs. With NCCL for GPU tensors:
init_process_group("cpu:hearth,cuda:nccl").
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch._C._distributed_c10d import Backend
from torch.distributed import ProcessGroup, Work

from hearth.errors import invalid
from hearth.ranks.group import Ranks, Rendezvous
from hearth.torch import ddp_steps, rendezvous, stores
from hearth.torch.exchange import (
    FOLDED,
    Finish,
    check,
    moved,
    name_of,
    nothing,
    received,
    reducible,
    request,
    signature_of,
    spread,
)
from hearth.torch.lanes import Lanes
from hearth.torch.older_groups import OlderGroup, PlainBackend, backends_are_groups
from hearth.torch.sparse import SparseSum
from hearth.torch.work import CompletedWork, Notifier, PendingWork

NAME = "hearth"
_STORE_KEY = "hearth"
# Reductions that the core supports.
_OPS = {"SUM": "sum", "AVG": "mean", "MIN": "min", "MAX": "max"}


def register(key: str = "") -> None:
    """Registers the backend with torch.distributed. Idempotent.

    `key`: a secret shared by all ranks; without it, rank 0 publishes a key in the store.
    """
    rendezvous.use_key(key)
    if NAME.upper() not in dist.Backend._plugins:
        dist.Backend.register_backend(NAME, _create, extended_api=True, devices=["cpu"])


def _create(options: Any, gpu_options: Any) -> HearthBackend | ProcessGroup:
    if options.group_size > 1 and not dist.is_initialized():  # this is the group of all ranks
        stores.keep(options.store, options.group_rank)
    own = HearthBackend(
        options.store, options.group_rank, options.group_size, options.timeout.total_seconds()
    )
    own.steps = ddp_steps.begin(options.group_id)
    return OlderGroup(own, options, gpu_options) if _ARE_GROUPS else own


_ARE_GROUPS = backends_are_groups()


class HearthBackend(PlainBackend if _ARE_GROUPS else Backend):  # type: ignore[misc]
    """One rank of a process group. All ranks call the same operations in the same order.

    Each operation returns a Work at once. Its wait() raises ConnectionError if a rank left,
    TimeoutError if a rank did not call in time (both name the rank), and ValueError if a rank made
    a different call (the message has both calls). Results are bitwise equal on all ranks.
    """

    # PyTorch reads these attributes on the class, where the base class has property objects.
    supports_coalescing = False
    supports_splitting = False
    supports_shrinking = False
    supports_reconfigure = False
    supports_window = False
    _supports_time_estimate = False

    def __init__(self, store: Any, rank: int, world: int, timeout_s: float):
        """Connects to the other ranks. Raises the errors of Ranks."""
        super().__init__(rank, world)
        self.steps = ddp_steps.Steps()
        self._store = store
        self._timeout_s = timeout_s
        self._notifier = Notifier()
        self._ranks = Ranks(self._rendezvous(_STORE_KEY), rank, world, timeout_s)
        self._lanes = Lanes(rank, self._rendezvous, self._ranks.failure, timeout_s)

    def _rendezvous(self, key: str) -> Rendezvous:
        return rendezvous.at_master(
            publish=lambda text: self._store.set(key, text),
            read=lambda: stores.read(self._store, key, self._timeout_s),
            withdraw=lambda: self._store.delete_key(key),
        )

    def getBackendName(self) -> str:
        """The backend's name for init_process_group()."""
        return NAME

    def allreduce(self, tensors: Sequence[Tensor], opts: Any, root: str = "") -> Work:
        """Reduces tensors over all ranks, in place; sparse tensors only by sum or mean."""
        if all(tensor.layout == torch.sparse_coo for tensor in tensors):
            return self._sum_sparse(opts, tensors, root)
        check(tensors)
        fold = FOLDED.get(name_of(opts.reduceOp))
        if fold is not None:
            return self._fold(opts, tensors, fold, root)
        step = self.steps.of_this_call()
        waits, ends = [], []
        for tensor in tensors:
            array, end = reducible(tensor)
            signature = signature_of(tensor) + root
            waits.append(
                self._reduce(opts, "all_reduce", array, None, signature=signature, step=step)
            )
            ends.append(end)
        return self._work(waits, tensors, *ends)

    allreduce_coalesced = allreduce

    def reduce(self, tensors: Sequence[Tensor], opts: Any) -> Work:
        """Reduces a tensor over all ranks, in place on the root."""
        [tensor] = tensors
        root = f" for rank {opts.rootRank}"
        if self.rank() == opts.rootRank:
            return self.allreduce(tensors, opts, root)
        return self.allreduce([tensor.detach().clone()], opts, root)

    def reduce_scatter_single(self, output: Tensor, source: Tensor, opts: Any) -> Work:
        """Reduces a tensor; each rank receives one part of the result."""
        return self.reduce_scatter_single_coalesced([output], [source], opts)

    def reduce_scatter_single_coalesced(
        self, outputs: Sequence[Tensor], inputs: Sequence[Tensor], opts: Any
    ) -> Work:
        """Reduces several tensors; each rank receives one part of each result."""
        check([*outputs, *inputs])
        waits, ends = [], []
        for output, source in zip(outputs, inputs, strict=True):
            if source.numel() != output.numel() * self.size():
                raise invalid(
                    f"reduce_scatter of {source.numel()} elements to {output.numel()} on each of "
                    f"{self.size()} ranks: the input must have {output.numel() * self.size()}"
                )
            if output.dtype != source.dtype:
                raise invalid(
                    f"reduce_scatter of {source.dtype} to {output.dtype}: both must have one type"
                )
            array, end = reducible(output)
            whole = reducible(source)[0]
            waits.append(self._reduce(opts, "reduce_scatter", array, whole, like=output))
            ends.append(end)
        return self._work(waits, outputs, *ends)

    def reduce_scatter(
        self, outputs: Sequence[Tensor], inputs: Sequence[Sequence[Tensor]], opts: Any
    ) -> Work:
        """Reduces a list of one tensor per rank; rank i receives result i."""
        [output], [parts] = outputs, inputs
        return self.reduce_scatter_single(output, torch.cat([p.reshape(-1) for p in parts]), opts)

    def all_gather_single(self, output: Tensor, source: Tensor, opts: Any) -> Work:
        """Gathers a tensor of each rank into one tensor on all ranks."""
        return self.all_gather_single_coalesced([output], [source], opts)

    def all_gather_single_coalesced(
        self, outputs: Sequence[Tensor], inputs: Sequence[Tensor], opts: Any
    ) -> Work:
        """Gathers several tensors, each into one tensor on all ranks."""
        check([*outputs, *inputs])
        waits, ends = [], []
        for output, source in zip(outputs, inputs, strict=True):
            array, end = received(output)
            waits.append(self._submit(opts, "all_gather", array, moved(source), like=source))
            ends.append(end)
        return self._work(waits, outputs, *ends)

    def allgather(
        self, outputs: Sequence[Sequence[Tensor]], inputs: Sequence[Tensor], opts: Any
    ) -> Work:
        """Gathers a tensor of each rank into a list on all ranks."""
        return self._gather_each(
            outputs, inputs, opts, [part for parts in outputs for part in parts]
        )

    def allgather_coalesced(
        self, outputs: Sequence[Sequence[Tensor]], inputs: Sequence[Tensor], opts: Any
    ) -> Work:
        """Gathers several tensors of each rank into lists on all ranks."""
        by_input = list(zip(*outputs, strict=True))  # outputs has a list for each rank
        results = [part for parts in outputs for part in parts]
        return self._gather_each(by_input, inputs, opts, results)

    def _gather_each(
        self,
        outputs: Sequence[Sequence[Tensor]],
        inputs: Sequence[Tensor],
        opts: Any,
        results: Sequence[Tensor],
    ) -> Work:
        check([*inputs, *results])
        waits, ends = [], []
        for parts, source in zip(outputs, inputs, strict=True):
            whole = source.new_empty((self.size(), *source.shape))
            waits.append(self._submit(opts, "all_gather", moved(whole), moved(source), like=source))
            ends.append(functools.partial(spread, parts, whole))
        return self._work(waits, results, *ends)

    def gather(
        self, outputs: Sequence[Sequence[Tensor]], inputs: Sequence[Tensor], opts: Any
    ) -> Work:
        """Gathers a tensor of each rank into a list on the root."""
        [source] = inputs
        check(inputs)
        if self.rank() != opts.rootRank:
            return self._work([self._send(opts, source, opts.rootRank)], [])
        [parts] = outputs
        check(parts)
        parts[self.rank()].copy_(source)
        waits, ends = [], []
        for rank in (rank for rank in range(self.size()) if rank != self.rank()):
            wait, end = self._receive(opts, parts[rank], rank)
            waits.append(wait)
            ends.append(end)
        return self._work(waits, parts, *ends)

    def scatter(
        self, outputs: Sequence[Tensor], inputs: Sequence[Sequence[Tensor]], opts: Any
    ) -> Work:
        """Sends each rank one tensor of the root's list."""
        [output] = outputs
        check(outputs)
        if self.rank() != opts.rootRank:
            wait, end = self._receive(opts, output, opts.rootRank)
            return self._work([wait], outputs, end)
        [parts] = inputs
        check(parts)
        output.copy_(parts[self.rank()])
        others = [rank for rank in range(self.size()) if rank != self.rank()]
        waits = [self._send(opts, parts[rank], rank) for rank in others]
        return self._work(waits, outputs)

    def broadcast(self, tensors: Sequence[Tensor], opts: Any) -> Work:
        """Copies the root's tensors to all ranks."""
        check(tensors)
        waits, ends = [], []
        for tensor in tensors:
            array, end = received(tensor)
            if self.rank() == opts.rootRank:
                array, end = moved(tensor), nothing
            waits.append(self._submit(opts, "broadcast", array, peer=opts.rootRank, like=tensor))
            ends.append(end)
        return self._work(waits, tensors, *ends)

    def all_to_all_single(
        self,
        output: Tensor,
        source: Tensor,
        output_sizes: Sequence[int],
        input_sizes: Sequence[int],
        opts: Any,
    ) -> Work:
        """Exchanges the parts of a tensor between all ranks."""
        if output_sizes or input_sizes:
            equal = [output.shape[0] // self.size()] * self.size()
            return self.alltoall(
                output.split(list(output_sizes) or equal),
                source.split(list(input_sizes) or equal),
                opts,
            )
        check([output, source])
        array, end = received(output)
        wait = self._submit(opts, "all_to_all", array, moved(source), like=source)
        return self._work([wait], [output], end)

    def alltoall(self, outputs: Sequence[Tensor], inputs: Sequence[Tensor], opts: Any) -> Work:
        """Exchanges a list of one tensor per rank between all ranks."""
        check([*outputs, *inputs])
        own = self.rank()
        outputs[own].copy_(inputs[own])
        waits, ends = [], []
        # Ranks in ascending order; the lower rank of a pair sends first, so waits form no cycle.
        for other in (rank for rank in range(self.size()) if rank != own):
            if own < other:
                waits.append(self._send(opts, inputs[other], other))
            wait, end = self._receive(opts, outputs[other], other)
            waits.append(wait)
            ends.append(end)
            if own > other:
                waits.append(self._send(opts, inputs[other], other))
        return self._work(waits, outputs, *ends)

    def barrier(self, opts: Any) -> Work:
        """Waits until all ranks have called barrier()."""
        return self._work([self._submit(opts, "barrier")], [])

    def send(self, tensors: Sequence[Tensor], to: int, tag: int) -> Work:
        """Sends a tensor to a rank, which calls recv() with the same tag."""
        [tensor] = tensors
        check(tensors)
        outgoing = request("send", None, moved(tensor), name=f"tag {tag}", like=tensor)
        return self._work([self._lanes.send(outgoing, to)], tensors)

    def recv(self, tensors: Sequence[Tensor], source: int, tag: int) -> Work:
        """Receives a tensor from a rank that calls send()."""
        [tensor] = tensors
        check(tensors)
        array, end = received(tensor)
        incoming = request("receive", array, name=f"tag {tag}", like=tensor)
        return self._work([self._lanes.receive(incoming, source)], tensors, end)

    def abort(self) -> None:
        """Aborts running operations on all ranks."""
        self._ranks.abort("the process group was aborted")
        self.shutdown()

    def shutdown(self) -> None:
        """Leaves the group; called by destroy_process_group(). Idempotent."""
        self._lanes.leave()
        self._ranks.leave()
        self._lanes.close()
        self._ranks.close()  # ends the operations that the notifier waits for
        self._notifier.close()
        self._store = None  # closes the store's connection now

    def _send(self, opts: Any, tensor: Tensor, to: int) -> Any:
        return self._submit(opts, "send", None, moved(tensor), peer=to, like=tensor)

    def _receive(self, opts: Any, tensor: Tensor, source: int) -> tuple[Any, Finish]:
        array, end = received(tensor)
        return self._submit(opts, "receive", array, peer=source, like=tensor), end

    def _fold(
        self, opts: Any, tensors: Sequence[Tensor], fold: Callable[..., Tensor], root: str
    ) -> Work:
        """Gathers all ranks' tensors and reduces them in rank order."""
        waits, ends = [], []
        for tensor in tensors:
            whole = tensor.new_empty((self.size(), *tensor.shape))
            signature = f"{signature_of(tensor)} by {name_of(opts.reduceOp)}{root}"
            waits.append(
                self._submit(opts, "all_gather", moved(whole), moved(tensor), signature=signature)
            )
            ends.append(lambda t=tensor, w=whole: t.detach().copy_(functools.reduce(fold, w)))
        return self._work(waits, tensors, *ends)

    def _sum_sparse(self, opts: Any, tensors: Sequence[Tensor], root: str) -> Work:
        """Waits until all ranks have reported their number of rows, then exchanges the rows."""
        check([tensor._values() for tensor in tensors])
        waits, ends = [], []
        for tensor in tensors:
            rows = SparseSum(tensor, name_of(opts.reduceOp), self.size())
            how = {"signature": rows.signature + root, "step": self.steps.of_this_call()}
            counts = self._submit(opts, "all_gather", rows.counts, rows.count, **how)
            self._work([counts], []).wait()
            for whole, own in rows.exchanged():
                waits.append(self._submit(opts, "all_gather", moved(whole), moved(own), **how))
            ends.append(rows.finish)
        return self._work(waits, tensors, *ends)

    def _reduce(
        self, opts: Any, operation: str, array: Tensor, source: Tensor | None, **how: Any
    ) -> Any:
        reduction = name_of(opts.reduceOp)
        name = _OPS.get(reduction)
        if name is None:
            raise invalid(
                f'the backend "hearth" supports {operation} with {", ".join(_OPS)}, not {reduction}'
            )
        return self._submit(opts, operation, array, source, op=name, **how)

    def _submit(self, opts: Any, operation: str, *arrays: Tensor | None, **how: Any) -> Any:
        """The handle to wait for; None if the operation has run in this thread, because the caller
        waits anyway."""
        queued = request(operation, *arrays, **how)
        if not getattr(opts, "asyncOp", True) and self._ranks.try_run(queued):
            return None
        return self._ranks.submit(queued)

    def _work(
        self, waits: Sequence[Any], results: Sequence[Tensor], *ends: Callable[[], Any]
    ) -> Work:
        def finish() -> None:
            for end in ends:
                end()

        left = [wait for wait in waits if wait is not None]
        if not left:
            finish()
            return CompletedWork(list(results))
        return PendingWork(left, finish, list(results), self._timeout_s, self._notifier)
