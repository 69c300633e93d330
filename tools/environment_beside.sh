#!/usr/bin/env bash
# environment_beside.sh HOME: makes an empty environment there that falls back to .venv's packages.
# Prints its site-packages folder. Run in the checkout's root.
set -euo pipefail
home=$1
rm -rf "$home"
python3 -m venv --without-pip "$home"
packages=$(.venv/bin/python -c 'import sys; print(*(p for p in sys.path if p.endswith("site-packages")), sep="\n")')
own=$("$home/bin/python" -c 'import site; print(site.getsitepackages()[0])')
printf '%s\n' "$packages" >"$own/zz-rest.pth"  # after its own packages
printf '%s\n' "$PWD/python" >"$own/hearth-checkout.pth"
echo "$own"
