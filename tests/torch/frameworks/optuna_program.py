"""The recipe examples/torch/parameter_search.py with Optuna: study, pruner, and reports that end a
trial. A loss formula replaces the trainings.
"""

import sys
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "examples" / "torch"))
import parameter_search

EPOCHS = 4


def training(spark, args, datasets, rate, on_report):
    """The loss grows with the rate's distance from 0.01; stops when on_report() requests it."""
    for step in range(EPOCHS):
        loss = abs(rate - 0.01) + 1 / (step + 1)
        if not on_report(SimpleNamespace(step=step, values={"loss": loss})):
            break
    return loss


def main():
    import optuna

    parameter_search.trial = training
    parameter_search.frames = lambda spark, rows: (None, None)
    args = parameter_search.parse(["--trials", "12", "--at_once", "2"])
    study = parameter_search.search(None, args)
    states = [trial.state for trial in study.trials]
    assert len(states) == 12, states
    assert optuna.trial.TrialState.PRUNED in states, states
    assert set(states) <= {optuna.trial.TrialState.PRUNED, optuna.trial.TrialState.COMPLETE}, states
    print(study.best_params)
    assert abs(study.best_params["rate"] - 0.01) < 0.1, study.best_params


if __name__ == "__main__":
    main()
