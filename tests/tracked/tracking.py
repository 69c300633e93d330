"""MLflow runs in a database, and what MLflow has recorded when a run has ended."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import mlflow


class Tracked:
    """One run; after its block, its params, metrics and artifacts."""

    def __init__(self) -> None:
        self.run_id = ""

    @property
    def params(self) -> dict[str, str]:
        return dict(self._data().params)

    def metric(self, name: str) -> dict[int, float]:
        """The metric's values, by step."""
        points = mlflow.MlflowClient().get_metric_history(self.run_id, name)
        return {point.step: point.value for point in points}

    def in_order(self, name: str) -> list[float]:
        """The metric's values in the order of their steps."""
        found = self.metric(name)
        return [found[step] for step in sorted(found)]

    def metrics(self) -> set[str]:
        return set(self._data().metrics)

    def artifact(self, pattern: str) -> Path:
        """The only file in the model's folder that matches the pattern."""
        folder = mlflow.artifacts.download_artifacts(run_id=self.run_id, artifact_path="model")
        (found,) = Path(folder).glob(pattern)
        return found

    def check_dataset(self, name: str, **expected: Any) -> None:
        """Checks the dataset's params; None accepts any value."""
        params = self.params
        for key, value in expected.items():
            found = params.get(f"dataset.{name}.{key}")
            assert found and (value is None or found == str(value)), (name, key, found, params)

    def check_steps(self, name: str, steps: set[int]) -> None:
        """Checks that the metric has finite values at these steps."""
        found = self.metric(name)
        assert steps <= set(found), (name, steps, found)
        assert all(math.isfinite(found[step]) for step in steps), found

    def _data(self) -> Any:
        return mlflow.MlflowClient().get_run(self.run_id).data


def track_in(folder: Path) -> None:
    """Stores all further runs in this folder."""
    mlflow.set_tracking_uri(f"sqlite:///{folder}/runs.db")
    uri = (folder / "artifacts").as_uri()
    mlflow.set_experiment(experiment_id=mlflow.create_experiment("hearth", artifact_location=uri))


@contextmanager
def tracked() -> Iterator[Tracked]:
    """Makes an MLflow run active within the block."""
    found = Tracked()
    with mlflow.start_run() as run:
        found.run_id = run.info.run_id
        yield found
