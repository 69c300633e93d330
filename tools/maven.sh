#!/usr/bin/env bash
# maven.sh ARGUMENTS...: runs Maven, with two retries after a repository error. Prints Maven's output
# at the end. One at a time, as all write to the same repository.
set -euo pipefail
log=$(mktemp)
trap 'cat "$log"; rm -f "$log"' EXIT
trap 'exit 130' INT
mkdir -p ~/.m2
exec 9>~/.m2/hearth.lock
flock 9
failed_it='Could not (transfer|resolve)|could not be resolved|Failed to (collect|read artifact)'
for pause in 5 30 ''; do
  status=0
  mvn "$@" >"$log" 2>&1 || status=$?
  if [ $status = 0 ] || [ $status -ge 128 ] || [ -z "$pause" ] || ! grep -qE "$failed_it" "$log"; then
    exit $status
  fi
  echo "maven: once more in $pause s: $(grep -m 1 -E "$failed_it" "$log")" >&2
  sleep "$pause"
done
