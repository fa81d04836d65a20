#!/usr/bin/env bash
# What ctest relies on: a status for skipped cases, and tests made from the sources by tests/discover.py.
# usage: runner_test.sh RUNNER_SAMPLE SOURCE_DIR
set -uo pipefail
failures=0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

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

sample=("$1" -#)
expect "a file's cases run together" 0 'All tests passed (1 assertion in 1 test case)' "${sample[@]}" '[#runner_sample][fast]~[shared]'
expect "a skipped case has a status of its own and says why" 77 'skipped: skips: no such silicon' "${sample[@]}" '[fast]'
expect "a failure beside a skipped case fails" 1 'fails after a skipped one' "${sample[@]}" '[slow]'
expect "a group without cases is an error" 1 'No test case ran' "${sample[@]}" '[nothing]'

# made CASE...: the ctest file of a folder with one source of these cases.
source=$2
made() {
  printf '%s\n' "$@" >"$folder/a/some_test.cpp"
  python3 "$source/tests/discover.py" "$folder/a" "$folder" "$folder/cases.cmake" program shared && cat "$folder/cases.cmake"
}
mkdir "$folder/a"
expect "a source is a test" 0 'add_test([==[a/some]==]  [==[program]==] "-#" -d yes [==[[#some_test][fast]~[shared]~[silicon]]==])' \
  made 'TEST_CASE("one", "[fast]") {}' 'TEST_CASE("two " "lines",' '          "[fast]") {}'
expect "each set of labels is a test of its own" 0 '[==[[#some_test][slow][shared]~[silicon]]==]' \
  made 'TEST_CASE("one", "[fast]") {}' 'TEST_CASE("two", "[shared][slow]") {}'
expect "a case without a label is an error that names it" 1 'some_test.cpp:2: tag this case [fast], [slow]' \
  made 'TEST_CASE("one", "[fast]") {}' 'TEST_CASE("two") {}'
expect "a case with two speeds is an error" 1 'some_test.cpp:1: tag this case' made 'TEST_CASE("one", "[fast][slow]") {}'
expect "a case of another form is an error" 1 'write each case as' made 'TEST_CASE(kName, "[fast]") {}'
expect "a case of another macro is an error" 1 'write each case as' made 'TEMPLATE_TEST_CASE("one", "[fast]", int) {}'
mkdir "$folder/a/b" && touch "$folder/a/b/some_test.cpp"
expect "two sources of one stem are an error" 1 'has the same stem' made 'TEST_CASE("one", "[fast]") {}'

echo "$failures failed"
exit $((failures > 0))
