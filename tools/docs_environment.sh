#!/usr/bin/env bash
# Makes build/docs, an environment like .venv that has mkdocs-material and mkdocstrings too. Prints
# its Python.
set -euo pipefail
cd "$(dirname "$0")/.."
exec tools/environment_with.sh "$PWD/build/docs" "mkdocs-material, mkdocstrings" \
  'mkdocs==1.6.1' 'mkdocs-material==9.8.2' 'mkdocstrings[python]==1.0.8'
