#!/usr/bin/env bash
# Prepares a checkout: Debian packages, those named as arguments too, then the virtual environment
# .venv. With --demo, what `make demo` needs; without, what the tests need as well.
# Does nothing (in well under a second) when both are there already.
#   tools/setup.sh [--demo] [PACKAGE ...]
set -euo pipefail
cd "$(dirname "$0")/.."
for_tests=1
if [ "${1:-}" = --demo ]; then for_tests= && shift; fi

packages=(g++ make ccache git libfmt-dev libspdlog-dev nlohmann-json3-dev libcli11-dev libssl-dev
          libjpeg-dev libpng-dev zlib1g-dev libxxhash-dev liblmdb-dev libleveldb-dev libhdf5-dev
          libcurl4-openssl-dev python3-dev python3-venv openjdk-17-jre-headless "$@")
requirements=(tools/requirements.txt)
if [ "$for_tests" ]; then
  packages+=(libgtest-dev libgmock-dev iproute2 clang-format clang-tidy graphviz)
  requirements+=(tools/requirements-tests.txt)
fi

missing=()
for package in "${packages[@]}"; do
  # Java and Python may be installed without a package.
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
  echo "setup: Debian packages: ${missing[*]}"
  log=$(mktemp)
  # apt-get's status lines are (dl|pm)status:NAME:PERCENT:TEXT; NAME may end with :ARCHITECTURE.
  show_percent() {
    local line percent text shown=
    local status='^(dl|pm)status:[^:]*(:[a-z][^:]*)?:([0-9]+)[0-9.,]*:'
    while read -r line; do
      [[ $line =~ $status ]] || continue
      percent=${BASH_REMATCH[3]} text=installed
      if [ "${BASH_REMATCH[1]}" = dl ]; then text=downloaded; fi
      if [ -t 1 ]; then printf '\rsetup: %3d %% %s ' "$percent" "$text"
      elif [ "$((percent / 25))$text" != "$shown" ]; then
        shown=$((percent / 25))$text && echo "setup: $percent % $text"
      fi
    done
    if [ -t 1 ]; then echo; fi
  }
  install_missing() {
    "${sudo[@]}" apt-get update -qq >"$log" 2>&1 &&
      { "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq -o APT::Status-Fd=1 \
          --no-install-recommends -o DPkg::Lock::Timeout=300 "${missing[@]}" 2>>"$log" |
        tee -a "$log" | show_percent; }
  }
  if ! thrice install_missing; then
    { grep -vE '^(dl|pm)status:' "$log" || true; } | tail -n 5 >&2
    echo "setup: apt-get could not install: ${missing[*]} (whole log: $log)" >&2
    exit 1
  fi
  rm -f "$log"
fi

python3 -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' || {
  echo "setup: Python 3.11 to 3.13 is needed (torch and pyspark have no packages for others), $(python3 --version) was found" >&2
  exit 1
}
# The stamp has the hash of the files that were installed: those of the tests serve the demo.
stamp=.venv/requirements.sha256
have=$(cat "$stamp" 2>/dev/null || true)
whole=$(cat tools/requirements.txt tools/requirements-tests.txt | sha256sum)
want=$(cat "${requirements[@]}" | sha256sum)
if [ "$have" != "$want" ] && [ "$have" != "$whole" ]; then
  if [ "$for_tests" ]; then size="torch and TensorFlow: about 3.5 GB"; else size="Spark: about 0.6 GB"; fi
  echo "setup: Python packages into .venv ($size; minutes, once)"
  # Again, too, where an interrupt left an environment without pip.
  .venv/bin/python -m pip --version >/dev/null 2>&1 || python3 -m venv .venv
  # uv unpacks and compiles several packages at once, which takes half of pip's time; where it finds
  # no index that pip would, pip does it. Compiled here, as PYTHONDONTWRITEBYTECODE may be set later.
  pip=(.venv/bin/python -m pip)
  index=$("${pip[@]}" config get global.index-url 2>/dev/null || true)
  index=${PIP_INDEX_URL:-$index}
  { "${pip[@]}" install -q --disable-pip-version-check 'uv<1' &&
      env ${index:+UV_DEFAULT_INDEX="$index"} .venv/bin/uv pip install --python .venv/bin/python \
        --compile-bytecode "${requirements[@]/#/-r}"; } ||
    thrice "${pip[@]}" install --disable-pip-version-check "${requirements[@]/#/-r}"
  .venv/bin/python -c 'import pyspark, pyarrow, nanobind'
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

# Also its entry points, as a separate distribution: torch.distributed looks up backends there.
info=$(echo .venv/lib/python3.*/site-packages)/hearth_checkout-0.dist-info
points=$(sed -n '/^\[project\.entry-points\./,/^$/{s/^\[project\.entry-points\.\(.*\)\]$/[\1]/; s/"//g; /./p}' pyproject.toml)
if [ "$(cat "$info/entry_points.txt" 2>/dev/null)" != "$points" ]; then
  mkdir -p "$info"
  printf 'Metadata-Version: 2.1\nName: hearth-checkout\nVersion: 0\n' >"$info/METADATA"
  printf '%s\n' "$points" >"$info/entry_points.txt"
fi
