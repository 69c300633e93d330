"""TorchDistributor: pyspark.ml.torch.distributor's constructor and run(), on a TorchCluster."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from hearth.cluster import roles
from hearth.cluster.driver.plan import Plan
from hearth.cluster.node import gpu_info
from hearth.cluster.task.node_job import NodeOptions
from hearth.errors import invalid
from hearth.spark.links import check_nccl
from hearth.spark.profiles import GPUS, gpus_of_nodes
from hearth.spark.session import active_session
from hearth.torch import returned
from hearth.torch.torch_cluster import TorchCluster

_IGNORE_SSL = "pytorch.spark.distributor.ignoreSsl"


class TorchDistributor:
    """A distributor, which runs a function, or a Python file, as the ranks of one PyTorch program.

    Each rank is a node of a TorchCluster with torchrun's environment variables. As with pyspark's
    distributor, every rank appears to be the only one on its host (LOCAL_RANK is 0), unless
    local_mode is true.
    """

    def __init__(
        self,
        num_processes: int = 1,
        local_mode: bool = True,
        use_gpu: bool = True,
        _ssl_conf: str = _IGNORE_SSL,
    ):
        """Uses the active SparkSession.

        Args:
            num_processes: number of ranks.
            local_mode: run the ranks on the driver's host; otherwise in task slots of the
                executors.
            use_gpu: each rank sees one GPU.

        Raises:
            ValueError: num_processes is not positive.
            RuntimeError: there is no active session, or use_gpu is set and there are no GPUs.
            HearthError: spark.hearth.task.resource.gpu.amount is not a number.
        """
        self.spark: Any = active_session()
        if self.spark is None:
            raise invalid("TorchDistributor needs an active SparkSession: start one first")
        if num_processes <= 0:
            raise invalid("num_processes has to be a positive integer")
        self.num_processes = num_processes
        self.local_mode = local_mode
        self.use_gpu = use_gpu
        self.ssl_conf = _ssl_conf
        if use_gpu:
            self._check_gpus()

    def _check_gpus(self) -> None:
        if self.local_mode:
            if not gpu_info.is_gpu_available():
                raise invalid(
                    "the driver has no GPU: set use_gpu=False to compute on its CPU, or "
                    "local_mode=False to use the GPUs of executors"
                )
            return
        key = "spark.task.resource.gpu.amount"
        amount = gpus_of_nodes(self.spark.conf.get)
        if amount:
            key = GPUS
        else:
            amount = float(self.spark.conf.get(key, "0"))
        if amount <= 0:
            raise invalid(f"'{key}' was unset, so gpu usage is unavailable.")
        if amount > 1:
            raise invalid(
                f"'{key}' is {amount:g}, but each rank is a task with one GPU: set it to 1"
            )

    def run(self, train_object: Callable[..., Any] | str, *args: Any, **kwargs: Any) -> Any:
        """Runs distributed training; returns when all ranks have finished.

        Args:
            train_object: a function, called with args and kwargs on every rank; or the path of a
                Python file that each rank's host can read, run as the main program with args as its
                command line.

        Returns:
            The return value of the function on rank 0: tensors, numbers, strings, and lists, tuples
            and dicts of them, such as a state_dict; None for a file.

        Raises:
            NodeError: a rank failed, with its host and its traceback or signal; or use_gpu is set,
                the ranks are on several hosts and Spark's settings require encryption between them,
                unless pytorch.spark.distributor.ignoreSsl is true.
            ReservationTimeoutError: not all ranks found a task slot.
            ValueError: keyword arguments for a file.
            RuntimeError: spark.ssl.enabled is true, which PyTorch's ranks do not support.
        """
        self._check_encryption()
        if isinstance(train_object, str):
            if kwargs:
                raise invalid("Running pytorch file does not support key-word type arguments.")
            main = partial(_run_file, train_object, args)
        else:
            main = partial(_run_function, train_object, args, kwargs)
        checks = self.use_gpu and not self._is_true(self.ssl_conf)
        run_rank = partial(_run_as_rank, main, self.local_mode, checks)
        cluster = TorchCluster.of_plan(self.spark, self._plan(), run_rank, None)
        with cluster:
            cluster.shutdown()
        return returned.of_rank_0(cluster)

    def _plan(self) -> Plan:
        ranks = range(self.num_processes)
        return Plan(
            roles.template_of({"worker": self.num_processes}),
            NodeOptions(num_gpus=1 if self.use_gpu else 0, logs="all"),
            beside_driver=frozenset(ranks if self.local_mode else ()),
            release_port=False,
        )

    def _check_encryption(self) -> None:
        if self._is_true("spark.ssl.enabled") and not self._is_true(self.ssl_conf):
            raise invalid(
                "spark.ssl.enabled is true, but the ranks of a PyTorch program communicate "
                f"unencrypted: set {self.ssl_conf} to true if that is acceptable"
            )

    def _is_true(self, key: str) -> bool:
        return str(self.spark.conf.get(key, "false")).lower() == "true"


def _run_as_rank(
    main: Callable[[Any], None], local_mode: bool, checks: bool, _: Any, ctx: Any
) -> None:
    """The main function of each node; `checks`: whether to refuse NCCL, which sends unencrypted
    data, if Spark's settings require encryption."""
    if checks:
        check_nccl(ctx.hosts)
    if not local_mode:
        alone = {"LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1", "GROUP_RANK": str(ctx.rank)}
        os.environ.update(alone)
    main(ctx)


def _run_function(function: Any, args: Any, kwargs: Any, ctx: Any) -> None:
    value = function(*args, **kwargs)
    if ctx.rank == 0:
        returned.give(ctx, value)


def _run_file(path: str, args: Any, _: Any) -> None:
    sys.argv = [path, *map(str, args)]
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    runpy.run_path(path, run_name="__main__")
