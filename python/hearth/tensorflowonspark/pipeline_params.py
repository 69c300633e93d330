"""The Params of TFEstimator and TFModel, and their conversion to arguments."""

from __future__ import annotations

import argparse
import copy
from collections.abc import Iterator, Mapping
from typing import Any

from pyspark.ml.param import Params, TypeConverters

from hearth.errors import invalid
from hearth.spark.ml_stage import all_of, param


class TFTypeConverters:
    """Conversions that Spark's TypeConverters lack."""

    @staticmethod
    def toDict(value: Any) -> dict[Any, Any]:
        """`value` if it is a dict. Raises TypeError."""
        if isinstance(value, dict):
            return value
        raise TypeError(f"Could not convert {value} to dict")

    @staticmethod
    def toInputMode(value: Any) -> int:
        """Raises ValueError for InputMode.TENSORFLOW, because a pipeline's rows come from its
        DataFrame."""
        from hearth.tensorflowonspark.TFCluster import InputMode

        if value == InputMode.TENSORFLOW:
            raise invalid("InputMode.TENSORFLOW is not possible in a pipeline: use SPARK")
        return TypeConverters.toInt(value)


class Namespace:
    """The arguments of a program as attributes, from a dict, another namespace or argparse; or an
    argv list."""

    argv: list[str] | None = None

    def __init__(self, d: Any):
        """Copies `d`. Raises TypeError for other types."""
        if isinstance(d, list):
            self.argv = d
        elif isinstance(d, Mapping):
            self.__dict__.update(d)
        elif isinstance(d, argparse.Namespace):
            self.__dict__.update(vars(d))
        elif isinstance(d, Namespace):
            self.__dict__.update(d.__dict__)
        else:
            raise TypeError(f"Unsupported Namespace args: {d}")

    def __iter__(self) -> Iterator[str]:
        yield from self.argv if self.argv is not None else self.__dict__

    def __contains__(self, key: object) -> bool:
        return key in self.__dict__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Namespace) and self.__dict__ == other.__dict__

    def __repr__(self) -> str:
        return str(self.argv if self.argv is not None else self.__dict__)


HasBatchSize = param("batch_size", "Number of records per batch", TypeConverters.toInt)
HasClusterSize = param("cluster_size", "Number of nodes in the cluster", TypeConverters.toInt)
HasEpochs = param("epochs", "Number of epochs to train", TypeConverters.toInt)
HasExportDir = param("export_dir", "Directory to export saved_model", TypeConverters.toString)
HasGraceSecs = param("grace_secs", "Seconds for ps nodes to end", TypeConverters.toInt)
HasInputMapping = param("input_mapping", "Input tensor by column", TFTypeConverters.toDict)
HasInputMode = param("input_mode", "Input data feeding mode", TFTypeConverters.toInputMode)
HasMasterNode = param("master_node", "Job name of the master node", TypeConverters.toString)
HasModelDir = param("model_dir", "Path to save or load checkpoints", TypeConverters.toString)
HasNumPS = all_of(
    param("num_ps", "Number of parameter servers", TypeConverters.toInt, "NumPS"),
    param("driver_ps_nodes", "Run ps on the driver", TypeConverters.toBoolean, "DriverPSNodes"),
)
HasOutputMapping = param("output_mapping", "Output column by tensor", TFTypeConverters.toDict)
HasProtocol = param("protocol", "Network protocol of TensorFlow", TypeConverters.toString)
HasReaders = param("readers", "Number of reader threads", TypeConverters.toInt)
HasSignatureDefKey = param("signature_def_key", "Signature to serve", TypeConverters.toString)
HasSteps = param("steps", "Maximum number of steps to train", TypeConverters.toInt)
HasTagSet = param("tag_set", "Comma-delimited tags of the saved model", TypeConverters.toString)
HasTensorboard = param("tensorboard", "Launch TensorBoard", TypeConverters.toBoolean)
HasTFRecordDir = param(
    "tfrecord_dir", "Directory of TFRecords", TypeConverters.toString, "TFRecordDir"
)


class TFParams(Params):
    """Params together with the arguments of the program."""

    args: Namespace | None = None

    def merge_args_params(self) -> Any:
        """The arguments merged with this stage's Params, which take precedence."""
        merged = copy.copy(self.args) if self.args is not None else Namespace({})
        for known in self.params:
            if self.isDefined(known):
                setattr(merged, known.name, self.getOrDefault(known.name))
        return merged
