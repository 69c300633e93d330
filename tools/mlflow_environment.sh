#!/usr/bin/env bash
# Makes build/mlflow, an environment like .venv that has MLflow too. Prints its Python.
set -euo pipefail
cd "$(dirname "$0")/.."
exec tools/environment_with.sh "$PWD/build/mlflow" "MLflow (100 MB)" mlflow==3.17.0
