#!/usr/bin/env bash
# Makes build/spark-VERSION, an environment like .venv but with another version of Spark:
# its own pyspark and py4j, and a pandas that old Sparks take; all else is .venv's. Prints its Python.
#   tools/spark_environment.sh 3.5
set -euo pipefail
cd "$(dirname "$0")/.."
version=$1
home=$PWD/build/spark-$version
if [ ! -f "$home/complete" ]; then
  own=$(tools/environment_beside.sh "$home")
  echo "spark_environment: fetching pyspark $version (300 MB)" >&2
  case $version in
    3.5) release=3.5.7 py4j=0.10.9.7 ;;
    4.0) release=4.0.5 py4j=0.10.9.9 ;;
    4.1) release=4.1.4 py4j=0.10.9.9 ;;
    4.2) release=4.2.1 py4j=0.10.9.9 ;;
    *) echo "spark_environment: 3.5 and 4.0 to 4.2 are known, not $version" >&2; exit 2 ;;
  esac
  .venv/bin/python -m pip --python "$home/bin/python" --disable-pip-version-check install --quiet \
    --no-deps "pyspark==$release" "py4j==$py4j" 'pandas<3' pytz >&2
  # Until 4.0 the package on PyPI lacks the Connect server's jar.
  if ! compgen -G "$own/pyspark/jars/spark-connect_*" >/dev/null; then
    tools/maven.sh -q -B org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy \
      -Dartifact="org.apache.spark:spark-connect_2.12:$release" -DoutputDirectory="$own/pyspark/jars" >&2
  fi
  touch "$home/complete"
fi
echo "$home/bin/python"
