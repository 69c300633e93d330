"""The names of an optimizer's parameters, and the groups in which they are reduced."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from torch import Tensor

from hearth.errors import invalid


def named(
    optimizer: Any, named_parameters: Iterable[tuple[str, Tensor]] | None
) -> list[tuple[str, Tensor]]:
    """(name, parameter) of each parameter of an optimizer.

    Raises:
        ValueError: names are missing, duplicate or invalid.
    """
    own = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    if named_parameters is None:
        return [(f"parameter.{number}", parameter) for number, parameter in enumerate(own)]
    given = list(named_parameters)
    if any(not isinstance(each, tuple) for each in given):
        raise invalid(
            "named_parameters has elements that are not tuples (name, parameter): pass "
            "model.named_parameters()"
        )
    doubled = [name for name, count in Counter(name for name, _ in given).items() if count > 1]
    if doubled:
        raise invalid(
            f"named_parameters has {', '.join(map(repr, doubled))} more than once: names of "
            "several models need a prefix each"
        )
    known = {id(parameter) for _, parameter in given}
    unknown = sum(id(parameter) not in known for parameter in own)
    if unknown:
        raise invalid(
            f"named_parameters lacks {unknown} of the optimizer's {len(own)} parameters: pass the "
            "named_parameters() of the whole model"
        )
    mine = {id(parameter) for parameter in own}
    return [(name, parameter) for name, parameter in given if id(parameter) in mine]


def partition(
    groups: int | Sequence[Sequence[Tensor]] | None, parameters: list[Tensor]
) -> dict[int, tuple[int, list[Tensor]]]:
    """Maps a parameter's id to the number of its group, and the group's parameters.

    Raises:
        ValueError: `groups` is invalid, or a parameter is in two groups.
    """
    if groups is None or groups == 0:
        return {}
    if isinstance(groups, int):
        if groups < 0:
            raise invalid(f"groups={groups}: pass a number, or lists of parameters")
        wanted = [each for each in parameters if each.requires_grad]
        size, more = divmod(len(wanted), min(groups, len(wanted)) or 1)
        lists: list[list[Tensor]] = []
        start = 0
        while start < len(wanted):
            end = start + size + (len(lists) < more)
            lists.append(wanted[start:end])
            start = end
    elif isinstance(groups, list | tuple):
        lists = [list(group) for group in groups]
    else:
        raise invalid(f"groups={groups!r}: pass a number, or lists of parameters")
    found: dict[int, tuple[int, list[Tensor]]] = {}
    for number, group in enumerate(lists):
        for parameter in group:
            if id(parameter) in found:
                raise invalid("groups: a parameter is in more than one group")
            found[id(parameter)] = number, group
    return found
