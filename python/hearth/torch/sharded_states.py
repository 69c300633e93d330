"""Sharded parts of a checkpoint (FSDP2), through torch.distributed.checkpoint.

Each rank writes separate files, and reads the shards that it needs from all files. Methods are
collective calls.
"""

from __future__ import annotations

import io
import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint import FileSystemReader, FileSystemWriter
from torch.distributed.checkpoint.default_planner import DefaultLoadPlanner
from torch.distributed.checkpoint.filesystem import FileSystem
from torch.distributed.checkpoint.state_dict import (
    get_model_state_dict,
    get_optimizer_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
)
from torch.distributed.tensor import DTensor

from hearth.errors import invalid
from hearth.torch.part_states import bare, other_module

METADATA = ".metadata"
_METADATA_CLASSES = {
    "torch": ("Size", "device"),
    "torch.serialization": ("_get_layout",),
    "torch.distributed.checkpoint.metadata": (
        "BytesStorageMetadata",
        "ChunkStorageMetadata",
        "Metadata",
        "MetadataIndex",
        "StorageMeta",
        "TensorProperties",
        "TensorStorageMetadata",
        "_MEM_FORMAT_ENCODING",
    ),
    "torch.distributed.checkpoint.filesystem": ("_StorageInfo",),
    "collections": ("OrderedDict",),
    "pathlib": ("Path", "PosixPath", "PurePosixPath"),
}


@dataclass(frozen=True)
class Shards:
    """The files with the shards of a checkpoint, in the folder `uri`."""

    open_input: Callable[[str], Any]
    uri: str


@dataclass(frozen=True)
class ShardsInMemory:
    """One rank's shards in main memory: the files by name, and the names of the sharded parts."""

    names: set[str]
    files: dict[str, io.BytesIO]


def written(path: str) -> list[str]:
    """The names of the files that save() has written to this rank's folder."""
    return sorted(entry.name for entry in os.scandir(path) if entry.is_file())


class ShardedParts:
    """The sharded parts of a program: modules, and optimizers of their parameters."""

    def __init__(self, parts: Mapping[str, Any]):
        """Raises TypeError if an optimizer's module is not among the parts."""
        bared = {name: bare(value) for name, value in parts.items()}
        self._modules = {name: value for name, value in bared.items() if _has_shards(value)}
        self._optimizers: dict[str, tuple[Any, Any]] = {}
        for name, value in bared.items():
            if isinstance(value, torch.optim.Optimizer) and _any_shards(_parameters(value)):
                self._optimizers[name] = (self._owner(name, value), value)

    @property
    def names(self) -> set[str]:
        """The names of the sharded parts."""
        return {*self._modules, *self._optimizers}

    def save(self, path: str) -> None:
        """Each rank writes its shards into a local folder, which may be private; rank 0 also writes
        the metadata. Raises on all ranks if one fails."""
        writer = FileSystemWriter(path, single_file_per_rank=True, sync_files=True)
        dcp.save(self._states(), storage_writer=writer)

    def in_memory(self) -> ShardsInMemory:
        """Like save(), but writes to memory."""
        writer = FileSystemWriter("", single_file_per_rank=True, sync_files=False)
        memory = _Memory()
        writer.fs, writer.path = memory, ""
        dcp.save(self._states(), storage_writer=writer)
        return ShardsInMemory(self.names, memory.files)

    def files(self, path: str) -> list[str]:
        """The names of the files that save() has written on all ranks; only rank 0 calls it."""
        shards = Shards(partial(open, mode="rb"), path)
        stored = _Reader(shards).read_metadata().storage_data.values()
        return sorted({METADATA, *(each.relative_path for each in stored)})

    def misfit(self, shards: Shards) -> str:
        """Why the folder's content does not match these modules; empty if it does."""
        saved = _Reader(shards).read_metadata().state_dict_metadata
        for name, module in self._modules.items():
            own = {f"{name}.{key}": value for key, value in get_model_state_dict(module).items()}
            of_name = {key: value for key, value in saved.items() if key.startswith(f"{name}.")}
            if why := other_module(name, _sizes(own), _sizes(of_name)):
                return why
        return ""

    def load(self, shards: Shards) -> None:
        """Each rank reads its shards. Raises on all ranks if one fails."""
        states = self._states()
        dcp.load(states, storage_reader=_Reader(shards), planner=_Planner())
        for name, module in self._modules.items():
            set_model_state_dict(module, states[name])
        for name, (module, optimizer) in self._optimizers.items():
            set_optimizer_state_dict(module, optimizer, states[name])

    def _states(self) -> dict[str, Any]:
        states: dict[str, Any] = {
            name: get_model_state_dict(module) for name, module in self._modules.items()
        }
        for name, (module, optimizer) in self._optimizers.items():
            states[name] = get_optimizer_state_dict(module, optimizer)
        return states

    def _owner(self, name: str, optimizer: Any) -> Any:
        own = {id(parameter) for parameter in _parameters(optimizer)}
        for module in self._modules.values():
            if own <= {id(parameter) for parameter in module.parameters()}:
                return module
        raise TypeError(f"the parameters of {name!r} are sharded: pass their module, too")


