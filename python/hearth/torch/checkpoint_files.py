"""The files of a checkpoint. Rank 0 writes them, or all ranks do if there are shards; rank 0 reads
them for all ranks. Functions are collective calls and raise the same HearthError on all ranks."""

from __future__ import annotations

import json
import os
import pickle
import tempfile
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import IO, Any, cast

import torch

from hearth.checkpoints.checkpoint_folder import Checkpoint, CheckpointFolder, Draft, sum_of
from hearth.checkpoints.seal import Part, Seal, SealedFile
from hearth.errors import NotFoundError, invalid
from hearth.files.local_folders import spill_folder
from hearth.files.uri import local_path
from hearth.torch import part_states
from hearth.torch.peers import Peers
from hearth.torch.sharded_states import METADATA, ShardedParts, ShardsInMemory, written

# The part with the random states of all ranks.
RANDOM = "random"


@dataclass(frozen=True)
class Found:
    """A checkpoint that was read: the states of its unsharded parts."""

    uri: str
    seal: Seal
    states: dict[str, Any]


def write(
    peers: Peers,
    there: CheckpointFolder,
    step: int,
    states: Mapping[str, Any],
    sharded: ShardedParts | ShardsInMemory,
) -> int:
    """Writes and seals a checkpoint; returns its number on rank 0."""
    if not sharded.names:
        return peers.together(
            lambda: write_whole(there, step, states, peers.world) if peers.rank == 0 else 0
        )
    draft = peers.together(lambda: there.begin(step) if peers.rank == 0 else None)
    try:
        uri = peers.share(draft.uri if draft else "")
        shards = _write_shards(peers, there, sharded, uri)

        def seal() -> int:
            if draft is None:
                return 0
            with there.writing(draft):
                for name, file in shards.items():
                    draft.add(name, file)
                parts = {name: Part(step, tuple(shards)) for name in sharded.names}
                return _seal(draft, parts, states, peers.world)

        return peers.together(seal)
    except BaseException:
        if draft is not None:
            draft.discard()
        raise


def write_whole(there: CheckpointFolder, step: int, states: Mapping[str, Any], world: int) -> int:
    """Writes and seals a checkpoint without shards; returns its number. Called by one rank."""
    draft = there.begin(step)
    with there.writing(draft):
        return _seal(draft, {}, states, world)


def _seal(draft: Draft, parts: dict[str, Part], states: Mapping[str, Any], world: int) -> int:
    for name, state in states.items():
        parts[name] = Part(draft.step, (_write_state(draft, name, state),))
    return draft.seal(parts, world).number


def _write_state(draft: Draft, name: str, state: Any) -> str:
    """Writes a state to a separate file; returns its name."""
    if name == "data" and part_states.is_json(state):
        with draft.file(f"{name}.json") as file:
            file.write(json.dumps(state, indent=1).encode())
        return f"{name}.json"
    with draft.file(f"{name}.pt") as file:
        torch.save(state, cast(IO[bytes], file))
    return f"{name}.pt"


def _write_shards(
    peers: Peers, there: CheckpointFolder, sharded: ShardedParts | ShardsInMemory, uri: str
) -> dict[str, SealedFile]:
    """Each rank writes its shards. Shards in main memory are copied to `uri`. Other shards are
    saved directly to `uri` if `uri` is local, else to a temporary folder, and copied from there."""
    if isinstance(sharded, ShardsInMemory):
        return _gathered(peers, lambda: _copied(there, uri, sharded.files))
    path = local_path(uri)
    with ExitStack() as ends:
        own = path or ends.enter_context(_local_folder())
        peers.together(lambda: sharded.save(own))

        if path is None:
            files = {n: ends.enter_context(open(f"{own}/{n}", "rb")) for n in written(own)}
            return _gathered(peers, lambda: _copied(there, uri, files))
        names = json.loads(peers.share(json.dumps(sharded.files(own) if peers.rank == 0 else [])))
        return _gathered(
            peers, lambda: {n: _file_there(f"{path}/{n}") for n in names[peers.rank :: peers.world]}
        )


def _copied(
    there: CheckpointFolder, uri: str, files: Mapping[str, IO[bytes]]
) -> dict[str, SealedFile]:
    return {name: there.add_file(f"{uri}/{name}", file) for name, file in files.items()}


