#!/usr/bin/env bash
# A scale rule, a mask rule, a penalty, an exchange rule, an optimizer and an objective are one new file each that nothing else mentions: adds the examples of
# CONTRIBUTING.md to a configured scratch copy, sees them listed, `numemu config --print` accept the penalty, and workers train under the exchange rule. A file beside the mask rules that is
# none is not listed. Every C++ example of that page is compiled, that of a command too, and a role as it says: a row of a table and a hook. They are named `aaa`, and so is a policy of every other key:
# recipes mean the same beside policies that stand before all others.
# usage: policy_discovery_test.sh [--self-test] ROOT BUILD COMPILER [FLAG...]     (BUILD: where the libraries of this tree are)
# --self-test: succeeds if a tree whose build does not look for new files is caught.
set -euo pipefail

self_test=no
if [[ $1 == --self-test ]]; then
  self_test=yes
  shift
fi
root=$1 build=$2 compiler=$3
shift 3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
tree=$scratch/tree
tables=$scratch/build/generated

mkdir "$tree"
(cd "$root" && tar -cf - --exclude=node_modules CMakeLists.txt cmake formats emu policies experiments api cli bindings) | tar -xf - -C "$tree"
if [[ $self_test == yes ]]; then
  find "$tree" \( -name CMakeLists.txt -o -name '*.cmake' \) -exec sed -i 's/ CONFIGURE_DEPENDS//' {} +
fi
cmake -S "$tree" -B "$scratch/build" -G Ninja -DCMAKE_CXX_COMPILER="$compiler" -DNUMEMU_TESTS=OFF >"$scratch/log" 2>&1 ||
  { cat "$scratch/log" && exit 1; }
# An example is a fenced block behind the path of its file: `formats/scaling/rules/half.cpp`:
mkdir -p "$scratch"/examples/{cli/commands,formats/scaling/rules,policies/{exchange,mask/rules,numerics,penalty},emu/net/train/{optimizers,objectives}}
awk -v folder="$scratch/examples/" '
  /`[a-z_\/]+\.cpp`:$/ { path = $0; sub(/`:$/, "", path); sub(/.*`/, "", path) }
  /^```cpp$/ { inside = 1; print path == "" ? "an example without a path" : path; next }
  /^```/ { if (inside) path = ""; inside = 0 }
  inside { print > (folder path) }' "$root/CONTRIBUTING.md" >"$scratch/paths"
