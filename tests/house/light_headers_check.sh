#!/usr/bin/env bash
# Headers below experiments/ stay light: no <iostream>, no Boost, no Eigen. nlohmann/json has one door, json_text.cpp,
# and a test that compares Json with it. <regex> has none: tests/pattern.hpp.
source "$(dirname "${BASH_SOURCE[0]}")/house.sh"

check() {
  sources '[^/]*\.(hpp|h)' formats emu policies |
    xargs -r -d '\n' grep -HnE '^[[:space:]]*#[[:space:]]*include[[:space:]]*[<"](iostream|boost/|Eigen/)'
  sources '[^/]*\.(cpp|hpp|h)' | grep -vxE 'formats/storage/json_text\.cpp|tests/formats/storage/json_test\.cpp' |
    xargs -r -d '\n' grep -HnE '^[[:space:]]*#[[:space:]]*include[[:space:]]*[<"](nlohmann/|regex[>"])'
}

good_door() { put formats/storage/json_text.cpp '#include <nlohmann/json.hpp>'; }
good_heavy_source() { put emu/unit/a.cpp '#include <Eigen/Core>'; }
bad_iostream() { put formats/a.hpp '#include <iostream>'; }
bad_json() { put policies/recipe/a.hpp '#include <nlohmann/json.hpp>'; }
bad_json_in_source() { put experiments/a.cpp '#include <nlohmann/json.hpp>'; }
bad_json_in_test() { put tests/cli/a_test.cpp '#include <nlohmann/json.hpp>'; }
bad_regex() { put tests/oracle/a.cpp '#include <regex>'; }
good_json_compared() { put tests/formats/storage/json_test.cpp '#include <nlohmann/json.hpp>'; }
bad_boost() { put emu/stats/a.hpp '# include <boost/math/distributions.hpp>'; }
bad_eigen() { put emu/unit/a.h '#include "Eigen/Dense"'; }

run_check "$@"
