#!/usr/bin/env bash
# Runs mypy over the packages that training programs import (hearth.torch, hearth.data, ...) and over
# what their users write (tests/torch/typed_program.py), in a separate environment, build/mypy.
# An unneeded `type: ignore` is an error.
set -euo pipefail
cd "$(dirname "$0")/.."
python=$(tools/environment_with.sh "$PWD/build/mypy" "mypy (20 MB)" mypy==2.4.1)
MYPYPATH=python "$python" -m mypy --python-executable .venv/bin/python \
  --cache-dir build/mypy/cache --follow-imports=silent --ignore-missing-imports \
  --warn-unused-ignores --no-error-summary python/hearth/{torch,data,checkpoints,cluster,tensorflow,ml} \
  tests/torch/typed_program.py
