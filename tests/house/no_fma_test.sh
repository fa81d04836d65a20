#!/usr/bin/env bash
# The digits of `analyze` do not depend on whether the C library's functions may use FMA.
# usage: no_fma_test.sh PROGRAM      exit status 77 where the C library computes the same either way
set -euo pipefail

program=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
mkdir with without
without=(env GLIBC_TUNABLES=glibc.cpu.hwcaps=-FMA,-FMA4,-AVX2,-FMA_Usable,-AVX2_Usable)  # names before glibc 2.33, too

digits='BEGIN { for (i = 1; i < 4000; ++i) printf "%.17g %.17g %.17g\n", exp(i / 333), log(i / 777), sin(i) }'
if cmp -s <(awk "$digits") <("${without[@]}" awk "$digits"); then
  echo 'skipped: no FMA: the functions of this C library have the same digits either way'
  exit 77
fi
for distribution in normal laplace uniform lognormal:1 lognormal:2; do
  for format in e4m3fn e5m2 e2m1fn int4 bfloat16; do
    analyze=("$program" analyze --format $format --dist $distribution --n 20000 --json)
    "${analyze[@]}" >"with/$format.$distribution" && "${without[@]}" "${analyze[@]}" >"without/$format.$distribution"
  done
done
[[ $(cat with/* | wc -c) -gt 10000 ]]
diff -r with without
