#!/usr/bin/env bash
# A namespace has one type, inline function or inline variable of a name: a program may link any two of our files.
# Overloads of an inline function share a header.
source "$(dirname "${BASH_SOURCE[0]}")/house.sh"

# definitions FILE...: NAMESPACE::NAME FILE:LINE of each type, and of each function or variable of a header, that other
# files see. Namespaces are not indented (.clang-format), so all of these begin a line.
definitions() {
  xargs -r -d '\n' awk '
    function define(name) { print scope name, FILENAME ":" FNR }
    FNR == 1 { depth = hidden = template = 0; scope = "" }
    /^namespace .*\{$|^namespace \{$/ {
      names[++depth] = scope
      if ($2 == "{") ++hidden
      anonymous[depth] = $2 == "{"
      if ($2 != "{") scope = scope $2 "::"
      next
    }
    /^}.*\/\/ namespace/ && depth > 0 {
      hidden -= anonymous[depth]
      scope = names[depth--]
      next
    }
    hidden || /^[ \t#}\/]/ || /^$/ { if (/^[^ \t]/) template = 0; next }
    /^template </ && />$/ { template = 1; next }
    { of_template = template; template = 0 }
    /;$/ && !/\{/ && !/=/ { next }
    match($0, /^(template <.*> )?(struct|class|union|enum class|enum struct|enum) [A-Za-z_0-9]+( final)?( :.*| \{.*)?$/) {
      line = $0
      sub(/^template <.*> /, "", line)
      sub(/^(enum )?(struct|class) |^(union|enum) /, "", line)
      match(line, /^[A-Za-z_0-9]+/)
      define(substr(line, 1, RLENGTH))
      next
    }
    FILENAME ~ /\.hpp$/ && (of_template || /^(inline|constexpr|template <.*>|HWY_INLINE|HWY_NOINLINE) /) && !/^(struct|class|using|static) / {
      if (/^constexpr / && !/^[^=]*\(/) next  # a constant of each file
      line = $0
      sub(/^template <.*> /, "", line)
      sub(/ operator.*/, "", line)
      if (line ~ /^[^=({]*\(/) sub(/\(.*/, "", line); else sub(/ ?[={[].*/, "", line)
      if (line ~ /::[A-Za-z_0-9]+$/) next  # a member
      if (match(line, /[ *&][A-Za-z_0-9]+$/)) define(substr(line, RSTART + 1))
    }'
}

check() {
  sources '[^/]*\.(cpp|hpp)' | definitions | sort -u | awk '
    { file = $2; sub(/:[0-9]+$/, "", file) }
    $1 == name && file != first_file { print $2 ": defines " name ", as " first " does" }
    $1 != name { name = $1; first = $2; first_file = file }'
}

two() { # two LINE...: the same lines in the same namespace of two headers
  local file
  for file in emu/unit/a.hpp tests/emu/unit/b.hpp; do put "$file" 'namespace numemu::unit {' "$@" '}  // namespace numemu::unit'; done
}

good_names() {
  put emu/unit/a.hpp 'namespace numemu::unit {' 'enum class Data { a };' 'class Later;' 'struct Later* f(Later&);' \
    'inline int g() { return 1; }' 'inline int g(int);' 'constexpr int kEach = 1;' 'inline int Data1::size() const {' '}' \
    'namespace detail {' 'struct Own {};' '}  // namespace detail' '}  // namespace numemu::unit'
  put emu/unit/b.hpp 'namespace numemu::unit {' 'class Later;' 'constexpr int kEach = 2;' 'inline int Data2::size() const {' '}' \
    'struct Own {};' '}  // namespace numemu::unit'
  put emu/unit/a.cpp 'namespace numemu::unit {' 'namespace {' 'struct Data {' '};' '}  // namespace' '}  // namespace numemu::unit'
  put emu/net/a.hpp 'namespace numemu::net {' 'enum class Data { b };' 'inline int g() { return 2; }' '}  // namespace numemu::net'
}
bad_enum() { two 'enum class Data {' '  a' '};'; }
bad_struct() { two 'struct Data : Base {' '};'; }
bad_template() { two 'template <class T>' 'class Data {' '};'; }
bad_function() { two 'inline float draw_c(int dice) {' '}'; }
bad_pointer() { two 'inline const float* draw_c(int dice) {' '}'; }
bad_constexpr() { two 'constexpr int draw_c(int dice) { return dice; }'; }
bad_function_template() { two 'template <class T>' 'T draw_c(T dice) {' '}'; }
bad_variable() { two 'inline constexpr int kAll[] = {1, 2};'; }
bad_type_of_a_source() {
  put emu/unit/a.hpp 'namespace numemu::unit {' 'struct Data {};' '}  // namespace numemu::unit'
  put emu/unit/b.cpp 'namespace numemu {' 'namespace unit {' 'struct Data {' '};' '}  // namespace unit' '}  // namespace numemu'
}

run_check "$@"