policies=()
add() { # add EXAMPLE FOLDER COMMAND: the example as FOLDER/aaa.cpp, edited by the command of sed
  local name=${1##*/}
  name=${name%.cpp}
  sed "s/_$name\b/_aaa/; s/\"$name\"/\"aaa\"/; $3" "$scratch/examples/$1" >"$tree/$2/aaa.cpp"
  policies+=("$2/aaa.cpp")
}
while read -r example; do add "$example" "${example%/*}" ""; done < <(grep -Ev '^cli/|/numerics/' "$scratch/paths")
for kind in norm quantizers saved table transform update; do
  key=$kind
  if [[ $kind == update ]]; then key=update.rule; fi
  add policies/penalty/half.cpp "policies/$kind" "s/penalty_/${kind}_/; s/\"penalty\"/\"$key\"/; s/\bOptions\b/Of$kind/g; s/\bHalf\b/As$kind/g"
done
echo '// A helper.' | tee "$tree/policies/mask/zz_helper.cpp" >"$tree/policies/mask/kernels/zz_helper.cpp"
cmake --build "$scratch/build" --target build.ninja >>"$scratch/log" 2>&1 || { cat "$scratch/log" && exit 1; } # what every build does first
# listed FOLDER: a table has the file aaa.cpp of FOLDER; policies of all slots share one.
listed() { grep -qw aaa "$tables/$1/table.inc" 2>/dev/null || grep -qw "${1#policies/}_aaa" "$tables/policies/policies.inc"; }
for example in "${policies[@]}"; do
  if ! listed "${example%/*}"; then
    echo "the next build did not see $example"
    [[ $self_test == yes ]]
    exit
  fi
done
[[ $self_test == no ]]
if grep -rq zz_helper "$tables"; then echo "a helper is listed as a rule" && exit 1; fi

cat >"$scratch/list.cpp" <<'TEXT'
#include <cstdio>
#include "emu/net/train/objective.hpp"
#include "emu/net/train/optimizer.hpp"
#include "formats/blocks/block_format.hpp"
#include "policies/mask/mask_rule.hpp"
#include "formats/scaling/scale_rule.hpp"
int main() {
  for (const auto* rule : numemu::all_scale_rules()) std::printf("%s\n", rule->name.c_str());
  std::printf("%s\n", numemu::policies::find_mask_rule("aaa").summary);
  numemu::net::find_objective("aaa");
  numemu::net::require_optimizer("aaa");
  // As the shipped rules: for a block format a value of its scale format, 1 of zeros alone.
  const numemu::BlockFormat& block = numemu::find_block_format("group(int4,32,float16)");
  const numemu::Conversion conversion{.format = block.element};
  const float x[] = {0.3f, -1.7f, 0};
  const auto& rule = numemu::find_scale_rule("aaa");
  const numemu::ScaleRequest some{x, 3, &conversion, &block}, zero{x + 2, 1, &conversion, &block};
  const float scale = rule.scale(some);
  return scale == numemu::round_scale(some, scale) && rule.scale(zero) == 1 ? 0 : 1;
}
TEXT
compile() { # compile OUTPUT SOURCE... [FLAG...]: with the tables of the scratch copy
  "$compiler" "${flags[@]}" -std=c++20 -fopenmp -I"$tree" -I"$scratch/build/generated" -o "$@"
}
flags=("$@")
if type -P ld.gold >/dev/null; then flags+=(-fuse-ld=gold); fi # a third of the time of the default linker
libraries=(-lfmt -lcrypto -lhwy -lz -lzip -lpng -ljpeg -lsqlite3)
# The sources as one: most of their time goes into headers that they share. The libraries hold each of the old ones as an object of its own, which is not linked then.
printf '#include "%s"\n' formats/scaling/scale_rule.cpp policies/{policy,mask/mask_rule}.cpp emu/net/train/{objective,optimizer}.cpp "${policies[@]}" >"$scratch/rules.cpp"
compile "$scratch/rules.o" -c "$scratch/rules.cpp"
compile "$scratch/list" "$scratch/list.cpp" "$scratch/rules.o" \
  -Wl,--start-group "$build"/policies/lib*.a "$build"/emu/*/lib*.a "$build"/formats/lib*.a -Wl,--end-group "${libraries[@]}"
"$scratch/list" | tee "$scratch/names"
grep -qx 'aaa' "$scratch/names"
grep -qx 'absmax' "$scratch/names"
grep -q '^keeps the first N of every M' "$scratch/names"
grep ^cli/ "$scratch/paths" | while read -r example; do compile "$scratch/example.o" -fsyntax-only "$scratch/examples/$example"; done

# The program as it is built, of the objects that it is linked from: nothing of it is compiled again.
mapfile -t program < <(ninja -C "$build" -t query cli/numemu-networks | sed -nE "s|^ *(cli/.*\.o)$|$build/\1|p")
compile "$scratch/numemu" "$scratch/rules.o" "${program[@]}" -Wl,--start-group \
  "$build"/cli/lib*.a "$build"/api/lib*.a "$build"/experiments/lib*.a "$build"/policies/lib*.a "$build"/emu/*/lib*.a "$build"/formats/lib*.a -Wl,--end-group "${libraries[@]}"
echo '{"numemu_recipe": 1, "penalty": "aaa(0.5)"}' >"$scratch/recipe.json"
"$scratch/numemu" config --print "$scratch/recipe.json" >"$scratch/printed"
grep -q '"rule": "aaa"' "$scratch/printed"
grep -q '"weight": 0.5' "$scratch/printed"

# Workers train under the exchange rule: it keeps residuals and sends a part of the bits.
echo '{"numemu_recipe": 1, "exchange": "aaa(2)"}' >"$scratch/exchange.json"
"$scratch/numemu" train --net 'dlrm(8)' --data clicks --recipe "$scratch/exchange.json" --workers 4 --batch 4096 --epochs 1 --quiet --out "$scratch/trained" >"$scratch/log"
grep -aq 'recipe/exchange/above/worker3/' "$scratch/trained/state.safetensors"
grep -q sent "$scratch/trained/metrics.jsonl"

echo '{"numemu_recipe": 1, "norm": {"statistic": "shift"}, "saved": {"group": 128}}' >"$scratch/no_rule.json"
for recipe in "$scratch/no_rule.json" "$root"/data/recipes/*.json; do
  "$build/cli/numemu-networks" config --print "$recipe" >"$scratch/without"
  "$scratch/numemu" config --print "$recipe" >"$scratch/with"
  cmp "$scratch/without" "$scratch/with" || { echo "means another beside new policies: $recipe" && exit 1; }
done

# A role is a row and a hook, which needs no declaration elsewhere. Last, as a row changes types that the libraries have.
sed -n 's/^ *\(NUMEMU_ROLE(.*)\)$/\1/p' "$root/CONTRIBUTING.md" >>"$tree/emu/net/roles.def"
sed -i "/^class Stored final/,/^};/{/^ public:/r $scratch/examples/policies/numerics/stored_roles.cpp
}" "$tree/policies/numerics/stored_roles.cpp"
grep -q RolePart::passed_back "$tree/policies/numerics/stored_roles.cpp"
compile "$scratch/role.o" -fsyntax-only "$tree/policies/numerics/stored_roles.cpp"
