#!/usr/bin/env bash
# What assertions report: how many passed, the place, the expression, its values and the INFO of each that fails.
# usage: assertions_test.sh ASSERTIONS_SAMPLE
set -uo pipefail
failures=0

# expect CASE WANTED: the counts of the case and of each failure the line, the expression, its values and notes, without layout.
expect() {
  local output text
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

sample=$1
expect 'everything passes' 'All tests passed (33 assertions in 1 test case)'
expect values '81: FAILED: CHECK( text == "text" ) with expansion: "te"xt" == "text" with message: number 7, 0.5, te"xt, ff' \
  '82: FAILED: CHECK( numbers.size() == 3 ) with expansion: 2 == 3 with message: number 7' \
  'CHECK( numbers == std::vector<int>{1, 3} ) with expansion: { 1, 2 } == { 1, 3 } with' \
  'CHECK( Colour::red == Colour::green ) with expansion: 3 == 4 with' \
  'CHECK( 1.5 < std::optional<double>() ) with expansion: 1.5 < {?} with' \
  'CHECK_FALSE( numbers.size() == 2 ) with expansion: !(2 == 2) with' \
  'CHECK( numbers.empty() ) with expansion: false with' \
  'CHECK_THAT( text, Contains("a") && !Contains("b") ) with expansion: "te"xt" ( contains: "a" and not contains: "b" ) with' \
  'CHECK_THAT( 2.0, Catch::WithinAbs(1, 0.5) ) with expansion: 2.0 is within 0.5 of 1.0 with' \
  'assertions: 9 | 9 failed'
expect stops '93: FAILED: CHECK( 1 == 2 )' '95: FAILED: REQUIRE( 2 == 3 ) with message: 1 + 4 := 5' 'assertions: 2 | 2 failed'
expect 'stops at a matcher' 'REQUIRE_THAT( std::string("abc"), Contains("d") ) with expansion: "abc" contains: "d"' \
  'assertions: 1 | 1 failed'
expect 'stops at an exception' 'REQUIRE_THROWS_WITH( fails("bad"), "good" ) with expansion: "bad" equals: "good"' \
  'warning: destroyed: before' 'assertions: 1 | 1 failed'
expect 'stops inside of an expression' '113: FAILED: REQUIRE( 2 == 3 )' 'assertions: 1 | 1 failed'
expect exceptions '122: FAILED: CHECK_THROWS_WITH( fails("bad"), "good" ) with expansion: "bad" equals: "good" with message: while' \
  '123: FAILED: CHECK_THROWS_WITH( fails("bad"), Contains("oo") ) with expansion: "bad" contains: "oo" with' \
  'CHECK_THROWS_WITH( std::string(), "nothing" ) because no exception was thrown where one was expected: while throwing' \
  'CHECK_THROWS_AS( fails("bad"), std::logic_error ) due to unexpected exception with messages: while throwing bad' \
  'CHECK_THROWS_AS( std::string(), std::logic_error ) because no exception was thrown where one was expected: while' \
  'CHECK_THROWS( std::string() ) because no exception was thrown where one was expected: while throwing' \
  'CHECK_NOTHROW( fails("bad") ) due to unexpected exception with messages: while throwing bad' \
  'assertions: 7 | 7 failed'
expect 'unexpected in an assertion' \
  '134: FAILED: CHECK( fails("bad") == 2 ) due to unexpected exception with messages: while evaluating bad' \
  'assertions: 2 | 1 passed | 1 failed'
expect 'unexpected after an assertion' \
  '139: FAILED: {Unknown expression after the reported line} due to unexpected exception with message: bad' \
  'assertions: 2 | 1 passed | 1 failed'
expect 'unexpected before any assertion' '144: FAILED: due to unexpected exception with message: bad' 'assertions: 1 | 1 failed'
expect 'unexpected in a section' '148: FAILED: {Unknown expression after the reported line} due to unexpected' \
  'assertions: 3 | 2 passed | 1 failed'

# An option of the runner that holds for assertions, too.
option() { # option NAME CASE TEXT
  if [[ $("$sample" "$1" "$2" | tr -s ' \n' ' ') == *"$3"* ]]; then
    echo "ok    $1"
  else
    echo "FAIL  $1: want \"$3\""
    failures=$((failures + 1))
  fi
}
option --success 'unexpected in an assertion' '133: PASSED: CHECK( 1 == 1 )'
option --abort stops 'assertions: 1 | 1 failed'

echo "$failures failed"
exit $((failures > 0))
