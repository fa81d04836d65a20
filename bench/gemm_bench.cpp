// Times the units against Eigen built for this machine, after checking that every result is right.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <omp.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "bench/gemm_cases.hpp"
#include "bench/native_yardsticks.hpp"
#include "bench/timing.hpp"
#include "emu/unit/chain.hpp"
#include "formats/error.hpp"

namespace numemu::bench {
namespace {

/// Each figure is the median of this many runs, in turns with its yardsticks.
constexpr int kPairs = 31;

/// One line: rate, share of the FMA ceiling measured around each run, and ratio to Eigen on decoded
/// operands.
void compare(Case c, bool with_eigen) {
  c.run();
  std::vector<float> result(c.d.size());
  if (with_eigen) {
    chain_native(c.a_floats.data(), c.b_floats.data(), result.data(), c.m, c.n, c.k);
    if (std::memcmp(result.data(), c.d.data(), result.size() * sizeof(float)) != 0)
      throw Error(c.unit + ", " + c.name + ": differs from a loop of std::fma");
  }
  std::vector<double> rates, shares, ratios;
  for (int i = 0; i < kPairs; ++i) {
    const double before = fma_ceiling();
    const double ours = seconds([&] { c.run(); });
    const double after = fma_ceiling();
    rates.push_back(c.macs() / ours * 1e-9);
    shares.push_back(c.macs() / ours / (0.5 * (before + after)));
    if (!with_eigen) continue;
    const double eigen = seconds(
        [&] { eigen_native(c.a_floats.data(), c.b_floats.data(), result.data(), c.m, c.n, c.k); });
    ratios.push_back(eigen / ours);
  }
  fmt::print("{:<16} {:<14} {:<26} {:>8.1f} {:>8.2f} {:>9}\n", c.unit, c.format_a->name, c.name,
             median(rates), median(shares),
             with_eigen ? fmt::format("{:.2f}", median(ratios)) : "-");
  std::fflush(stdout);
}

void print_table() {
  fmt::print("target {}, one thread, medians of {} pairs\n", unit::chain_target(), kPairs);
  fmt::print("{:<16} {:<14} {:<26} {:>8} {:>8} {:>9}\n", "unit", "format", "m x n x k", "GMAC/s",
             "of FMA", "of Eigen");
  const std::string f32 = "f32.sequential", exact = "exact";
  compare(matrices(f32, "float32", 512, 512, 512), true);
  compare(matrices(f32, "float32", 64, 4096, 64), true);
  compare(matrices(f32, "float32", 64, 64, 4096), true);
  compare(matrices(f32, "float32", 1024, 1024, 1024), true);
  compare(matrices(f32, "float8_e4m3fn", 512, 512, 512), false);
  compare(matrices(f32, "float8_e4m3fn", 64, 256, 784), false);
  for (const bool gradient : {false, true}) {
    compare(convolution(f32, "float32", 32, 1, 6, gradient), false);
    compare(convolution(f32, "float32", 14, 6, 16, gradient), false);
  }
  for (const char* format : {"int4", "float4_e2m1fn", "int8", "float8_e4m3fn", "float8_e5m2"})
    compare(matrices(exact, format, 512, 512, 512), false);
  compare(convolution(exact, "float8_e4m3fn", 14, 6, 16, false), false);
}

void register_case(Case c) {
  const std::string name = c.unit + "/" + c.format_a->name + "/" + c.name;
  benchmark::RegisterBenchmark(name.c_str(), [c = std::move(c)](benchmark::State& state) mutable {
    for (auto _ : state) {
      c.run();
      benchmark::DoNotOptimize(c.d.data());
    }
    state.counters["MAC/s"] = benchmark::Counter(c.macs() * static_cast<double>(state.iterations()),
                                                 benchmark::Counter::kIsRate);
  });
}

}  // namespace

int run(int argc, char** argv) {
  omp_set_num_threads(1);
  for (const char* format :
       {"float32", "float8_e4m3fn", "float8_e5m2", "int8", "int4", "float4_e2m1fn"}) {
    for (const char* unit : {"f32.sequential", "exact"}) require_equal(unit, format);
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  print_table();
  for (const char* unit : {"f32.sequential", "exact", "host.eigen.f32"}) {
    register_case(matrices(unit, "float8_e4m3fn", 512, 512, 512));
    register_case(matrices(unit, "float8_e4m3fn", 64, 10, 128));
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace numemu::bench

int main(int argc, char** argv) {
  try {
    return numemu::bench::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gemm_bench: %s\n", error.what());
    return 1;
  }
}
