#!/usr/bin/env bash
# What ctest relies on in the runner of all tests: groups by file, names of failures, a status for skipped cases.
# usage: runner_test.sh RUNNER_SAMPLE
set -uo pipefail
failures=0

# expect WHAT STATUS TEXT COMMAND...: the status, and the text somewhere in the output.
expect() {
  local what=$1 wanted=$2 text=$3 output status
  shift 3
  output=$("$@" 2>&1)
  status=$?
  if [[ $status == "$wanted" && $output == *"$text"* ]]; then
    echo "ok    $what"
  else
    printf 'FAIL  %s: status %s, want %s and "%s" in\n%s\n' "$what" "$status" "$wanted" "$text" "$output"
    failures=$((failures + 1))
  fi
}

file='[house/runner_sample.cpp]'
expect "a group is a file and its labels" 1 'house/runner_sample.cpp fast shared' "$1" --list-groups
expect "a case without a label is an error that names it" 1 \
  'runner_sample.cpp:17: tag this case [fast], [slow], [exhaustive] or [exhaustive-all]: has no label' "$1" --list-groups
expect "a file's cases run together" 0 'All tests passed (1 assertion in 1 test case)' "$1" "$file[fast]~[shared]"
expect "a skipped case has a status of its own and says why" 77 'skipped: skips: no such silicon' "$1" "$file[fast]"
expect "a failure names its case" 1 'fails after a skipped one' "$1" "$file[slow]"
expect "a failure names file and line" 1 'runner_sample.cpp:12: FAILED' "$1" "$file[slow]"
expect "a case that hangs is named" 137 'hangs' timeout -s KILL 1 "$1" --progress "$file[exhaustive]"
expect "a group without cases is an error" 1 'No test case ran' "$1" '[nothing]'

echo "$failures failed"
exit $((failures > 0))
