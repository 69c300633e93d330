#!/usr/bin/env bash
# Makes build/torch-frameworks, an environment like .venv that has Lightning (with torchmetrics),
# Accelerate, transformers (with tokenizers), peft, datasets, Optuna and torchvision too.
# Prints its Python.
set -euo pipefail
cd "$(dirname "$0")/.."
exec tools/environment_with.sh "$PWD/build/torch-frameworks" \
  "lightning, accelerate, transformers, peft, datasets, Optuna, torchvision (90 MB)" \
  lightning==2.6.6 accelerate==1.15.0 transformers==5.24.0 peft==0.21.2 datasets==5.2.0 optuna==5.0.0 \
  torchvision==0.29.2
