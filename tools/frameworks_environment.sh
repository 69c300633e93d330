#!/usr/bin/env bash
# Makes build/torch-frameworks, an environment like .venv that has Lightning (with torchmetrics),
# Accelerate, transformers (with tokenizers), peft, datasets, Optuna and torchvision too.
# Prints its Python.
set -euo pipefail
cd "$(dirname "$0")/.."
home=$PWD/build/torch-frameworks
packages=(lightning==2.6.6 accelerate==1.15.0 transformers==5.24.0 peft==0.21.2 datasets==5.2.0 optuna==5.0.0
  torchvision==0.29.2)
if [ "$(cat "$home/complete" 2>/dev/null)" != "${packages[*]}" ]; then
  tools/environment_beside.sh "$home" >/dev/null
  echo "frameworks_environment: fetching lightning, accelerate, transformers, peft, datasets, Optuna, torchvision (90 MB)" >&2
  .venv/bin/python -m pip --python "$home/bin/python" --disable-pip-version-check install --quiet \
    "${packages[@]}" >&2
  echo "${packages[*]}" >"$home/complete"
fi
echo "$home/bin/python"
