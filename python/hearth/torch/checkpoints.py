"""ctx.checkpoint() and ctx.restore(): the state of all ranks in a folder of sealed checkpoints.

Rank 0 writes the state that is equal on all ranks. To restore, rank 0 selects the checkpoint, reads
it, and sends its bytes to the other ranks. Both are collective calls, which raise the same error on
all ranks.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from hearth.checkpoints.background import in_background
from hearth.checkpoints.checkpoint_folder import MOST_STEPS, CheckpointFolder
from hearth.data.loader import Loader
from hearth.errors import invalid
from hearth.files.uri import is_remote, scheme
from hearth.torch import checkpoint_files, part_states
from hearth.torch.checkpoint_files import RANDOM
from hearth.torch.peers import Peers
from hearth.torch.sharded_states import ShardedParts, Shards, ShardsInMemory
from hearth.torch.thread_peers import on_all_ranks

logger = logging.getLogger(__name__)

_DATA = "data"


@dataclass(frozen=True)
class Own:
    """The state that a rank is about to save; `position`: checksums of the data's position."""

    states: dict[str, Any]
    sharded: ShardedParts
    position: Mapping[str, str] | None = None


@dataclass(frozen=True)
class Saved:
    """The state that one rank writes to a checkpoint."""

    states: dict[str, Any]
    shards: ShardedParts | ShardsInMemory


class Checkpoints:
    """The checkpoints of one program. Methods are collective calls; only one thread of each rank
    may make them."""

    def __init__(self, ctx: Any):
        self._ctx = ctx
        # Step and data position of the last checkpoint.
        self._last: tuple[int, Mapping[str, str]] | None = None
        self._behind: int | None = None  # step of a checkpoint being written in the background
        self._writing: Future[None] | None = None  # only on ranks that write

    def save(
        self, step: int, parts: Mapping[str, Any], folder: str, keep: int, background: bool
    ) -> None:
        """Writes a checkpoint; see TorchContext.checkpoint()."""
        peers, there = self._peers(), self._folder(folder)
        self._settle(peers)
        own = peers.together(lambda: self._own(step, parts, keep))
        names = [*own.states, *own.sharded.names]
        peers.check_same("checkpoint() got a different step or parts", [step, *sorted(names)])
        _check_positions([json.loads(text) for text in peers.exchange(json.dumps(own.position))])
        if own.position is not None:
            self._last = step, own.position
        states = {**own.states, RANDOM: checkpoint_files.random_states(peers)}
        own = replace(own, states=states)
        if background:
            self._begin(peers, there, step, own, keep)
            return
        _write(peers, there, step, Saved(states, own.sharded), keep)
        self._note_commit()

    def _begin(self, peers: Peers, there: CheckpointFolder, step: int, own: Own, keep: int) -> None:
        """Copies the current states, and starts threads that write the copies while the program
        continues."""

        def copy() -> Saved:
            shards = own.sharded.in_memory() if own.sharded.names else own.sharded
            return Saved(part_states.copied(own.states) if peers.rank == 0 else {}, shards)

        snapshot = peers.together(copy)
        self._behind = step
        if own.sharded.names:
            write = partial(_write, there=there, step=step, saved=snapshot, keep=keep)
            self._writing = on_all_ranks(peers, write)
        elif peers.rank == 0:
            self._writing = in_background(
                lambda: there.remove_older(
                    keep, checkpoint_files.write_whole(there, step, snapshot.states, peers.world)
                )
            )

    def _settle(self, peers: Peers) -> None:
        """Waits until the background checkpoint is written; if writing failed, all ranks raise."""
        if self._behind is None:
            return
        what = f"the checkpoint of step {self._behind}, in the background: "
        self._behind = None
        peers.together(self.finish, what)
        self._note_commit()

    def finish(self) -> None:
        """Waits until this rank has written its part; raises HearthError if that failed."""
        writing, self._writing = self._writing, None
        if writing is not None:
            writing.result()

    def _note_commit(self) -> None:
        if hasattr(self._ctx.mgr, "note_commit"):
            self._ctx.mgr.note_commit()

    def restore(self, parts: Mapping[str, Any], folder: str) -> int | None:
        """Loads the newest complete checkpoint; see TorchContext.restore()."""
        peers, there = self._peers(), self._folder(folder)
        self._settle(peers)
        parts = peers.together(lambda: _given(parts))
        sharded = peers.together(lambda: ShardedParts(parts))
        peers.check_same("restore() got different parts", sorted(parts))
        found = checkpoint_files.read(peers, there, parts, sharded.names)
        self._compare_views(peers, there)
        if found is None:
            return None
        seal, states = found.seal, found.states
        shards = Shards(there.open_input, found.uri)
        fits = lambda: _check_fits(found, parts, sharded, shards)  # noqa: E731
        peers.together(fits, f"{found.uri} does not fit: ")
        for name in states.keys() - {RANDOM}:
            failed = f"{name!r} of {found.uri} cannot be loaded: "
            load = partial(part_states.load, parts[name], states[name])
            peers.together(load, failed)
        if sharded.names:
            failed = f"{', '.join(sorted(sharded.names))} of {found.uri} cannot be loaded: "
            peers.together(lambda: sharded.load(shards), failed)
        checkpoint_files.set_random_state(peers, seal, states.get(RANDOM))
        if _DATA in states:
            self._last = seal.step, part_states.position_of(states[_DATA])
        elif peers.rank == 0 and not any(isinstance(part, Loader) for part in parts.values()):
            self._report_no_position(seal.step)
        return seal.step

    def _report_no_position(self, step: int) -> None:
        """Warns a program that opens datasets and may have forgotten to restore their position."""
        datasets = getattr(self._ctx.mgr, "datasets", None)
        if datasets is not None and datasets.names:
            self._report(
                f"step {step} was restored without a position in dataset "
                f"{', '.join(map(repr, datasets.names))}: unless the program sets it, rows of the "
                "epoch are repeated; pass data=loader to checkpoint() and restore()"
            )

    def _peers(self) -> Peers:
        peers = Peers()
        if self._ctx.rank is None:
            raise invalid("only training ranks make checkpoints: this node is not one of them")
        if peers.world == 1 and self._ctx.world_size > 1:
            raise invalid(
                f"checkpoint() and restore() are collective calls of all {self._ctx.world_size} "
                "ranks: call torch.distributed.init_process_group(ctx.backend) before them"
            )
        return peers

    def _folder(self, folder: str) -> CheckpointFolder:
        uri = str(folder) or self._ctx.checkpoint_dir
        if not uri:
            raise invalid(
                "no folder for checkpoints is set: pass TorchCluster.run(..., checkpoint_dir=URI)"
                " or checkpoint(..., folder=URI) and restore(..., folder=URI)"
            )
        whole = uri if scheme(uri) else self._ctx.absolute_path(uri)
        return CheckpointFolder(whole, self._report)

    def _own(self, step: int, parts: Mapping[str, Any], keep: int) -> Own:
        """This rank's state. Raises TypeError or ValueError for a state that cannot be saved."""
        if type(step) is not int or not 0 <= step < MOST_STEPS:
            raise invalid(f"the step is {step!r}: pass an integer from 0 to {MOST_STEPS - 1}")
        if type(keep) is not int or keep < 1:
            raise invalid(f"keep={keep!r} would keep no checkpoint: pass an integer of at least 1")
        named = _given(parts)
        sharded = ShardedParts(named)
        plain = named.keys() - sharded.names
        states = {name: part_states.state_of(name, named[name]) for name in sorted(plain)}
        if _DATA not in states:
            return Own(states, sharded)
        return Own(states, sharded, self._checked_position(step, states[_DATA]))

    def _checked_position(self, step: int, state: Any) -> dict[str, str]:
        """The data's position. Raises ValueError if the data's state is from another step than the
        model."""
        _check_step(step, state)
        position = part_states.position_of(state)
        if (
            self._last is not None
            and step > self._last[0]
            and part_states.same_position(position, self._last[1])
        ):
            raise invalid(
                f"model and data disagree: the step is {step}, but the state of 'data' is still "
                f"that of step {self._last[0]}: pass the loader that the program iterates, or its "
                "current state"
            )
        return position

    def _compare_views(self, peers: Peers, there: CheckpointFolder) -> None:
        """Warns if this rank sees a newer checkpoint than rank 0, because then their hosts do not
        share the folder."""
        own = (0, "none")
        if not is_remote(there.uri):
            own = peers.together(there.last)
            number, name = json.loads(peers.share(json.dumps(own)))
            if own[0] > number:
                self._report(
                    f"rank {peers.rank} sees {own[1]} in {there.uri}, but rank 0, which decides "
                    f"which checkpoint is restored, {name}: all hosts must share the folder"
                )

    def _report(self, line: str) -> None:
        logger.warning("%s", line)
        if hasattr(self._ctx.mgr, "warn"):
            self._ctx.mgr.warn(line)


