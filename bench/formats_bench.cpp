// Times conversions against memcpy of the same float32 array, after checking that every result is
// right.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <hwy/targets.h>
#include <omp.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <type_traits>

#include "bench/format_cases.hpp"
#include "bench/run_main.hpp"
#include "bench/steady_ceiling.hpp"
#include "bench/timing.hpp"
#include "formats/error.hpp"
#include "formats/quantize.hpp"

namespace numemu::bench {
namespace {

constexpr std::int64_t kSmall = 4096, kLarge = std::int64_t{1} << 24;
constexpr int kPairs = 11;
/// Vector multiply-adds per cycle times lanes: what turns the ceiling into a clock.
constexpr double kLanes = 16, kPorts = 2;

SteadyCeiling ceiling(fma_ceiling);

struct Figures {
  double rate = 0;     ///< elements per second
  double of_copy = 0;  ///< memcpy's time / ours
  double share = 0;    ///< of the port bound; 0 if there is none
  int rounds = 0;      ///< that count
};

/// Median of pairs with memcpy at the steady clock.
Figures measure(const ConversionCase& c, Arrays& a, bool with_flags) {
  const int repeats = static_cast<int>(std::max<std::int64_t>(1, (std::int64_t{1} << 21) / a.n));
  const auto bytes = static_cast<std::size_t>(a.n) * sizeof(float);
  std::vector<double> rates, ratios, shares;
  double ours = 0, copy = 0;
  c.run(a, with_flags);
  const auto round = [&] {
    ours = seconds([&] {
      for (int r = 0; r < repeats; ++r) c.run(a, with_flags);
    });
    copy = seconds([&] {
      for (int r = 0; r < repeats; ++r) {
        std::memcpy(a.y, a.x, bytes);
        benchmark::ClobberMemory();
      }
    });
  };
  const int rounds = ceiling.rounds(kPairs, round, [&](double fmas) {
    const double rate = static_cast<double>(a.n) * repeats / ours;
    const double clock = fmas / (kLanes * kPorts);
    rates.push_back(rate);
    ratios.push_back(copy / ours);
    if (c.instructions > 0) shares.push_back(rate * c.instructions / kPorts / (kLanes * clock));
  });
  return {median(rates), median(ratios), shares.empty() ? 0 : median(shares), rounds};
}

std::string number(double value) { return value == 0 ? "-" : fmt::format("{:.2f}", value); }

void print_table(const std::vector<ConversionCase>& cases, Numbers data, bool wide_registers) {
  if (cases.empty()) return;
  Arrays small(kSmall, data), large(kLarge, data);
  std::vector<double> copies;
  for (int i = 0; i < kPairs; ++i)
    copies.push_back(seconds([&] {
      std::memcpy(large.y, large.x, kLarge * sizeof(float));
      benchmark::ClobberMemory();
    }));
  fmt::print("\n{} data, {}, one thread, medians of {} pairs; memcpy of 16M: {:.2f} G elements/s\n",
             to_string(data), hwy::TargetName(hwy::SupportedTargets() & -hwy::SupportedTargets()),
             kPairs, kLarge / median(copies) * 1e-9);
  fmt::print("{:<26} | {:>6} {:>8} {:>6} {:>6} | {:>6} {:>8} {:>6} {:>8}\n", "", "4K", "of ports",
             "flags", "rounds", "16M", "/memcpy", "flags", "/memcpy");
  for (const ConversionCase& c : cases) {
    for (Arrays* a : {&small, &large})
      if (c.prepare) c.prepare(*a);
    const Figures cache = measure(c, small, false), memory = measure(c, large, false);
    Figures cache_flags, memory_flags;
    if (c.has_flags) {
      cache_flags = measure(c, small, true);
      memory_flags = measure(c, large, true);
    }
    fmt::print("{:<26} | {:>6} {:>8} {:>6} {:>6} | {:>6} {:>8} {:>6} {:>8}\n", c.name,
               number(cache.rate * 1e-9), wide_registers ? number(cache.share) : "-",
               number(cache_flags.rate * 1e-9), cache.rounds, number(memory.rate * 1e-9),
               number(memory.of_copy), number(memory_flags.rate * 1e-9),
               number(memory_flags.of_copy));
    std::fflush(stdout);
  }
  fmt::print("ceiling {:.1f} G multiply-adds/s (clock {:.2f} GHz)\n", ceiling.value() * 1e-9,
             ceiling.value() / (kLanes * kPorts) * 1e-9);
}

/// Codes or values under one scale, flags counted, checked against the reference in every bit.
ConversionCase quantize_case(const std::string& format, const std::string& rounding, float scale,
                             bool values) {
  const Conversion c{.format = &find_format(format), .rounding = parse_rounding(rounding)};
  const auto narrow = c.format->bits <= 8;
  ConversionCase result{
      .name = fmt::format("quantize{} {} {} /{:g}", values ? "d" : "", format, rounding, scale)};
  result.run = [=, halves = std::vector<std::uint16_t>()](Arrays& a, bool) mutable {
    if (values) {
      quantize_values(c, a.x, a.n, scale, a.y);
    } else if (narrow) {
      quantize_codes(c, a.x, a.n, scale, a.codes.data());
    } else {
      halves.resize(static_cast<std::size_t>(a.n));
      quantize_codes(c, a.x, a.n, scale, halves.data());
    }
  };
  result.require_equal = [=, name = result.name](Arrays& a) {
    const auto require = [&](const auto& reference, const auto& fast, auto type) {
      const auto size = static_cast<std::size_t>(a.n);
      std::vector<decltype(type)> want(size), got(size);
      const FlagCounts wanted = reference(want.data()), counts = fast(got.data());
      if (std::memcmp(want.data(), got.data(), size * sizeof(type)) != 0 || !(counts == wanted))
        throw Error(name + ": differs from the reference");
    };
    const auto reference = [&](auto* to) {
      if constexpr (std::is_same_v<decltype(to), float*>) {
        return quantize_values_reference(c, a.x, a.n, scale, to);
      } else {
        return quantize_codes_reference(c, a.x, a.n, scale, to);
      }
    };
    const auto fast = [&](auto* to) {
      if constexpr (std::is_same_v<decltype(to), float*>) {
        return quantize_values(c, a.x, a.n, scale, to);
      } else {
        return quantize_codes(c, a.x, a.n, scale, to);
      }
    };
    if (values) return require(reference, fast, float{});
    if (narrow) return require(reference, fast, std::uint8_t{});
    require(reference, fast, std::uint16_t{});
  };
  return result;
}

/// A scale of one, one of an amax, and a rounding that needs more bits than float32 has.
std::vector<ConversionCase> quantize_cases() {
  constexpr float kAmaxScale = 0.0123F;
  std::vector<ConversionCase> cases;
  for (const char* format : {"float8_e4m3fn", "float8_e5m2", "int8", "float16", "bfloat16"})
    for (const char* rounding : {"rne", "sr(8)"})
      for (const float scale : {1.0F, kAmaxScale})
        cases.push_back(quantize_case(format, rounding, scale, false));
  for (const char* format : {"float8_e4m3fn", "float16"}) {
    cases.push_back(quantize_case(format, "sr(23)", kAmaxScale, false));
    cases.push_back(quantize_case(format, "rne", kAmaxScale, true));
  }
  return cases;
}

void register_case(const ConversionCase& c) {
  benchmark::RegisterBenchmark(c.name.c_str(), [c](benchmark::State& state) {
    Arrays a(state.range(0), Numbers::normal);
    if (c.prepare) c.prepare(a);
    for (auto _ : state) {
      c.run(a, false);
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
  const auto left_out = [&](const ConversionCase& c) { return c.name.find(filter) == c.name.npos; };
  std::vector<ConversionCase> cases = conversion_cases(), finite = quantize_cases();
  std::erase_if(cases, left_out);
  std::erase_if(finite, left_out);
  const std::vector<ConversionCase> special = cases;  // the others send NaN to the reference
  cases.insert(cases.end(), finite.begin(), finite.end());
  if (cases.empty()) return 0;
  for (const Numbers data : kAllNumbers) {
    Arrays checked(4 * kSmall, data);
    for (const ConversionCase& c : cases) {
      if (c.prepare) c.prepare(checked);
      c.require_equal(checked);
    }
  }
  ceiling.wait();
  const bool wide = (hwy::SupportedTargets() & (HWY_AVX3 | HWY_AVX3_DL)) != 0;
  for (const Numbers data : kAllNumbers)
    print_table(data == Numbers::special ? special : cases, data, wide);
  if (wide) {
    hwy::SetSupportedTargetsForTest(HWY_AVX2);
    print_table(cases, Numbers::normal, false);
    hwy::SetSupportedTargetsForTest(0);
  }
  for (const ConversionCase& c : cases) register_case(c);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace numemu::bench

int main(int argc, char** argv) {
  return numemu::bench::run_main("formats_bench", numemu::bench::run, argc, argv);
}
