#!/usr/bin/env bash
# Makes build-gpu/carry.tar.xz, all that tools/gpu/run.sh needs in addition to a checkout on a machine with a
# GPU that has Python, torch, a compiler and CMake, but no packages and no network. What
# tools/gpu/build.sh compiled is in it. Idempotent; prints the path to carry.
set -euo pipefail
cd "$(dirname "$0")/../.."
tools/setup.sh
mkdir -p build-gpu
exec .venv/bin/python tools/gpu/gather.py build-gpu/native build-gpu/carry.tar.xz
