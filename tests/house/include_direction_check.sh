#!/usr/bin/env bash
# An include may only point down the floors, and folders of policies form no circles.
# shellcheck disable=SC2016
source "$(dirname "${BASH_SOURCE[0]}")/house.sh"

# Folder (the first that fits counts), and what it may include beside its own files.
floors='
formats/scaling    formats
formats/analysis   formats
formats
emu/unit           formats
emu/oracle         formats emu/unit
emu/stats          formats
emu/net            formats emu/unit emu/stats
policies           formats emu
experiments        formats emu policies
api                formats emu policies experiments
bindings/c         formats emu/unit emu/oracle policies/mask api
bindings           formats emu policies experiments api
cli                formats emu policies experiments api
bench              formats emu policies experiments api
tests              formats emu policies experiments api cli bindings bench
'

check() {
  sources '[^/]*\.(cpp|hpp|h|c|def|inc)' | floors=$floors xargs -r -d '\n' awk '
    BEGIN {
      count = split(ENVIRON["floors"], line, "\n")
      for (i = 1; i <= count; ++i) if (split(line[i], word, " ")) {
        order[++n] = word[1]
        allowed[word[1]] = line[i]
      }
      ours = "^(formats|emu|policies|experiments|api|cli|bindings|bench|tests)/"
    }
    FNR == 1 {
      floor = ""
      for (i = n; i >= 1; --i) if (index(FILENAME, order[i] "/") == 1) floor = order[i]
      if (floor == "") print FILENAME ": stands on no floor"
    }
    /^[ \t]*#[ \t]*include[ \t]*[<"]/ {
      target = $0
      gsub(/^[^<"]*[<"]|[>"].*$/, "", target)
      if (target ~ /\.\.\//) print FILENAME ":" FNR ": includes " target " by a relative path"
      if (target !~ ours) next
      fits = 0
      split(allowed[floor], word, " ")
      for (i in word) if (index(target, word[i] "/") == 1) fits = 1
      if (floor == "formats" && target ~ /^formats\/(analysis|scaling)\//) fits = 0
      if (floor == "formats/analysis" && target ~ /^formats\/scaling\//) fits = 0
      if (!fits) print FILENAME ":" FNR ": " floor " may not include " target
    }'
  sources '[^/]*\.(cpp|hpp)' policies | xargs -r -d '\n' awk '
    function folder(path) { sub(/\/[^\/]*$/, "", path); return path }
    /^#include "policies\// {
      target = $0
      gsub(/^[^"]*"|".*$/, "", target)
      from = folder(FILENAME)
      to = folder(target)
      if (from == to || target !~ /\.hpp$/) next
      if ((to, from) in seen) print FILENAME ":" FNR ": includes " target ", and " seen[to, from]
      seen[from, to] = FILENAME " includes " target
    }'
}

good_downward() {
  put formats/value.hpp '#include "formats/error.hpp"'
  put formats/analysis/cells.hpp '#include "formats/value.hpp"'
  put emu/net/op.cpp '#include "emu/unit/unit.hpp"' '#include "emu/stats/fit.hpp"' '#include <vector>'
  put policies/a.cpp '#include "policies/mask/rules/table.inc"' '#include "emu/net/op.hpp"'
  put tests/cli/a_test.cpp '#include "cli/a.hpp"' '#include "tests/catch.hpp"'
}
bad_formats_sees_emu() { put formats/a.hpp '#include "emu/unit/unit.hpp"'; }
bad_formats_sees_analysis() { put formats/a.cpp '#include "formats/analysis/cells.hpp"'; }
bad_formats_sees_scaling() { put formats/a.cpp '#include "formats/scaling/scale_rule.hpp"'; }
bad_analysis_sees_scaling() { put formats/analysis/a.cpp '#include "formats/scaling/scale_rule.hpp"'; }
bad_unit_sees_net() { put emu/unit/a.cpp '#include "emu/net/op.hpp"'; }
bad_unit_sees_stats() { put emu/unit/a.cpp '#  include "emu/stats/fit.hpp"'; }
bad_stats_sees_net() { put emu/stats/a.hpp '#include <emu/net/op.hpp>'; }
bad_net_sees_policies() { put emu/net/deep/a.cpp '#include "policies/policy.hpp"'; }
bad_policies_see_experiments() { put policies/a.cpp '#include "experiments/report/report.hpp"'; }
bad_experiments_see_api() { put experiments/a.cpp '#include "api/units.hpp"'; }
bad_api_sees_cli() { put api/a.cpp '#include "cli/bar.hpp"'; }
bad_experiments_see_cli() { put experiments/a.cpp '#include "cli/bar.hpp"'; }
bad_c_binding_sees_net() { put bindings/c/a.cpp '#include "emu/net/op.hpp"'; }
bad_program_sees_tests() { put cli/a.cpp '#include "tests/catch.hpp"'; }
bad_circle() {
  put policies/numerics/a.hpp '#include "policies/recipe/b.hpp"'
  put policies/recipe/b.cpp '#include "policies/numerics/a.hpp"'
}
bad_relative_path() { put emu/unit/a.cpp '#include "../net/op.hpp"'; }
bad_no_floor() { put emu/a.hpp ''; }

run_check "$@"
