#!/usr/bin/env bash
# What assertions report: how many passed, the place, the expression, its values and the INFO of each that fails.
# usage: assertions_test.sh ASSERTIONS_SAMPLE
set -uo pipefail
failures=0

# expect CASE WANTED: the counts of the case and of each failure the line, the expression, its values and notes, without layout.
expect() {
  local output
  output=$("$sample" "$1" | sed -E 's/^.*assertions_sample\.cpp:([0-9]+): /\1: /' | tr -s ' \n' ' ')
  shift
  for text; do
    if [[ $output == *"$text"* ]]; then
      echo "ok    $text"
    else
      printf 'FAIL  want "%s" in\n%s\n' "$text" "$output"
      failures=$((failures + 1))
    fi
  done
}