def _gathered(peers: Peers, files: Callable[[], dict[str, SealedFile]]) -> dict[str, SealedFile]:
    """The files of all ranks."""
    own = {name: asdict(file) for name, file in peers.together(files).items()}
    texts = peers.exchange(json.dumps(own))
    return {name: SealedFile(**file) for text in texts for name, file in json.loads(text).items()}


def _local_folder() -> Any:
    return tempfile.TemporaryDirectory(dir=spill_folder(), prefix="hearth-shards-")


def _file_there(path: str) -> SealedFile:
    try:
        with open(path, "rb") as file:
            return SealedFile(os.fstat(file.fileno()).st_size, sum_of(file))
    except FileNotFoundError:
        raise NotFoundError(
            f"{path}, which another rank has written, is not visible here: shards need a folder "
            "that all hosts share"
        ) from None


def read(
    peers: Peers, there: CheckpointFolder, parts: Collection[str], sharded: Collection[str]
) -> Found | None:
    """The newest intact checkpoint as rank 0 sees it; None if there is none."""
    with ExitStack() as ends:
        opened: Checkpoint | None = None

        def newest() -> str:
            nonlocal opened
            if peers.rank != 0 or (opened := there.newest()) is None:
                return "{}"
            ends.callback(opened.close)
            _check_parts(there, opened, parts, sharded)
            return json.dumps({"uri": opened.uri, "seal": opened.seal.text()})

        answer = json.loads(peers.share(peers.together(newest)))
        if not answer:
            return None
        seal, uri = Seal.read(answer["seal"].encode()), answer["uri"]
        found = Found(uri, seal, {})
        for name in sorted({*parts, RANDOM} - set(sharded)):
            (file,) = seal.parts[name].files
            given = opened.files[file] if opened else None
            with peers.share_file(given, seal.files[file].bytes) as source:
                what = f"{uri}/{file} cannot be loaded: "
                found.states[name] = peers.together(lambda: _loaded(file, source), what)  # noqa: B023
        return found


def _check_parts(
    there: CheckpointFolder,
    checkpoint: Checkpoint,
    names: Collection[str],
    sharded: Collection[str],
) -> None:
    """Raises HearthError if the checkpoint lacks a requested part, or its parts' steps differ."""
    seal = checkpoint.seal
    for name in sorted({*names, RANDOM}):
        if name not in seal.parts:
            steps = there.steps_of(name)
            older = f" (the newest that has it is of step {steps[0]})" if steps else ""
            has = ", ".join(sorted(seal.parts.keys() - {RANDOM}))
            raise invalid(
                f"{checkpoint.uri} of step {seal.step} has {has}, but not {name!r}{older}: save "
                "parts that belong together in one call of checkpoint()"
            )
        part = seal.parts[name]
        if part.step != seal.step:
            raise invalid(
                f"the parts of {checkpoint.uri} disagree: {name!r} is of step {part.step}, others "
                f"of step {seal.step}"
            )
        if (METADATA in part.files) != (name in sharded):
            kinds = ("sharded", "whole") if METADATA in part.files else ("whole", "sharded")
            raise invalid(f"{name!r} is {kinds[0]} in {checkpoint.uri} and {kinds[1]} here")


def _loaded(name: str, file: Any) -> Any:
    """Loads a state without running code from the file."""
    if name.endswith(".json"):
        return json.loads(file.read())
    try:
        return torch.load(file, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:  # not chained: PyTorch's message suggests weights_only=False
        raise invalid("loading its objects could run code; store plain data only") from None


def random_states(peers: Peers) -> dict[str, Any]:
    """States of the random generators of all ranks: "cpu" and, if all have GPUs, "cuda"."""
    states = {"cpu": peers.gather_bytes(torch.get_rng_state())}
    has_gpu = torch.cuda.is_available() and torch.cuda.is_initialized()
    if all(text == "gpu" for text in peers.exchange("gpu" if has_gpu else "")):
        states["cuda"] = peers.gather_bytes(torch.cuda.get_rng_state())
    return states


def set_random_state(peers: Peers, seal: Seal, states: Any) -> None:
    """Restores this rank's random state, if the number of ranks is unchanged."""
    if seal.world != peers.world:
        return
    torch.set_rng_state(states["cpu"][peers.rank])
    if "cuda" in states and torch.cuda.is_available():
        torch.cuda.set_rng_state(states["cuda"][peers.rank])
