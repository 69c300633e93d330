"""Which node plays which part, and how nodes are called in messages."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

# Roles whose nodes take rows; the others wait for the cluster's end.
FED_ROLES_EXCEPT = ("ps", "evaluator")

Template = Mapping[str, Sequence[int]]


def make_template(
    num_executors: int, num_ps: int, master_node: str | None, eval_node: bool
) -> dict[str, list[int]]:
    """The node ids of each role, in the order ps, master, evaluator, worker.

    Raises:
        AssertionError: the numbers leave no node to train, or do not add up.
    """
    num_master = 1 if master_node else 0
    num_eval = 1 if eval_node else 0
    num_workers = max(num_executors - num_ps - num_eval - num_master, 0)
    total = num_ps + num_master + num_eval + num_workers
    assert total == num_executors, (
        f"the cluster needs {total} nodes, but num_executors is {num_executors}"
    )
    assert num_master + num_workers > 0, "the cluster needs at least one worker, chief or master"
    ids = iter(range(num_executors))
    template: dict[str, list[int]] = {}
    for role, count in (
        ("ps", num_ps),
        (master_node, num_master),
        ("evaluator", num_eval),
        ("worker", num_workers),
    ):
        if count:
            template[str(role)] = [next(ids) for _ in range(count)]
    return template


def role_of(template: Template, executor_id: int) -> tuple[str, int]:
    """(job_name, task_index) of a node."""
    for role, ids in template.items():
        if executor_id in ids:
            return role, list(ids).index(executor_id)
    raise ValueError(f"node {executor_id} is not in the cluster {dict(template)}")


def name_of(template: Template, executor_id: int) -> str:
    """What messages call a node: "worker:0"."""
    role, index = role_of(template, executor_id)
    return f"{role}:{index}"


def fed_ids(template: Template) -> list[int]:
    """The nodes that take rows."""
    return [i for role, ids in template.items() if role not in FED_ROLES_EXCEPT for i in ids]


def describe_failure(template: Template, failure: Mapping[str, Any]) -> str:
    """The rendezvous' first failure in the words of this API: role, index, host, reason."""
    rank = failure.get("rank", -1)
    if rank < 0:
        return str(failure["error"])
    where = f"{name_of(template, rank)} on host {failure['host']}"
    if failure["lost"]:
        return f"{where} {failure['error']}"
    return f"{where} failed: {failure['error']}"


def cluster_spec(nodes: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """The host:port of every node by role, in the order of the node ids."""
    spec: dict[str, list[str]] = {}
    for node in sorted(nodes, key=lambda node: node["executor_id"]):
        spec.setdefault(node["job_name"], []).append(f"{node['host']}:{node['port']}")
    return spec


def tf_config(spec: Mapping[str, list[str]], job_name: str, task_index: int) -> str | None:
    """The TF_CONFIG of a node; None in a cluster without chief or master, as TensorFlow has it."""
    if "chief" not in spec and "master" not in spec:
        return None
    task = {"type": job_name, "index": task_index}
    return json.dumps({"cluster": spec, "task": task, "environment": "cloud"})
