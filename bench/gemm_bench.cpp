// Times the units against Eigen built for this machine, after checking that every result is right.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <hwy/targets.h>
#include <malloc.h>
#include <omp.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "bench/gemm_cases.hpp"
#include "bench/native_yardsticks.hpp"
#include "bench/run_main.hpp"
#include "bench/timing.hpp"
#include "bench/unit_targets.hpp"
#include "emu/unit/chain/chain.hpp"
#include "formats/error.hpp"

namespace numemu::bench {
namespace {

/// Each figure is the median of this many runs, in turns with its yardsticks.
constexpr int kPairs = 15;
/// A run lasts so long at least, between two looks at the ceiling: a unit is switched on and warm
/// then.
constexpr double kLeastSeconds = 4e-3;
/// Multiply-adds per second of two 16-lane vector FMAs a cycle at 2.6 GHz.
constexpr double kCeilingAt26 = 83.2e9;

struct Size {
  std::int64_t m, n, k;
};
constexpr Size kTimed[] = {{512, 512, 512}, {64, 4096, 64}};
constexpr Size kSizes[] = {{64, 64, 64},    {64, 64, 4096},     {64, 4096, 64},   {4096, 64, 64},
                           {256, 256, 256}, {1024, 1024, 1024}, {64, 4096, 4096}, {4096, 4096, 64}};

struct Rates {
  double rate = 0;   ///< multiply-adds per second
  double share = 0;  ///< of the FMA ceiling around each run
};

Rates measure(Case& c) {
  c.run();
  const double once = seconds([&] { c.run(); });
  const int repeats = std::max(1, static_cast<int>(kLeastSeconds / once));
  std::vector<double> rates, shares;
  for (int i = 0; i < kPairs; ++i) {
    const double before = fma_ceiling();
    const double took = seconds([&] {
                          for (int r = 0; r < repeats; ++r) c.run();
                        }) /
                        repeats;
    const double after = fma_ceiling();
    rates.push_back(c.macs() / took);
    shares.push_back(c.macs() / took / (0.5 * (before + after)));
  }
  return {median(rates), median(shares)};
}

double eigen_rate(Case& c) {
  std::vector<float> result(static_cast<std::size_t>(c.m * c.n));
  std::vector<double> rates;
  for (int i = 0; i < kPairs; ++i)
    rates.push_back(c.macs() / seconds([&] {
                      eigen_native(c.a_floats.data(), c.b_floats.data(), result.data(), c.m, c.n,
                                   c.k);
                    }));
  return median(rates);
}

/// f32.sequential against Eigen on the same numbers, in turns.
void compare_with_eigen(Case c) {
  c.run();
  std::vector<float> result(static_cast<std::size_t>(c.m * c.n));
  chain_native(c.a_floats.data(), c.b_floats.data(), result.data(), c.m, c.n, c.k);
  if (std::memcmp(result.data(), c.d.data(), c.d.size()) != 0)
    throw Error(c.unit + ", " + c.name + ": differs from a loop of std::fma");
  const Rates ours = measure(c);
  const double eigen = eigen_rate(c);
  fmt::print("{:<34} {:<14} {:<16} {:>8.1f} {:>7.3f} {:>9.2f} x Eigen\n", c.unit, c.format_a->name,
             c.name, ours.rate * 1e-9, ours.share, ours.rate / eigen);
  std::fflush(stdout);
}

void print_targets(const std::string& filter) {
  fmt::print("\ntarget {}; GMAC/s, share of the FMA ceiling, GMAC/s at 2.6 GHz by that share\n",
             unit::chain_target());
  fmt::print("{:<34} {:<14} {:<13} {:>28}   {:>28} {:>7}\n", "unit", "operands", "data",
             "512x512x512", "64x4096x64", "wanted");
  for (const UnitTarget& t : unit_targets()) {
    if (t.unit.find(filter) == std::string::npos) continue;
    require_equal(t.unit, t.format, t.data);
    std::string line, name, operands;
    for (const auto [m, n, k] : kTimed) {
      Case c = matrices(t.unit, t.format, m, n, k, t.data);
      name = c.unit;
      operands = c.format_a->name;
      const Rates r = measure(c);
      line += fmt::format("{:>10.2f} {:>7.3f} {:>9.2f}   ", r.rate * 1e-9, r.share,
                          r.share * kCeilingAt26 * 1e-9);
    }
    fmt::print("{:<34} {:<14} {:<13} {} {:>7}\n", name, operands, to_string(t.data), line,
               t.target == 0 ? "-" : fmt::format("{:.1f}", t.target * 1e-9));
    std::fflush(stdout);
  }
}

void print_layers() {
  fmt::print("\nlayers of a small network\n");
  for (const bool gradient : {false, true}) {
    for (Case c : {convolution("f32.sequential", "float32", 32, 1, 6, gradient),
                   convolution("f32.sequential", "float32", 14, 6, 16, gradient)}) {
      const Rates r = measure(c);
      fmt::print("{:<34} {:<14} {:<26} {:>8.1f} {:>7.3f}\n", c.unit, c.format_a->name, c.name,
                 r.rate * 1e-9, r.share);
    }
  }
}

/// The cost of a multiply-add over sizes: the flatter the better.
void print_sizes(const std::string& filter) {
  fmt::print("\nGMAC/s by share of the ceiling at 2.6 GHz, by size\n");
  for (const char* unit : {"nvidia.h100.wgmma.e4m3.f32", "nvidia.a100.mma.f16.f32",
                           "nvidia.h100.mma.f16.f32", "amd.mi300.mfma.f16.f32"}) {
    if (std::string(unit).find(filter) == std::string::npos) continue;
    fmt::print("{:<34}", unit);
    for (const auto [m, n, k] : kSizes) {
      Case c = matrices(unit, "", m, n, k);
      fmt::print(" {}:{:.2f}", c.name, measure(c).share * kCeilingAt26 * 1e-9);
      std::fflush(stdout);
    }
    fmt::print("\n");
  }
}

/// Wall-clock time on one thread against two, the best of several turns each: the others show what
/// else the machine did. Threads must stay on cores of their own (OMP_PROC_BIND=true).
void print_threads(const std::string& filter) {
  fmt::print("\ntwo threads against one, 1024x1024x1024, GMAC/s by the clock\n");
  for (const char* unit :
       {"f32.sequential", "nvidia.h100.wgmma.e4m3.f32", "nvidia.a100.mma.f16.f32",
        "nvidia.h100.mma.f16.f32", "nvidia.b200.tcgen05.e2m1.f32.nv16", "amd.mi300.mfma.f16.f32",
        "neutral.mac.hfp16_e6m9.rne", "nvidia.a100.mma.s8.s32"}) {
    if (std::string(unit).find(filter) == std::string::npos) continue;
    Case c = matrices(unit, "float8_e4m3fn", 1024, 1024, 1024);
    double best[3] = {0, 0, 0};
    for (int i = 0; i < kPairs; ++i) {
      for (const int threads : {1, 2}) {
        omp_set_num_threads(threads);
        const double start = omp_get_wtime();
        c.run();
        best[threads] = std::max(best[threads], c.macs() / (omp_get_wtime() - start));
      }
    }
    fmt::print("{:<34} {:>8.2f} {:>8.2f} {:>6.2f} x\n", unit, best[1] * 1e-9, best[2] * 1e-9,
               best[2] / best[1]);
    std::fflush(stdout);
  }
  omp_set_num_threads(1);
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

/// An argument that is not an option of Google Benchmark is a part of the names of units to time.
int run(int argc, char** argv) {
  omp_set_num_threads(1);
  // As the program does: memory that is given back after each product is faulted in by the next.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  benchmark::Initialize(&argc, argv);
  const std::string filter = argc > 1 ? argv[1] : "";
  fmt::print("one thread, medians of {} runs between two looks at the ceiling\n", kPairs);
  if (std::string("f32.sequential").find(filter) != std::string::npos) {
    require_equal("f32.sequential", "float32");
    compare_with_eigen(matrices("f32.sequential", "float32", 512, 512, 512));
    compare_with_eigen(matrices("f32.sequential", "float32", 64, 4096, 64));
    compare_with_eigen(matrices("f32.sequential", "float32", 1024, 1024, 1024));
    print_layers();
  }
  print_targets(filter);
  print_sizes(filter);
  print_threads(filter);
  if ((hwy::SupportedTargets() & (HWY_AVX3 | HWY_AVX3_DL)) != 0) {
    hwy::SetSupportedTargetsForTest(HWY_AVX2);
    print_targets(filter);
    hwy::SetSupportedTargetsForTest(0);
  }
  for (const char* unit : {"f32.sequential", "exact", "host.eigen.f32"}) {
    if (std::string(unit).find(filter) == std::string::npos) continue;
    register_case(matrices(unit, "float8_e4m3fn", 512, 512, 512));
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace numemu::bench

int main(int argc, char** argv) {
  return numemu::bench::run_main("gemm_bench", numemu::bench::run, argc, argv);
}
