#!/usr/bin/env bash
# No lambda uses a structured binding from outside, which clang before 16 refuses: it captures it as `[&value = value]`.
# shellcheck disable=SC2016
source "$(dirname "${BASH_SOURCE[0]}")/house.sh"
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

check() { sources '[^/]*\.(cpp|hpp)' | python3 "$here/captured_bindings.py"; }

body() { put emu/a.cpp 'void f() {' "$@" '}'; }

good_captures() {
  body 'for (const auto& [key, value] : map) {' 'each([&, &v = value](int i) { return v[i]; });' 'each([n = value.size()] { return n; });' \
    'put(other.value, T{.value = value}, list[value]);' '}' 'each([&](int value) { return value; });'
}
good_inside() { body 'each([&] {' 'const auto [low, high] = ends();' 'return low + high;' '});'; }
good_members() { body 'const auto [low, high] = ends();' 'each([&](const End& e) { return e.low + p->high + T{.low = 1}.x + high::x; });'; }
good_if() { body 'if (const auto [at, is_new] = add(); is_new) {' 'put(at);' '}' 'each([&] { return at; });'; }
bad_loop() { body 'for (const auto& [key, value] : map) {' 'each([&](int i) { return value[i]; });' '}'; }
bad_loop_without_block() { body 'for (auto& [key, value] : map) each([=] { return key; });'; }
bad_statement() { body 'const auto [low, high] = ends();' 'if (low < 0) {' 'return each([&] { return high; });' '}'; }
bad_if() { body 'if (const auto [at, is_new] = add(); is_new) each([&] { put(at); });'; }
bad_nested() { body 'auto&& [low, high] = ends();' 'each([&] { return all([&](int i) -> int { return i + low; }); });'; }
bad_listed() { body 'auto [low, high] = ends();' 'each([&low] { return 1; });'; }
bad_specifiers() { body 'auto [low, high] = ends();' 'each([n = 1, &](auto x) mutable noexcept { return low + n; });'; }
bad_in_result() { body 'auto [low, high] = ends();' 'return [&] { return low; };'; }

run_check "$@"
