#!/usr/bin/env bash
# No Json of one value in braces: `Json({"x"})` and `Json{other}` are an array of one under gcc, a copy under clang.
source "$(dirname "${BASH_SOURCE[0]}")/house.sh"

check() {
  local one='[[:space:]]*[^{},[:space:]][^{},]*'
  sources '[^/]*\.(cpp|hpp)' formats emu policies experiments cli tests bench | xargs -r -d '\n' grep -HnE \
    "\<Json\(\{$one\}\)|\<Json\{$one\}|\<Json [a-z_]+( =)? ?\{$one\}"
}

good_json() {
  put formats/a.cpp 'Json a = Json::array({"x"});' 'Json b({{"x", 1}});' 'Json c = {"x", 1};' 'Json d{{"x", {1, 2}}};' \
    'Json e;' 'const Json& f = Json(x);' 'Json g() { return Json{}; }' 'Json h = {{"x", 1}, {"y", 2}};'
}
bad_text() { put tests/a.cpp 'CHECK(score["exact"] == Json({"x"}));'; }
bad_other() { put emu/a.cpp 'list.push_back(Json{other});'; }
bad_variable() { put cli/a.cpp 'const Json copy{other};'; }
bad_initialised() { put cli/a.cpp 'Json copy = {other};'; }
bad_null() { put formats/a.cpp 'return Json({nullptr});'; }

run_check "$@"
