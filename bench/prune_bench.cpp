// Times the pruning rules, one thread, after checking that every result is right.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <hwy/targets.h>
#include <omp.h>

#include <cstdio>
#include <cstring>
#include <exception>

#include "bench/prune_cases.hpp"
#include "bench/run_main.hpp"
#include "bench/steady_ceiling.hpp"
#include "bench/timing.hpp"

namespace numemu::bench {
namespace {

// The small array stays in the first-level cache, but branch predictors learn it, too: rules that
// branch on their data show what they need for fresh data with the large one.
constexpr std::int64_t kSmall = 4096, kLarge = std::int64_t{1} << 24;
constexpr int kRounds = 11, kLargeRounds = 5;
/// Processor time of a round of short runs: well above what the clock resolves.
constexpr double kRoundSeconds = 2e-3;
/// Rules that would need more processor time than this for one large run are timed small only.
constexpr double kLongRun = 0.5;

SteadyCeiling ceiling(fma_ceiling);

struct Figures {
  double rate = 0;     ///< elements per second
  double adds = 0;     ///< multiply-adds the core could have done in an element's time
  double of_copy = 0;  ///< memcpy's time / ours
};

/// Medians of rounds beside memcpy at the steady clock.
Figures measure(const PruneCase& c, Arrays& a) {
  const int rounds = a.n == kLarge ? kLargeRounds : kRounds;
  const double threshold = threshold_of(c, a);
  const auto bytes = static_cast<std::size_t>(a.n) * sizeof(float);
  const auto once = [&] { prune(c, a, threshold); };
  once();
  const int repeats = 1 + static_cast<int>(kRoundSeconds / std::max(seconds(once), 1e-7));
  std::vector<double> rates, adds, copies;
  double ours = 0, copy = 0;
  const auto round = [&] {
    ours = seconds([&] {
      for (int r = 0; r < repeats; ++r) once();
    });
    copy = seconds([&] {
      for (int r = 0; r < repeats; ++r) {
        std::memcpy(a.y, a.x, bytes);
        benchmark::ClobberMemory();
      }
    });
  };
  ceiling.rounds(rounds, round, [&](double fmas) {
    rates.push_back(static_cast<double>(a.n) * repeats / ours);
    adds.push_back(fmas / rates.back());
    copies.push_back(copy / ours);
  });
  return {median(rates), median(adds), median(copies)};
}

/// Three figures, as many as count, in billions.
std::string billions(double rate) { return fmt::format("{:.3g}", rate * 1e-9); }

void print_table(const std::vector<PruneCase>& cases, Numbers data) {
  fmt::print("\n{} data, {}, one thread, medians of {} and {} rounds; G elements/s\n",
             to_string(data), hwy::TargetName(hwy::SupportedTargets() & -hwy::SupportedTargets()),
             kRounds, kLargeRounds);
  fmt::print("{:<28} | {:>7} {:>7} {:>7} {:>8} | {:>7} {:>8}\n", "", "4K", "aim", "of aim",
             "FMAs/el", "16M", "/memcpy");
  Arrays small(kSmall, data), large(kLarge, data);
  for (const PruneCase& c : cases) {
    const Figures cache = measure(c, small);
    std::string memory = "-", of_copy = "-";
    if (kLarge < kLongRun * cache.rate) {
      const Figures figures = measure(c, large);
      memory = billions(figures.rate);
      of_copy = fmt::format("{:.2f}", figures.of_copy);
    }
    fmt::print("{:<28} | {:>7} {:>7} {:>7} {:>8.3g} | {:>7} {:>8}\n", c.text, billions(cache.rate),
               c.aim > 0 ? billions(c.aim) : "-",
               c.aim > 0 ? fmt::format("{:.2f}", cache.rate / c.aim) : "-", cache.adds, memory,
               of_copy);
    std::fflush(stdout);
  }
  fmt::print("ceiling {:.1f} G multiply-adds/s\n", ceiling.value() * 1e-9);
}

void register_case(const PruneCase& c) {
  benchmark::RegisterBenchmark(c.text.c_str(), [c](benchmark::State& state) {
    Arrays a(state.range(0), Numbers::normal);
    const double threshold = threshold_of(c, a);
    for (auto _ : state) {
      prune(c, a, threshold);
      benchmark::ClobberMemory();
    }
    state.SetItemsProcessed(state.iterations() * a.n);
  })->Arg(kSmall);
}

}  // namespace

/// An argument that is not an option of Google Benchmark is a part of the names of cases to time.
int run(int argc, char** argv) {
  omp_set_num_threads(1);
  benchmark::Initialize(&argc, argv);
  const std::string filter = argc > 1 ? argv[1] : "";
  std::vector<PruneCase> cases = prune_cases();
  std::erase_if(cases,
                [&](const PruneCase& c) { return c.text.find(filter) == std::string::npos; });
  if (cases.empty()) return 0;
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    for (const Numbers data : kAllNumbers) {
      Arrays checked(4 * kSmall, data);
      for (const PruneCase& c : cases) require_equal(c, checked);
    }
  }
  hwy::SetSupportedTargetsForTest(0);
  ceiling.wait();
  for (const Numbers data : kAllNumbers) print_table(cases, data);
  if ((hwy::SupportedTargets() & (HWY_AVX3 | HWY_AVX3_DL)) != 0) {
    hwy::SetSupportedTargetsForTest(HWY_AVX2);
    print_table(cases, Numbers::normal);
    hwy::SetSupportedTargetsForTest(0);
  }
  for (const PruneCase& c : cases) register_case(c);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace numemu::bench

int main(int argc, char** argv) {
  return numemu::bench::run_main("prune_bench", numemu::bench::run, argc, argv);
}
