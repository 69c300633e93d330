#!/usr/bin/env bash
# Runs a Python command with another version of torch: in an environment like .venv but for torch
# and what that needs, which is made in ~/.cache/hearth and removed at the end (6 GB).
#   tools/with_torch.sh 2.8.0 -m pytest tests/python/test_torch_backend.py
set -euo pipefail
cd "$(dirname "$0")/.."
version=$1
home=${XDG_CACHE_HOME:-$HOME/.cache}/hearth/torch-$version
trap 'rm -rf "$home"' EXIT
tools/environment_beside.sh "$home" >/dev/null
echo "with_torch: fetching torch $version (3 GB)" >&2
pip=(.venv/bin/python -m pip --disable-pip-version-check)
index=${PIP_INDEX_URL:-$("${pip[@]}" config get global.index-url 2>/dev/null || true)}
# Without uv's cache, which would keep another copy. Compiled here: the tests' many processes would
# each do it, minutes under load, where PYTHONDONTWRITEBYTECODE is set.
env ${index:+UV_DEFAULT_INDEX="$index"} .venv/bin/uv pip install -q --no-cache --compile-bytecode \
  --python "$home/bin/python" "torch==$version" >&2
"$home/bin/python" "${@:2}"
