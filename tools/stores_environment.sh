#!/usr/bin/env bash
# Makes build/stores, an environment like .venv that has moto's server and the packages of fsspec for
# S3, Google's and Azure's stores too. Prints its Python.
set -euo pipefail
cd "$(dirname "$0")/.."
# moto 5.2.1 names the response to a completed upload differently from S3; pyarrow treats it as a failure.
exec tools/environment_with.sh "$PWD/build/stores" "moto, s3fs, gcsfs, adlfs" \
  'moto[server,s3]==5.1.10' s3fs gcsfs adlfs