def _write(peers: Peers, there: CheckpointFolder, step: int, saved: Saved, keep: int) -> None:
    number = checkpoint_files.write(peers, there, step, saved.states, saved.shards)
    if peers.rank == 0:
        there.remove_older(keep, number)


def _given(parts: Mapping[str, Any]) -> dict[str, Any]:
    """The parts that are not None; an optional scheduler may be None."""
    named = {name: value for name, value in parts.items() if value is not None}
    if not named:
        raise invalid("nothing to save or restore: pass model=, optimizer=, data= or others")
    for name in named:
        if not name.isidentifier() or name == RANDOM:
            raise invalid(f"a part of a checkpoint cannot be named {name!r}: choose another name")
    return named


def _check_fits(
    found: checkpoint_files.Found, parts: Mapping[str, Any], sharded: ShardedParts, shards: Shards
) -> None:
    """Raises ValueError if the states do not match the program's objects."""
    for name in found.states.keys() - {RANDOM}:
        if why := part_states.misfit(name, parts[name], found.states[name]):
            raise invalid(why)
    if sharded.names and (why := sharded.misfit(shards)):
        raise invalid(why)
    if _DATA in found.states:
        _check_step(found.seal.step, found.states[_DATA])


def _check_positions(positions: Sequence[Any]) -> None:
    """Raises HearthError if the data position of a rank differs from rank 0's."""
    for rank, position in enumerate(positions):
        if position is not None and not part_states.same_position(position, positions[0]):
            different = [key for key in position if position[key] != positions[0].get(key)]
            raise invalid(
                f"the state of 'data' on rank {rank} differs from rank 0's "
                f"({', '.join(different)}): all ranks must make a checkpoint after the same batch"
            )


def _check_step(step: int, state: Any) -> None:
    """Raises ValueError if the data's state contains another step."""
    own = state.get("step") if isinstance(state, dict) else None
    if type(own) is int and own != step:
        raise invalid(
            f"model and data disagree: the model is of step {step} and the state of 'data' of step "
            f"{own}: save both at the same step"
        )
