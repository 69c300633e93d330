"""Extracts, checks and loads the states of a checkpoint's parts, such as model and optimizer."""

from __future__ import annotations

import copy
import hashlib
import io
import json
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel

from hearth.checkpoints.checkpoint_folder import some_of

_SCALARS = (type(None), bool, int, float, str, bytes, complex, torch.dtype, torch.device)
_TENSORS = (torch.Tensor, torch.nn.Parameter)
_JSON = (type(None), bool, int, float, str)


def bare(value: Any) -> Any:
    """The module inside DistributedDataParallel and torch.compile, whose parameters' names do not
    depend on these wrappers."""
    while True:
        if isinstance(value, DistributedDataParallel):
            value = value.module
        elif hasattr(value, "_orig_mod"):
            value = value._orig_mod
        else:
            return value


def state_of(name: str, value: Any) -> Any:
    """The state to save for a part.

    Raises:
        TypeError: the part has no state, or a state that cannot be loaded without running code.
    """
    value = bare(value)
    if isinstance(value, dict):
        state = value
    elif hasattr(value, "state_dict") and hasattr(value, "load_state_dict"):
        state = value.state_dict()
    else:
        raise TypeError(
            f"{name!r} is a {type(value).__name__}, which has no state_dict() and "
            "load_state_dict(): pass an object that has them, or a dict"
        )
    for path, found in _others(state, name):
        if isinstance(found, DTensor):
            raise TypeError(
                f"{path} has shards on other ranks: pass the model and its optimizer instead"
            )
        raise TypeError(
            f"{path} is a {type(found).__name__}, which cannot be loaded without running code "
            "from the checkpoint: use tensors, numbers, strings, lists, tuples and dicts of them"
        )
    return state


def copied(state: Any, memo: dict[Any, torch.Tensor] | None = None) -> Any:
    """A copy of the state with its tensors in main memory, unaffected by further training.

    Tensors that share memory, such as shared parameters, share it in the copy, too.
    """
    memo = {} if memo is None else memo
    if isinstance(state, torch.Tensor):
        where = state.untyped_storage().data_ptr(), state.storage_offset()
        key = (state.device, *where, state.shape, state.stride(), state.dtype)
        if key not in memo:
            memo[key] = state.detach().to("cpu", copy=True)
        return memo[key]
    if isinstance(state, dict):
        made = copy.copy(state)  # keeps the extra attributes of a state_dict()
        for name, value in state.items():
            made[name] = copied(value, memo)
        return made
    if isinstance(state, list | tuple):
        return type(state)(copied(value, memo) for value in state)
    return state


def is_json(state: Any) -> bool:
    """Whether a round trip through JSON returns exactly this value."""
    if type(state) is dict:
        return all(type(key) is str and is_json(value) for key, value in state.items())
    if type(state) is list:
        return all(map(is_json, state))
    return type(state) in _JSON and (type(state) is not float or state == state)


def position_of(state: Any) -> dict[str, str]:
    """Checksums of a loader's state by key; "" for values that the loader does not know yet.

    The key "partitions" is left out, because ranks learn of partitions at different times.
    """
    items = state.items() if isinstance(state, dict) else [("", state)]
    known = ((key, value) for key, value in items if key != "partitions")
    return {str(key): "" if value is None else _checksum(value) for key, value in known}


def same_position(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Whether two results of position_of() agree in the values that both know."""
    if one.keys() != other.keys():
        return False
    return all(one[key] == other[key] or "" in (one[key], other[key]) for key in one)


def _checksum(value: Any) -> str:
    """A checksum that is equal for equal values."""
    if is_json(value):
        return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
    data = io.BytesIO()
    torch.save(value, data)
    return hashlib.sha256(data.getvalue()).hexdigest()


def misfit(name: str, value: Any, state: Any) -> str:
    """Why a saved state does not match this part; empty if it does, as far as can be checked."""
    value = bare(value)
    if isinstance(value, torch.nn.Module):
        return other_module(name, _shapes(value.state_dict()), _shapes(state))
    if isinstance(value, torch.optim.Optimizer):
        own = [len(group["params"]) for group in value.param_groups]
        try:
            saved = [len(group["params"]) for group in state["param_groups"]]
        except (KeyError, TypeError):
            return f"its {name!r} is not the state of an optimizer"
        if own != saved:
            return f"its {name!r} has groups of {saved} parameters, but {name!r} here has {own}"
    return ""


def load(value: Any, state: Any) -> None:
    """Loads the state into a part. Raises the errors of its load_state_dict()."""
    value = bare(value)
    if isinstance(value, dict):
        value.clear()
        value.update(state)
    else:
        value.load_state_dict(state)


def _others(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """(path, value) of each value that is not plain data."""
    kind = type(value)
    if kind in _TENSORS or kind in _SCALARS:
        return
    if kind in (dict, OrderedDict):
        for key, each in value.items():
            if type(key) not in _SCALARS and type(key) is not tuple:
                yield f"the key {key!r} of {path}", key
            yield from _others(each, f"{path}[{key!r}]")
    elif kind in (list, tuple, set, torch.Size):
        for number, each in enumerate(value):
            yield from _others(each, f"{path}[{number}]")
    else:
        yield path, value


def _shapes(state: Mapping[str, Any]) -> dict[str, Any]:
    """The shape of each tensor by name; None for values without a known shape."""
    shapes = {}
    for key, value in state.items():
        known = isinstance(value, torch.Tensor) and not torch.nn.parameter.is_lazy(value)
        shapes[key] = list(value.shape) if known else None
    return shapes


def other_module(name: str, own: Mapping[str, Any], saved: Mapping[str, Any]) -> str:
    """Describes differences in names and shapes between a module and a saved one; empty if there
    are none."""
    said = []
    if missing := own.keys() - saved.keys():
        said.append(f"it lacks {some_of(missing)}")
    if unexpected := saved.keys() - own.keys():
        said.append(f"it has {some_of(unexpected)}, which {name!r} here lacks")
    shapes = {
        f"{key} is {saved[key]} there and {own[key]} here"
        for key in own.keys() & saved.keys()
        if None not in (own[key], saved[key]) and own[key] != saved[key]
    }
    if shapes:
        said.append(some_of(shapes))
    return f"it is of another {name!r}: " + ", and ".join(said) if said else ""
