#!/usr/bin/env bash
# SystemVerilog over DPI-C, one case a call, in an empty folder; Verilator compiles it against libnumemu.
# usage: sv_test.sh CASE ROOT PROGRAM LIBRARY     (CASE: a function case_NAME below; LIBRARY: libnumemu.so)
set -euo pipefail

name=$1 root=$2 program=$3 library=$4
here=$root/tests/bindings/sv sv=$root/bindings/sv
for tool in verilator iverilog; do
  type -P "$tool" >/dev/null || { echo "skipped: no $tool; ./numemu test --bindings installs it" && exit 0; }
done
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

fail() { echo "failed: $*" && exit 1; }

# shows FILE TEXT...: each text stands in the file.
shows() {
  local text
  for text in "${@:2}"; do
    grep -qF -- "$text" "$1" || { cat "$1" && fail "expected '$text'"; }
  done
}

# simulator NAME TOP ARGUMENT...: NAME, an executable. No warning may be left.
simulator() {
  local out=$1 top=$2
  shift 2
  OBJCACHE=$(type -P ccache || true) verilator --binary -Wall --top-module "$top" -Mdir "obj_$out" -o "../$out" "$@" >"$out.log" 2>&1 ||
    { cat "$out.log" && fail "$out does not compile"; }
}
with_numemu() { # with_numemu NAME TOP ARGUMENT...: the same with numemu_pkg
  simulator "$1" "$2" -CFLAGS "-I$root/bindings/c" -LDFLAGS "$library -Wl,-rpath,${library%/*}" "${@:3}" "$sv/numemu_dpi.c"
}
package=$sv/numemu_pkg.sv
# Errors are counted, not the end.
on="+verilator+error+limit+1000"

# Of testbenches here: what they leave out, and what classes drive.
plain=(-Wno-UNUSED -Wno-UNDRIVEN -Wno-DECLFILENAME)

# A package of vectors in both simulators, and its text where there is functional coverage.
case_vectors_package() {
  "$program" vectors --quiet --unit h100.wgmma.e4m3.f32 --k 4 --n 300 --file-format sv --out tb
  "$program" vectors --quiet --op convert --from float32 --to float8_e4m3fn --n 50 --file-format sv --out cv
  simulator sim vectors_package_tb "${plain[@]}" tb_pkg.sv cv_pkg.sv "$here/vectors_package_tb.sv"
  ./sim >verilator.txt
  iverilog -g2012 -s vectors_package_tb -o icarus.vvp tb_pkg.sv cv_pkg.sv "$here/vectors_package_tb.sv"
  vvp icarus.vvp >icarus.txt
  local file words
  for file in verilator.txt icarus.txt; do
    # Words of the first and the last record, in the bytes of the files.
    for words in "a $(sed -n 2p tb.a.hex)" "c $(tail -1 tb.c.hex)" "in $(tail -1 cv.in.hex)" "class $(sed -n 9p tb.class.hex)"; do
      grep -qix "${words%% //*}" "$file" || { cat "$file" && fail "expected '${words%% //*}' in $file"; }
    done
  done
  # The classes counted by the class are those of the file.
  shows verilator.txt "half $(sed -n 2,151p tb.class.hex | cut -c1-2 | sort -u | wc -l)" \
    "all $(tail -300 tb.class.hex | cut -c1-2 | sort -u | wc -l), 100 percent"
  # The covergroup needs a simulator that has one: it is text until then.
  shows tb_pkg.sv '`ifdef NUMEMU_COVERGROUP' 'covergroup class_covergroup with function sample (class_e value);'
}

# Scalars, packed vectors, open arrays, vectors, tolerances, errors.
case_dpi() {
  with_numemu sim dpi_tb "${plain[@]}" "$package" "$here/dpi_tb.sv"
  cp "$sv/examples/sparse_dot.json" .
  ./sim $on >log.txt || { cat log.txt && fail "exit status"; }
  grep -q '^PASSED' log.txt || { cat log.txt && fail "expected PASSED"; }
  shows log.txt "numemu: " "did you mean" "field a: expected at most 2048 bits, NUMEMU_VECTOR_BITS, found 4096" \
    "b: expected 8 elements, 4 for each of 2 in d, found 4"
}

# Dynamic arrays are refused by Verilator 5.006, or end it; a later one that takes them makes the page wrong.
case_open_array_limits() {
  if verilator --lint-only -Wno-fatal --top-module dynamic_tb "$package" "$here/dynamic_tb.sv" >log.txt 2>&1; then
    fail "Verilator takes dynamic arrays now: say so in docs/bindings-sv.md and in numemu_pkg.sv"
  fi
  grep -qE 'dynamic array|internal fault' log.txt || { cat log.txt && fail "expected another refusal"; }
}

