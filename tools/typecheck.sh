#!/usr/bin/env bash
# Runs mypy over the packages that training programs import (hearth.torch, hearth.data, ...) and over
# what their users write (tests/torch/typed_program.py), in an environment of its own, build/mypy. A `type: ignore` that nothing needs is an error there.
set -euo pipefail
cd "$(dirname "$0")/.."
home=$PWD/build/mypy
package=mypy==2.4.1
if [ "$(cat "$home/complete" 2>/dev/null)" != "$package" ]; then
  tools/environment_beside.sh "$home" >/dev/null
  echo "typecheck: fetching mypy (20 MB)" >&2
  .venv/bin/python -m pip --python "$home/bin/python" --disable-pip-version-check install --quiet \
    "$package" >&2
  echo "$package" >"$home/complete"
fi
MYPYPATH=python "$home/bin/python" -m mypy --python-executable .venv/bin/python \
  --cache-dir build/mypy/cache --follow-imports=silent --ignore-missing-imports \
  --warn-unused-ignores --no-error-summary python/hearth/{torch,data,checkpoints,cluster,tensorflow,ml} \
  tests/torch/typed_program.py
