#!/usr/bin/env bash
# Makes a checkout ready to build: system packages, those named as arguments too, then the virtual
# environment .venv.
# Does nothing (in well under a second) when both are there already.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(g++ make ccache git libfmt-dev libspdlog-dev nlohmann-json3-dev libcli11-dev libgtest-dev
          libgmock-dev libssl-dev libjpeg-dev libpng-dev zlib1g-dev libxxhash-dev liblmdb-dev libleveldb-dev libhdf5-dev libcurl4-openssl-dev
          python3-dev python3-venv
          iproute2 openjdk-17-jre-headless clang-format clang-tidy graphviz "$@")

missing=()
for package in "${packages[@]}"; do
  # Java may come from elsewhere, and so may Python.
  case $package in
    openjdk-*-jdk-*) command -v javac >/dev/null && continue ;;
    openjdk-*) command -v java >/dev/null && continue ;;
    maven) command -v mvn >/dev/null && continue ;;
    python3-*) python3 -c 'import ensurepip, sysconfig, os; assert os.path.exists(sysconfig.get_paths()["include"] + "/Python.h")' 2>/dev/null && continue ;;
  esac
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q "ok installed" || missing+=("$package")
done
# A registry may fail once, or another apt be at work.
thrice() { "$@" || once_more 5 "$@" || once_more 60 "$@"; }
once_more() { echo "setup: that failed; once more in $1 s" >&2 && sleep "$1" && "${@:2}"; }
trap 'exit 130' INT

if [ ${#missing[@]} -gt 0 ]; then
  if [ "$(id -u)" = 0 ]; then sudo=(); elif sudo -n true 2>/dev/null; then sudo=(sudo -n); else
    echo "setup: as root, run: apt-get install -y ${missing[*]}" >&2
    exit 1
  fi
  echo "setup: installing ${missing[*]}"
  log=$(mktemp)
  install_missing() {
    { "${sudo[@]}" apt-get update -qq && "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get \
        install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=300 "${missing[@]}"; } >"$log" 2>&1
  }
  if ! thrice install_missing; then
    tail -n 5 "$log" >&2
    echo "setup: apt-get could not install: ${missing[*]} (whole log: $log)" >&2
    exit 1
  fi
  rm -f "$log"
fi

python3 -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' || {
  echo "setup: Python 3.11 to 3.13 is needed (torch and pyspark have no packages for others), $(python3 --version) was found" >&2
  exit 1
}
stamp=.venv/requirements.sha256
want=$(sha256sum <tools/requirements.txt)
if [ ! -f "$stamp" ] || [ "$(cat "$stamp")" != "$want" ]; then
  echo "setup: making .venv (torch is about 2.5 GB; minutes, once)"
  [ -x .venv/bin/python ] || python3 -m venv .venv
  # uv unpacks and compiles several packages at once, which takes half of pip's time; where it finds
  # no index that pip would, pip does it. Compiled here, as PYTHONDONTWRITEBYTECODE may be set later.
  pip=(.venv/bin/python -m pip)
  index=$("${pip[@]}" config get global.index-url 2>/dev/null || true)
  index=${PIP_INDEX_URL:-$index}
  { "${pip[@]}" install -q --disable-pip-version-check 'uv<1' &&
      env ${index:+UV_DEFAULT_INDEX="$index"} .venv/bin/uv pip install --python .venv/bin/python \
        --compile-bytecode -r tools/requirements.txt; } ||
    thrice "${pip[@]}" install --disable-pip-version-check -r tools/requirements.txt
  .venv/bin/python -c 'import torch, pyspark, pyarrow, nanobind'
  # The checkout's Python package, importable from this environment as it stands.
  .venv/bin/python -c 'import site, pathlib, sys; pathlib.Path(site.getsitepackages()[0], "hearth-checkout.pth").write_text(sys.argv[1] + "\n")' "$PWD/python"
  echo "$want" >"$stamp"
fi

# The programs of the checkout's package, as a wheel installs them; each looks at its own name.
for name in $(sed -n 's/^\([a-z_]*\) = "hearth.cli:main"$/\1/p' pyproject.toml); do
  program=.venv/bin/$name
  [ "$(sed -n 1p "$program" 2>/dev/null)" = "#!$PWD/.venv/bin/python" ] && continue
  rm -f "$program"
  printf '#!%s/.venv/bin/python\nfrom hearth.cli import main\nmain()\n' "$PWD" >"$program"
  chmod +x "$program"
done

# Its entry points, too, in a distribution of their own: torch.distributed looks for backends there.
info=$(echo .venv/lib/python3.*/site-packages)/hearth_checkout-0.dist-info
points=$(sed -n '/^\[project\.entry-points\./,/^$/{s/^\[project\.entry-points\.\(.*\)\]$/[\1]/; s/"//g; /./p}' pyproject.toml)
if [ "$(cat "$info/entry_points.txt" 2>/dev/null)" != "$points" ]; then
  mkdir -p "$info"
  printf 'Metadata-Version: 2.1\nName: hearth-checkout\nVersion: 0\n' >"$info/METADATA"
  printf '%s\n' "$points" >"$info/entry_points.txt"
fi
