#!/usr/bin/env bash
# Draws docs/data_path.svg from docs/data_path.dot by Graphviz.
set -euo pipefail
cd "$(dirname "$0")/../docs"
dot -Tsvg data_path.dot -o data_path.svg
