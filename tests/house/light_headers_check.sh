#!/usr/bin/env bash
# Headers below experiments/ stay light: no <iostream>, no nlohmann/json.hpp, no Boost, no Eigen.
source "$(dirname "${BASH_SOURCE[0]}")/house.sh"

check() {
  sources '[^/]*\.(hpp|h)' formats emu policies |
    xargs -r -d '\n' grep -HnE '^[[:space:]]*#[[:space:]]*include[[:space:]]*[<"](iostream|nlohmann/json\.hpp|boost/|Eigen/)'
}

good_forward_declaration() { put policies/a.hpp '#include <nlohmann/json_fwd.hpp>' '#include <vector>'; }
good_heavy_source() { put emu/unit/a.cpp '#include <Eigen/Core>'; }
bad_iostream() { put formats/a.hpp '#include <iostream>'; }
bad_json() { put policies/recipe/a.hpp '#include <nlohmann/json.hpp>'; }
bad_boost() { put emu/stats/a.hpp '# include <boost/math/distributions.hpp>'; }
bad_eigen() { put emu/unit/a.h '#include "Eigen/Dense"'; }

run_check "$@"
