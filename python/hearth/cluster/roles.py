"""Maps nodes to roles and to their names in messages."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hearth.errors import invalid
from hearth.native.failure import Failure

# Roles whose nodes take rows; the others wait for the cluster's end.
UNFED_ROLES = ("ps", "evaluator")

Template = Mapping[str, Sequence[int]]


def template_of(counts: Mapping[str, int]) -> dict[str, list[int]]:
    """Node ids by role, from the number of nodes per role."""
    ids = iter(range(sum(counts.values())))
    return {role: [next(ids) for _ in range(count)] for role, count in counts.items() if count}


def role_of(template: Template, executor_id: int) -> tuple[str, int]:
    """(job_name, task_index) of a node."""
    for role, ids in template.items():
        if executor_id in ids:
            return role, list(ids).index(executor_id)
    raise invalid(f"node {executor_id} is not in the cluster {dict(template)}")


def name_of(template: Template, executor_id: int) -> str:
    """A node's name in messages: "worker:0"."""
    role, index = role_of(template, executor_id)
    return f"{role}:{index}"


def fed_ids(template: Template) -> list[int]:
    """The nodes that take rows."""
    return [i for role, ids in template.items() if role not in UNFED_ROLES for i in ids]


def describe_failure(template: Template, failure: Mapping[str, Any]) -> str:
    """The rendezvous' first failure as a message: role, index, host, reason."""
    rank = failure.get("rank", -1)
    if rank < 0:
        return str(failure["error"])
    where = f"{name_of(template, rank)} on host {failure['host']}"
    if failure["lost"]:
        return f"{where} {failure['error']}"
    return f"{where} failed: {failure['error']}"


def node_failure(template: Template, failure: Mapping[str, Any]) -> Failure:
    """The rendezvous' first failure as a Failure, with the text of describe_failure()."""
    rank = failure.get("rank", -1)
    known = {
        "text": describe_failure(template, failure),
        "node": name_of(template, rank) if rank >= 0 else "",
    }
    return Failure.of(failure, **known)


def cluster_spec(nodes: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """The host:port of every node by role, in the order of the node ids."""
    spec: dict[str, list[str]] = {}
    for node in sorted(nodes, key=lambda node: node["executor_id"]):
        spec.setdefault(node["job_name"], []).append(f"{node['host']}:{node['port']}")
    return spec


def fed_nodes(nodes: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The nodes that take rows, in the order in which NodeContext.share() numbers them."""
    by_id = sorted(nodes, key=lambda node: node["executor_id"])
    names = [role for role in cluster_spec(nodes) if role not in UNFED_ROLES]
    return [node for role in names for node in by_id if node["job_name"] == role]


def tf_config(spec: Mapping[str, list[str]], job_name: str, task_index: int) -> str | None:
    """A node's TF_CONFIG; None if the cluster lacks the chief or master that TensorFlow
    requires."""
    if "chief" not in spec and "master" not in spec:
        return None
    task = {"type": job_name, "index": task_index}
    return json.dumps({"cluster": spec, "task": task, "environment": "cloud"})
