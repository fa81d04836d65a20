#!/usr/bin/env bash
# No Json of one value in braces: `Json({"x"})`, `Json{other}`, `return {other};` and `list.push_back({other})` are an array of one under
# gcc, a copy under clang.
source "$(dirname "${BASH_SOURCE[0]}")/house.sh"

check() {
  local inner='([^{}()]|\([^{}()]*\))*'
  local one="[[:space:]]*[^{},()[:space:]]([^{},()]|\($inner\))*"
  sources '[^/]*\.(cpp|hpp)' formats emu policies experiments api cli tests bench | xargs -r -d '\n' awk -v one="$one" '
    function indent() { match($0, /^ */); return RLENGTH }
    function opens(type) { of_json[++depth] = type; at[depth] = indent() }
    function offends() { print FILENAME ":" FNR ": " $0 }
    FNR == 1 { depth = 0; delete known }
    !/Json|return|push_back|-> |^ *}/ { next }
    # Functions and lambdas end where their first line begins (.clang-format).
    /^ *}/ { while (depth > 0 && at[depth] >= indent()) --depth }
    { of_line = depth > 0 && of_json[depth] }
    /(^|[ (])Json [A-Za-z_:]+\(/ && !/;$/ { if (/}$/) of_line = 1; else opens(1) }
    /-> [A-Za-z_:<>]+ \{/ { of_line = /-> Json \{/; if (!/}[,;)]*$/) opens(of_line) }
    $0 ~ "(^|[^A-Za-z_])Json\\(\\{" one "\\}\\)|(^|[^A-Za-z_])Json\\{" one "\\}|(^|[^A-Za-z_])Json [a-z_]+( =)? ?\\(?\\{" one "\\}" { offends(); next }
    of_line && $0 ~ "return \\{" one "\\};" { offends(); next }
    match($0, /Json&? [a-z_]+/) { name = substr($0, RSTART, RLENGTH); sub(/.* /, "", name); known[name] }
    match($0, "[\\])A-Za-z_]+\\.push_back\\(\\{" one "\\}\\)") {
      name = substr($0, RSTART)
      sub(/\.push_back.*/, "", name)
      if (name in known || $0 ~ /"\]\.push_back/) offends()
    }'
}

good_json() {
  put formats/a.cpp 'Json a = Json::array({"x"});' 'Json b({{"x", 1}});' 'Json c = {"x", 1};' 'Json d{{"x", {1, 2}}};' \
    'Json e;' 'const Json& f = Json(x);' 'Json g() { return Json{}; }' 'Json h = {{"x", 1}, {"y", 2}};'
}
good_returns() {
  put cli/a.cpp 'Json f() {' '  const auto pair = [](int x) -> Pair {' '    return {x};' '  };' '  return {{"x", pair(1)}};' '}' 'Pair g() {' '  return {x};' '}' \
    'Json list() { return {a(1), 2}; }' 'Pair h() { return {x}; }'
}
good_lists() { put cli/a.cpp 'Json rows;' 'rows.push_back({{"x", 1}});' 'table.push_back({x});' 'rows.push_back({x, f(y)});'; }
bad_text() { put tests/a.cpp 'CHECK(score["exact"] == Json({"x"}));'; }
bad_other() { put emu/a.cpp 'list.push_back(Json{other});'; }
bad_variable() { put cli/a.cpp 'const Json copy{other};'; }
bad_parentheses() { put cli/a.cpp 'const Json list({"x"});'; }
bad_initialised() { put cli/a.cpp 'Json copy = {other};'; }
bad_call() { put cli/a.cpp 'const Json copy{text_of(other, g(1, 2))};'; }
bad_null() { put formats/a.cpp 'return Json({nullptr});'; }
bad_return() { put cli/a.cpp 'Json f(const Json& x,' '       int y) {' '  if (y > 0) {' '    return {1, 2};' '  }' '  return {x};' '}'; }
bad_short_return() { put cli/a.cpp 'Json f(const Json& x) { return {x}; }'; }
bad_member_return() { put cli/a.hpp 'class A {' '  Json f() const {' '    return {x_};' '  }' '};'; }
bad_lambda() { put cli/a.cpp 'int f() {' '  const auto g = [&](const Json& x) -> Json {' '    return {x};' '  };' '}'; }
bad_short_lambda() { put cli/a.cpp 'const auto g = [&](const Json& x) -> Json { return {x}; };'; }
bad_element() { put cli/a.cpp 'Json& list = row["x"];' 'list.push_back({other});'; }
bad_member() { put cli/a.cpp 'row["x"].push_back({series("a", 1)});'; }

run_check "$@"
