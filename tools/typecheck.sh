#!/usr/bin/env bash
# Runs mypy, strict, over the packages that training programs import (hearth.torch, hearth.data, ...)
# and over a user's program (tests/torch/typed_program.py), in a separate environment, build/mypy.
# Values and base classes of libraries without types are Any.
set -euo pipefail
cd "$(dirname "$0")/.."
python=$(tools/environment_with.sh "$PWD/build/mypy" "mypy (20 MB)" mypy==2.4.1)
MYPYPATH=python "$python" -m mypy --python-executable .venv/bin/python \
  --cache-dir build/mypy/cache --follow-imports=silent --ignore-missing-imports --no-error-summary \
  --strict --implicit-reexport --no-warn-return-any --allow-subclassing-any --allow-untyped-calls --allow-untyped-decorators \
  python/hearth/{errors.py,torch,data,checkpoints,cluster,tensorflow,ml,petastorm,caffeonspark,tensorflowonspark,horovod} \
  tests/torch/typed_program.py
