#!/usr/bin/env bash
# Compiles into build-gpu/native what the parts of tools/gpu/run.sh need, for the Python named (its
# torch, NumPy and nanobind), with the headers and libraries of build-gpu/carry where that is.
#   tools/gpu/build.sh PYTHON
set -euo pipefail
found=$(command -v "$1")
# Absolute, but not resolved: an environment's Python is a link.
python=$(cd "$(dirname "$found")" && pwd)/$(basename "$found")
cd "$(dirname "$0")/../.."
carry=$PWD/build-gpu/carry
paths=()
if [ -d "$carry/system" ]; then
  # HDF5's compiler wrapper, which CMake's module runs otherwise, is not in the archive.
  paths=(-DCMAKE_PREFIX_PATH="$carry/system/usr"
         -DHDF5_ROOT="$carry/system/usr/lib/x86_64-linux-gnu/hdf5/serial"
         -DHDF5_C_INCLUDE_DIR="$carry/system/usr/include/hdf5/serial")
  export LD_LIBRARY_PATH=$carry/system/usr/lib/x86_64-linux-gnu
  "$python" -c 'import importlib.metadata as m; m.version("onednn-devel-cpu-gomp")' 2>/dev/null ||
    export PYTHONPATH=$carry/onednn/lib/python3/site-packages
fi
ninja=$(command -v ninja || echo "$(dirname "$python")/ninja")
cmake=$(command -v cmake || echo "$(dirname "$python")/cmake")
"$cmake" -G Ninja -S . -B build-gpu/native -DCMAKE_MAKE_PROGRAM="$ninja" -DCMAKE_BUILD_TYPE=Release \
  -DPython3_EXECUTABLE="$python" "${paths[@]}"
"$ninja" -C build-gpu/native hearth _core _caffe hearth_feed_c hearth_device_torch hearth_caffe_test
