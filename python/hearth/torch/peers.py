"""Exchanges strings and files between the ranks of a process group, without pickle."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from hearth.checkpoints.checkpoint_folder import spool_file
from hearth.errors import code_of, invalid
from hearth.native.failure import Failure

if TYPE_CHECKING:
    from torch import Tensor

Result = TypeVar("Result")

# Most strings fit into the first exchange; longer ones need a second one.
_SHORT_BYTES = 1024
_LENGTH_BYTES = 8
_BLOCK_BYTES = 16 << 20


class Peers:
    """All ranks of the default process group, or only this process if there is no group. Each
    method is a collective call: all ranks make the same calls in the same order.

    Attributes:
        rank, world: this process's rank, and the number of ranks.
    """

    def __init__(self) -> None:
        import torch.distributed as dist

        self.rank, self.world = 0, 1
        if dist.is_available() and dist.is_initialized():
            self.rank, self.world = dist.get_rank(), dist.get_world_size()

    def exchange(self, text: str) -> list[str]:
        """The strings of all ranks, in rank order."""
        if self.world == 1:
            return [text]
        data = text.encode()
        head = len(data).to_bytes(_LENGTH_BYTES, "little") + data
        first = [_bytes_of(part) for part in self._gather(head[:_SHORT_BYTES], _SHORT_BYTES)]
        sizes = [int.from_bytes(part[:_LENGTH_BYTES], "little") for part in first]
        if max(sizes) + _LENGTH_BYTES > _SHORT_BYTES:
            first = [_bytes_of(part) for part in self._gather(head, max(sizes) + _LENGTH_BYTES)]
        texts = zip(first, sizes, strict=True)
        return [part[_LENGTH_BYTES : _LENGTH_BYTES + size].decode() for part, size in texts]

    def share(self, text: str) -> str:
        """Rank 0's string, on all ranks; the strings of other ranks are ignored."""
        return self.exchange(text if self.rank == 0 else "")[0]

    def together(self, act: Callable[[], Result], what: str = "") -> Result:
        """Runs `act` on each rank, and returns this rank's result. If `act` raises on any rank, all
        ranks raise the same HearthError, whose message begins with `what`."""
        said, cause, result = "", None, None
        try:
            result = act()
        except Exception as error:
            cause, said = error, _as_text(error)
        texts = self.exchange(said)
        failed = [rank for rank, text in enumerate(texts) if text]
        if not failed:
            return result  # type: ignore[return-value]
        text, code = json.loads(texts[failed[0]])
        where = "" if len(failed) == self.world else f"rank {failed[0]}: "
        raise Failure(f"{what}{where}{text}", code).error() from cause

    def check_same(self, what: str, value: Any) -> None:
        """Raises a HearthError on all ranks if a rank's value, as JSON, differs from rank 0's."""
        texts = self.exchange(json.dumps(value))
        for rank, text in enumerate(texts):
            if text != texts[0]:
                values = "" if len(text) > 200 else f" ({text}, not {texts[0]})"
                raise invalid(f"{what} on rank {rank} than on rank 0{values}")

    def share_file(self, source: Any, size: int) -> Any:
        """Sends a file of `size` bytes from rank 0 to all ranks. Returns the file, rewound; on
        other ranks a copy, which the caller closes."""
        if self.world == 1:
            return source
        import torch
        import torch.distributed as dist

        file = source if self.rank == 0 else spool_file()
        for start in range(0, size, _BLOCK_BYTES):
            count = min(_BLOCK_BYTES, size - start)
            if self.rank == 0:
                block = torch.frombuffer(bytearray(file.read(count)), dtype=torch.uint8)
            else:
                block = torch.empty(count, dtype=torch.uint8)
            block = block.to(_device())
            dist.broadcast(block, 0)
            if self.rank != 0:
                file.write(block.cpu().numpy().data)
        file.seek(0)
        return file

    def gather_bytes(self, tensor: Tensor) -> list[Tensor]:
        """The uint8 CPU tensors of all ranks, which must have equal lengths."""
        if self.world == 1:
            return [tensor]
        return self._gather(bytes(tensor.numpy()), len(tensor))

    def _gather(self, data: bytes, size: int) -> list[Tensor]:
        import torch
        import torch.distributed as dist

        own = torch.frombuffer(bytearray(data.ljust(size, b"\0")), dtype=torch.uint8).to(_device())
        every = [torch.empty_like(own) for _ in range(self.world)]
        dist.all_gather(every, own)
        return [part.cpu() for part in every]


def _as_text(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return json.dumps([text, code_of(error)])


def _bytes_of(tensor: Tensor) -> bytes:
    return bytes(tensor.numpy())


def _device() -> Any:
    """The device whose tensors the process group accepts."""
    import torch
    import torch.distributed as dist

    return torch.device("cuda" if dist.get_backend() == "nccl" else "cpu")