case_uvm() {
  (($(grep -cv '^ *//\|^$' "$here/uvm/uvm_pkg.sv") <= 48)) || fail "the shim of UVM: expected about 40 lines"
  with_numemu sim predictor_tb "${plain[@]}" -Wno-CASTCONST -DNUMEMU_UVM "+incdir+$here/uvm" "+incdir+$sv" "$here/uvm/uvm_macros.svh" "$here/uvm/uvm_pkg.sv" "$package" \
    "$here/predictor_tb.sv"
  ./sim >log.txt || { cat log.txt && fail "exit status"; }
  shows log.txt "predicted 4300"
}

# caught FAULT TEXT...: simulator NAME_FAULT finds mismatches, and says so in these words.
caught() {
  "./fault_$1" $on "${@:2:1}" >"fault_$1.txt"
  shows "fault_$1.txt" FAILED "Assertion failed" "${@:3}"
}

case_fp8_mac() {
  local fault
  for fault in 0 1 2 3; do
    with_numemu "fault_$fault" fp8_mac_tb "-GFault=$fault" "$package" "$sv/examples/fp8_mac.sv" "$sv/examples/fp8_mac_tb.sv"
  done
  cp "$sv/examples/fp8_mac.json" .
  ./fault_0 >right.txt || { cat right.txt && fail "exit status"; }
  shows right.txt "fp8_mac: 100000 transactions, 100000 matches, 0 mismatches" PASSED
  # Each fault by its rule, which explains every mismatch and contradicts no match, and by the unit's steps.
  caught 1 +vectors=5000 "rounds to nearest, ties away from zero (rounding)" "contradicts 0 of" "step 3, k 12..15"
  caught 2 +vectors=5000 "subnormal inputs read as zero (flush)" "contradicts 0 of" "product of k 0: -0x1p-16 added, by the rule 0x0p+0"
  caught 3 +vectors=5000 "addends cut toward zero in the alignment (alignment)" "contradicts 0 of" "product of k 12: 0x1.38p+5 added, by the rule 0x1.3p+5" \
    "12        56  43  0x1.34p+5 (38.5)              4  0x1.38p+5     -0x1p-1 (-0.5)"
}

case_sparse_dot() {
  local fault
  "$program" vectors --quiet --unit "$sv/examples/sparse_dot.json" --n 100000 --file-format sv --out sparse_dot_vectors
  for fault in 0 1 2 3; do
    with_numemu "fault_$fault" sparse_dot_tb "-GFault=$fault" "$package" sparse_dot_vectors_pkg.sv "$sv/examples/sparse_dot.sv" \
      "$sv/examples/sparse_dot_tb.sv"
  done
  ./fault_0 >right.txt || { cat right.txt && fail "exit status"; }
  shows right.txt "classes covered: 8 of 8" "sparse_dot: 100000 transactions, 100000 matches, 0 mismatches" PASSED
  caught 1 +vectors=5000 "indices of a group in reverse order (metadata)" "contradicts 0 of"
  caught 2 +vectors=5000 "9   00  ff  nan                    nan" "  NaN                  9"
  caught 3 +vectors=5000 "sums promoted every 8 products to float16 (order)" "contradicts 0 of" "in addition to the outer register"
}

# Every snippet and command of the page, as in the root of the repository.
case_page() {
  mkdir -p build/release/bindings
  ln -s "$root/bindings" bindings
  ln -s "${library%/*}" build/release/bindings/c
  ln -s "$program" numemu
  python3 "$here/page_test.py" "$root/docs/bindings-sv.md" "$@" || fail "the page shows something else"
}

# Calls per processor second of every way into the package; docs/bindings-sv.md has a table of them.
case_rates() {
  with_numemu sim rates_tb "${plain[@]}" -O3 "$package" "$here/rates_tb.sv"
  local mode empty calls=102400
  milliseconds() { # milliseconds COMMAND...: of processors
    local TIMEFORMAT='%3U %3S' user system
    read -r user system < <({ time "$@" >out.txt; } 2>&1)
    echo $((10#${user/./} + 10#${system/./}))
  }
  empty=$(milliseconds ./sim +mode=none)
  for mode in scalar packed check array vectors; do
    printf '%-8s %8d a second\n' "$mode" $((calls * 1000 / ($(milliseconds ./sim +mode=$mode +calls=$calls) - empty + 1)))
    shows out.txt "$mode: $calls calls"
  done
}

"case_$name" "${@:5}"
echo "passed: $name"
