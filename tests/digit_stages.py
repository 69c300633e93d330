"""Spark ML stages that evaluate an estimator's predictions of digits."""

from __future__ import annotations

from typing import Any

from pyspark.ml import Pipeline
from pyspark.ml.evaluation import MulticlassClassificationEvaluator
from pyspark.ml.feature import SQLTransformer
from pyspark.ml.tuning import CrossValidator, ParamGridBuilder


def classes(scores: str) -> SQLTransformer:
    """A stage that selects the class with the greatest score, in the form of Spark's evaluators."""
    statement = f"SELECT *, double(array_position({scores}, array_max({scores})) - 1) AS prediction"
    return SQLTransformer(statement=f"{statement} FROM __THIS__")


def accuracy(frame: Any) -> float:
    """The accuracy of the predictions of classes()."""
    return _evaluator().evaluate(frame)


def better_of(stage: Any, rate: Any, values: list[float], scores: str) -> CrossValidator:
    """A CrossValidator for two learning rates that evaluates two at a time."""
    return CrossValidator(
        estimator=Pipeline(stages=[stage, classes(scores)]),
        estimatorParamMaps=ParamGridBuilder().addGrid(rate, values).build(),
        evaluator=_evaluator(),
        numFolds=2,
        parallelism=2,
    )


def _evaluator() -> MulticlassClassificationEvaluator:
    return MulticlassClassificationEvaluator(metricName="accuracy")
