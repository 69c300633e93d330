#!/usr/bin/env bash
# maven.sh ARGUMENTS...: runs Maven, and twice more where a repository has failed it. Maven's words
# come at the end, on standard output.
set -euo pipefail
log=$(mktemp)
trap 'rm -f "$log"' EXIT
failed_it='Could not (transfer|resolve)|could not be resolved|Failed to (collect|read artifact)'
for pause in 5 30 ''; do
  status=0
  mvn "$@" >"$log" 2>&1 || status=$?
  if [ $status = 0 ] || [ -z "$pause" ] || ! grep -qE "$failed_it" "$log"; then break; fi
  sleep "$pause"
done
cat "$log"
exit $status
