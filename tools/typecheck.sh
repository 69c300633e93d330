#!/usr/bin/env bash
# Runs mypy over the packages that programs import (hearth.torch, hearth.data, ...) and over what
# their users write (tests/torch/typed_program.py), in an environment of its own, build/mypy. Strict,
# but for values and base classes of libraries without types, which are Any. Signatures of
# TensorFlowOnSpark's API are that project's, so hearth.tensorflowonspark is left out.
set -euo pipefail
cd "$(dirname "$0")/.."
python=$(tools/environment_with.sh "$PWD/build/mypy" "mypy (20 MB)" mypy==2.4.1)
MYPYPATH=python "$python" -m mypy --python-executable .venv/bin/python \
  --cache-dir build/mypy/cache --follow-imports=silent --ignore-missing-imports --no-error-summary \
  --strict --implicit-reexport --no-warn-return-any --allow-subclassing-any --allow-untyped-calls --allow-untyped-decorators \
  python/hearth/{errors.py,torch,data,checkpoints,cluster,tensorflow,ml,petastorm} \
  tests/torch/typed_program.py
