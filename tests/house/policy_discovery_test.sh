#!/usr/bin/env bash
# A scale rule, a mask rule, a penalty, an optimizer and an objective are one new file each that nothing else mentions: adds them to a configured scratch
# copy, sees the rules listed, and `numemu config --print` accept the penalty. A file beside the mask rules that is none is not listed.
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
(cd "$root" && tar -cf - --exclude=node_modules CMakeLists.txt cmake formats emu policies experiments cli) | tar -xf - -C "$tree"
if [[ $self_test == yes ]]; then
  find "$tree" \( -name CMakeLists.txt -o -name '*.cmake' \) -exec sed -i 's/ CONFIGURE_DEPENDS//' {} +
fi
cmake -S "$tree" -B "$scratch/build" -G Ninja -DCMAKE_CXX_COMPILER="$compiler" -DNUMEMU_TESTS=OFF >"$scratch/log" 2>&1 ||
  { cat "$scratch/log" && exit 1; }
if grep -rq zz_ "$tables"; then echo "the table lists a rule that is not there" && exit 1; fi

sed 's/scale_absmax/scale_zz_probe/; s/"absmax"/"zz-probe"/' "$tree/policies/scale/absmax.cpp" >"$tree/policies/scale/zz_probe.cpp"
sed 's/mask_transposable_two_approx/mask_zz_probe/; s/"transposable-2approx"/"zz-probe"/' "$tree/policies/mask/rules/transposable_two_approx.cpp" \
  >"$tree/policies/mask/rules/zz_probe.cpp"
sed 's/penalty_kure/penalty_zz_probe/; s/"kure"/"zz-probe"/' "$tree/policies/penalty/kure.cpp" >"$tree/policies/penalty/zz_probe.cpp"
sed 's/optimizer_sgd/optimizer_zz_probe/; s/"sgd"/"zz-probe"/' "$tree/emu/net/train/optimizers/sgd.cpp" >"$tree/emu/net/train/optimizers/zz_probe.cpp"
sed 's/objective_complement/objective_zz_probe/; s/"complement"/"zz-probe"/' "$tree/emu/net/train/objectives/complement.cpp" \
  >"$tree/emu/net/train/objectives/zz_probe.cpp"
echo '// A helper.' | tee "$tree/policies/mask/zz_helper.cpp" >"$tree/policies/mask/kernels/zz_helper.cpp"
cmake --build "$scratch/build" --target build.ninja >>"$scratch/log" 2>&1 # what every build does first
if [[ $(grep -rl zz_probe "$tables" | wc -l) != 5 ]]; then
  echo "the next build did not see the new file"
  [[ $self_test == yes ]]
  exit
fi
[[ $self_test == no ]]
if grep -rq zz_helper "$tables"; then echo "a helper is listed as a rule" && exit 1; fi

cat >"$scratch/list.cpp" <<'TEXT'
#include <cstdio>
#include "emu/net/train/objective.hpp"
#include "emu/net/train/optimizer.hpp"
#include "policies/mask/mask_rule.hpp"
#include "policies/scale_rule.hpp"
int main() {
  for (const auto* rule : numemu::policies::all_scale_rules()) std::printf("%s\n", rule->name.c_str());
  std::printf("%s\n", numemu::policies::find_mask_rule("zz-probe").summary);
  numemu::net::find_objective("zz-probe");
  numemu::net::require_optimizer("zz-probe");
  return numemu::policies::find_scale_rule("zz-probe").name.empty();
}
TEXT
compile() { # compile OUTPUT SOURCE... [FLAG...]: with the tables of the scratch copy
  "$compiler" "${flags[@]}" -std=c++20 -fopenmp -I"$tree" -I"$scratch/build/generated" -o "$@"
}
flags=("$@")
if type -P ld.gold >/dev/null; then flags+=(-fuse-ld=gold); fi # a third of the time of the default linker
libraries=(-lfmt -lcrypto -lhwy -lz -lzip -lpng -ljpeg -lsqlite3)
# The ten sources as one: most of their time goes into headers that they share. The libraries hold each of the old ones as an object of its own, which is not linked then.
printf '#include "%s"\n' policies/{policy,penalty/zz_probe,scale_rule,scale/zz_probe,mask/mask_rule,mask/rules/zz_probe}.cpp \
  emu/net/train/{objective,objectives/zz_probe,optimizer,optimizers/zz_probe}.cpp >"$scratch/rules.cpp"
compile "$scratch/rules.o" -c "$scratch/rules.cpp"
compile "$scratch/list" "$scratch/list.cpp" "$scratch/rules.o" \
  -Wl,--start-group "$build"/policies/lib*.a "$build"/emu/*/lib*.a "$build"/formats/lib*.a -Wl,--end-group "${libraries[@]}"
"$scratch/list" | tee "$scratch/names"
grep -qx 'zz-probe' "$scratch/names"
grep -qx 'absmax' "$scratch/names"
grep -q '^tiles with at most N of M' "$scratch/names"

# The program as it is built, of the objects that it is linked from: nothing of it is compiled again.
mapfile -t program < <(ninja -C "$build" -t query cli/numemu-networks | sed -nE "s|^ *(cli/.*\.o)$|$build/\1|p")
compile "$scratch/numemu" "$scratch/rules.o" "${program[@]}" -Wl,--start-group \
  "$build"/cli/lib*.a "$build"/experiments/lib*.a "$build"/policies/lib*.a "$build"/emu/*/lib*.a "$build"/formats/lib*.a -Wl,--end-group "${libraries[@]}"
echo '{"numemu_recipe": 1, "penalty": "zz-probe(0.5)"}' >"$scratch/recipe.json"
"$scratch/numemu" config --print "$scratch/recipe.json" >"$scratch/printed"
grep -q '"rule": "zz-probe"' "$scratch/printed"
grep -q '"weight": 0.5' "$scratch/printed"