class _Files(FileSystem):
    """A reader's file system for a checkpoint's folder, local or remote."""

    def __init__(self, shards: Shards):
        super().__init__()
        self._shards = shards

    @contextmanager
    def create_stream(self, path: Any, mode: str) -> Iterator[Any]:
        with closing(self._shards.open_input(str(path))) as file:
            yield file

    def concat_path(self, path: Any, suffix: str) -> str:
        return f"{path}/{suffix}"


class _Memory(FileSystem):
    """A writer's file system in main memory."""

    def __init__(self) -> None:
        super().__init__()
        self.files: dict[str, io.BytesIO] = {}

    @contextmanager
    def create_stream(self, path: Any, mode: str) -> Iterator[Any]:
        self.files[str(path)] = file = _Readable()
        yield file
        file.seek(0)

    def concat_path(self, path: Any, suffix: str) -> str:
        return suffix

    def mkdir(self, path: Any) -> None:
        """Does nothing, because there is only one folder."""

    def exists(self, path: Any) -> bool:
        return str(path) in self.files

    def rename(self, path: Any, new_path: Any) -> None:
        self.files[str(new_path)] = self.files.pop(str(path))


class _Readable(io.BytesIO):
    def close(self) -> None:
        """Does nothing, because the content is read later."""


class _Reader(FileSystemReader):
    """A reader that checks the classes which pickled metadata names before PyTorch loads the
    metadata."""

    def __init__(self, shards: Shards):
        super().__init__(shards.uri)
        self.fs, self.path = _Files(shards), shards.uri

    def read_metadata(self, *args: Any, **kwargs: Any) -> Any:
        with self.fs.create_stream(self.fs.concat_path(self.path, METADATA), "rb") as file:
            _OnlyMetadata(file).load()
        return super().read_metadata(*args, **kwargs)


class _Planner(DefaultLoadPlanner):
    """A planner that also checks that values other than tensors can be loaded without running
    code."""

    def load_bytes(self, read_item: Any, value: io.BytesIO) -> None:
        torch.load(value, weights_only=True)
        value.seek(0)
        super().load_bytes(read_item, value)


class _OnlyMetadata(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        is_type = module == "torch" and isinstance(getattr(torch, name, None), torch.dtype)
        if not is_type and name not in _METADATA_CLASSES.get(module, ()):
            raise invalid(f"{METADATA} names {module}.{name}, which metadata does not use")
        return super().find_class(module, name)


def _has_shards(value: Any) -> bool:
    return isinstance(value, torch.nn.Module) and _any_shards(value.parameters())


def _any_shards(tensors: Iterable[Any]) -> bool:
    return any(isinstance(tensor, DTensor) for tensor in tensors)


def _parameters(optimizer: Any) -> list[Any]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _sizes(values: Mapping[str, Any]) -> dict[str, Any]:
    """Shapes by name; None for values without a shape, in the program and in metadata alike."""
    sizes = {}
    for key, value in values.items():
        size = getattr(value, "size", None)
        size = size() if callable(size) else size
        sizes[key] = None if size is None else list(size)
    return sizes
