#!/usr/bin/env bash
# environment_with.sh HOME WHAT PACKAGE...: makes an environment like .venv there that has the packages
# too, unless it is there with the same ones. WHAT names them while they are fetched. Prints its Python.
# Run in the checkout's root.
set -euo pipefail
home=$1 what=$2
shift 2
if [ "$(cat "$home/complete" 2>/dev/null)" != "$*" ]; then
  tools/environment_beside.sh "$home" >/dev/null
  echo "$(basename "$home"): fetching $what" >&2
  .venv/bin/python -m pip --python "$home/bin/python" --disable-pip-version-check install --quiet "$@" >&2
  echo "$*" >"$home/complete"
fi
echo "$home/bin/python"
