#!/usr/bin/env bash
# Makes build/stores, an environment like .venv that has moto's server and the packages of fsspec for
# S3, Google's and Azure's stores too. Prints its Python.
set -euo pipefail
cd "$(dirname "$0")/.."
home=$PWD/build/stores
# moto 5.2.1 names the answer to a completed upload otherwise than S3, and pyarrow takes it for a failure.
packages=('moto[server,s3]==5.1.10' s3fs gcsfs adlfs)
if [ "$(cat "$home/complete" 2>/dev/null)" != "${packages[*]}" ]; then
  tools/environment_beside.sh "$home" >/dev/null
  echo "stores_environment: fetching moto, s3fs, gcsfs, adlfs" >&2
  .venv/bin/python -m pip --python "$home/bin/python" --disable-pip-version-check install --quiet \
    "${packages[@]}" >&2
  echo "${packages[*]}" >"$home/complete"
fi
echo "$home/bin/python"
