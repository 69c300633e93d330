"""Assigns TensorFlow's roles to nodes, from the numbers that a program passes."""

from __future__ import annotations


def make_template(
    num_executors: int, num_ps: int, master_node: str | None, eval_node: bool
) -> dict[str, list[int]]:
    """The node ids of each role, in the order ps, master, evaluator, worker.

    Raises:
        AssertionError: no node is left for training, or the numbers do not add up.
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
