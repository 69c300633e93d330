#!/usr/bin/env bash
# Makes build-gpu/environment, with the packages of a machine with a GPU: the Python named
# (default: python3), torch of the version named (default: 2.11.0) and the packages that parts of
# tools/gpu/run.sh import. Prints its Python.
#   tools/gpu/environment.sh [PYTHON] [TORCH]
set -euo pipefail
cd "$(dirname "$0")/../.."
python=${1:-python3} torch=${2:-2.11.0}
home=$PWD/build-gpu/environment
wanted="$("$python" --version) torch $torch"
if [ "$(cat "$home/complete" 2>/dev/null)" != "$wanted" ]; then
  rm -rf "$home"
  echo "environment: fetching torch $torch and others (3 GB)" >&2
  "$python" -m venv "$home" >&2
  pip=("$home/bin/python" -m pip --disable-pip-version-check)
  index=$("${pip[@]}" config get global.index-url 2>/dev/null || true)
  "${pip[@]}" install -q 'uv<1' >&2
  env ${index:+UV_DEFAULT_INDEX="$index"} "$home/bin/uv" pip install -q --python "$home/bin/python" \
    "torch==$torch" torchvision numpy pyarrow pandas transformers accelerate lightning timm nanobind \
    pytest pytest-timeout pytest-xdist cmake ninja rich psutil \
    onednn-cpu-gomp==2023.2.0 onednn-devel-cpu-gomp==2023.2.0 >&2
  echo "$wanted" >"$home/complete"
fi
echo "$home/bin/python"
