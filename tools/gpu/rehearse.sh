#!/usr/bin/env bash
# Runs tools/gpu/run.sh on simulated GPUs: in a clone with only build-gpu/carry.tar.xz, without a
# network, with the Python of tools/gpu/environment.sh. Parts that need CUDA itself run as far as they can.
#   tools/gpu/rehearse.sh [PART...]
set -euo pipefail
cd "$(dirname "$0")/../.."
python=$PWD/build-gpu/environment/bin/python
[ -x "$python" ] && [ -f build-gpu/carry.tar.xz ] ||
  { echo "rehearse: first run tools/gpu/environment.sh and tools/gpu/prepare.sh" >&2; exit 1; }
copy=$(mktemp -d /tmp/hearth-rehearsal-XXXXXX)
trap 'rm -rf "$copy"' EXIT
git ls-files -co --exclude-standard | tar -c -T - | tar -x -C "$copy"
mkdir "$copy/build-gpu"
cp build-gpu/carry.tar.xz "$copy/build-gpu/"
out=$PWD/build-gpu/rehearsal
rm -rf "$out" && mkdir -p "$out"
# A network namespace without a route, but with a loopback.
unshare -n bash -c 'ip link set lo up && exec "$@"' rehearsal \
  env HEARTH_SIMULATED_GPUS=1 PYTHON="$python" PATH="$(dirname "$python"):$PATH" OUT="$out" \
  "$copy/tools/gpu/run.sh" "$@"
