// Times the scale rule mse(exact) beside mse(17), one scale after the other in one thread, after
// checking that it never leaves more error.
#include <fmt/format.h>
#include <omp.h>

#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "bench/format_cases.hpp"
#include "bench/run_main.hpp"
#include "bench/timing.hpp"
#include "formats/error.hpp"
#include "formats/scaling/element_grid.hpp"
#include "formats/scaling/scale_rule.hpp"
#include "formats/scaling/scale_search.hpp"

namespace numemu::bench {
namespace {

constexpr int kRounds = 5;
constexpr std::int64_t kElements = std::int64_t{1} << 17, kTensor = std::int64_t{1} << 20;

/// What a rule chooses for every `size` elements, as factors.
std::vector<double> scales_of(const ScaleRule& rule, const BlockFormat& f, const Arrays& a,
                              std::int64_t size) {
  Conversion c;
  c.format = f.element;
  const std::int64_t blocks = a.n / size;
  std::vector<double> scales(static_cast<std::size_t>(blocks));
  if (!f.power_of_two_scale()) {
    for (std::int64_t b = 0; b < blocks; ++b)
      scales[b] = rule.scale({a.x + b * size, size, &c, &f});
    return scales;
  }
  std::vector<float> amax(scales.size());
  std::vector<std::int64_t> offsets(scales.size() + 1);
  std::vector<std::int32_t> exponents(scales.size());
  for (std::int64_t b = 0; b < blocks; ++b) {
    amax[b] = static_cast<float>(largest_magnitude(a.x + b * size, size));
    offsets[b + 1] = (b + 1) * size;
  }
  rule.exponents({&f, &c, blocks, amax.data(), a.x, offsets.data(), exponents.data()});
  for (std::int64_t b = 0; b < blocks; ++b)
    scales[b] = std::ldexp(1.0, exponents[b] + f.element_exponent);
  return scales;
}

double error_of(const BlockFormat& f, const Arrays& a, std::int64_t block, std::int64_t size,
                double scale) {
  Conversion c;
  c.format = f.element;
  return squared_error(element_grids(c).line, a.x + block * size, size, scale).sum;
}

/// Decibels that the new rule gains.
double compared(const BlockFormat& f, const Arrays& a, std::int64_t size,
                const std::vector<double>& old, const std::vector<double>& exact) {
  double before = 0, after = 0;
  for (std::size_t b = 0; b < old.size(); ++b) {
    const auto block = static_cast<std::int64_t>(b);
    const double was = error_of(f, a, block, size, old[b]);
    const double is = error_of(f, a, block, size, exact[b]);
    if (is > was * (1 + kSearchTolerance))
      throw Error(fmt::format("{}: block {}: more error than mse(17)", f.name, b));
    before += was;
    after += is;
  }
  return 10 * std::log10(before / after);
}

void time_case(const Arrays& a, const std::string& element, std::int64_t size,
               const std::string& scale) {
  const BlockFormat& f = find_block_format(fmt::format("group({},{},{})", element, size, scale));
  std::vector<double> chosen[2], rates[2];
  for (int round = 0; round < kRounds; ++round) {
    for (const int rule : {0, 1}) {
      const ScaleRule& r = find_scale_rule(rule == 0 ? "mse(17)" : "mse(exact)", f);
      const double taken = seconds([&] { chosen[rule] = scales_of(r, f, a, size); });
      rates[rule].push_back(static_cast<double>(a.n) / taken);
    }
  }
  const double old = median(rates[0]), exact = median(rates[1]);
  fmt::print("{:<40} {:>9.2f} {:>11.2f} {:>7.2f} {:>8.2f}\n", f.name, old * 1e-6, exact * 1e-6,
             exact / old, compared(f, a, size, chosen[0], chosen[1]));
  std::fflush(stdout);
}

/// An argument is a part of the names of element formats to time.
int run(int argc, char** argv) {
  omp_set_num_threads(1);
  const std::string filter = argc > 1 && argv[1][0] != '-' ? argv[1] : "";
  const Arrays some(kElements, Numbers::normal), tensor(kTensor, Numbers::normal);
  fmt::print(
      "normal data, one thread, millions of elements per second\n{:<40} {:>9} {:>11} {:>7} {:>8}\n",
      "", "mse(17)", "mse(exact)", "ratio", "gain dB");
  for (const char* element : {"float4_e2m1fn", "int4", "float6_e2m3fn", "int8", "float8_e4m3fn"}) {
    if (std::string(element).find(filter) == std::string::npos) continue;
    for (const std::int64_t size : {16, 32, 128, 4096}) {
      for (const char* scale : {"float32", "float8_e4m3fn", "float8_e8m0fnu"})
        if (size <= 128 || std::string(scale) == "float32") time_case(some, element, size, scale);
    }
    time_case(tensor, element, kTensor, "float32");
  }
  return 0;
}

}  // namespace
}  // namespace numemu::bench

int main(int argc, char** argv) {
  return numemu::bench::run_main("scale_bench", numemu::bench::run, argc, argv);
}
