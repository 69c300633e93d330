#!/usr/bin/env bash
# Checks and measures Hearth on this machine's GPU (docs/gpu.md). Unpacks build-gpu/carry.tar.xz, builds
# what it lacks for this Python and torch, then runs the parts, those of the first call where
# none is named. One JSON and one log grow in $OUT (default: build-gpu/out) as parts end.
#   tools/gpu/run.sh [PART...]
set -euo pipefail
cd "$(dirname "$0")/../.."
start=$(date +%s)
export OUT=${OUT:-$PWD/build-gpu/out}
mkdir -p "$OUT"
[ -d build-gpu/carry ] || tar -xf build-gpu/carry.tar.xz -C build-gpu --no-same-owner
carry=$PWD/build-gpu/carry
python=${PYTHON:-python3}
torch=$("$python" -c 'import importlib.util as u; print(u.find_spec("torch").submodule_search_locations[0])')
# For the programs that the parts start, not for the Python that runs them.
export HEARTH_GPU_LIBRARIES=$carry/system/usr/lib/x86_64-linux-gnu:$carry/onednn/lib:$torch/lib
export PYTHONPATH=$PWD/python:$PWD/bench${PYTHONPATH:+:$PYTHONPATH} PYTHONUNBUFFERED=1
# Use the carried build if it can be loaded.
export HEARTH_NATIVE_DIR=$carry/native HEARTH_GPU_TESTS=$carry/tests
if ! LD_LIBRARY_PATH=$HEARTH_GPU_LIBRARIES "$python" -c 'from hearth.native import _core, _caffe' 2>"$OUT/carried.log"; then
  echo "run: what was carried cannot be loaded here: $(tail -n 1 "$OUT/carried.log" | cut -c1-300)"
  echo "run: compiling on $(nproc) cores"
  tools/gpu/build.sh "$python" >"$OUT/build.log" 2>&1 || { tail -n 20 "$OUT/build.log"; exit 1; }
  export HEARTH_NATIVE_DIR=$PWD/build-gpu/native/native HEARTH_GPU_TESTS=$PWD/build-gpu/native/hearth/caffe
fi
# The engine runs with any torch; only the library for GPUs is compiled for one version.
if ! "$python" -c 'import ctypes, torch; ctypes.CDLL("'"$HEARTH_NATIVE_DIR"'/libhearth_device_torch.so")' 2>>"$OUT/carried.log"; then
  echo "run: compiling the library for GPUs"
  "$python" -m hearth.tools.build_device
fi
export HEARTH_DEVICE_LIBRARY=$HEARTH_NATIVE_DIR/libhearth_device_torch.so
echo "run: ready after $(($(date +%s) - start)) s"
exec "$python" tools/gpu/run_parts.py "$@"
