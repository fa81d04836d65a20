// Dot products of numbers drawn by a law: a unit's error, predicted from the law and measured.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "emu/unit/error/error_model.hpp"
#include "emu/unit/unit.hpp"
#include "formats/format.hpp"

namespace numemu::experiments {

/// normal; positive: |normal|; uniform; rectified: max(0, normal) times normal, as behind a ReLU.
/// Both operands are rounded to the format; integers are scaled to a quarter of their range.
struct SumCase {
  std::string unit, law, format;
  std::int64_t depth = 0;
};

/// The laws' names.
const std::vector<std::string>& sum_laws();
/// Throws Error with the nearest known name.
void check_sum_law(const std::string&);

/// By the error model of the unit's description, from 4,096 quantiles of the law.
unit::SumError predicted_sums(const SumCase&);

/// Of results that are finite.
struct MeasuredSums {
  double signal = 0, noise = 0, bias = 0;  ///< mean squares of exact sums and of errors; mean error
  double noise_error = 0;                  ///< standard error of the noise over rows
  double lost = 0;                         ///< share of results that are infinite or NaN

  static void fields(auto& self, const auto& visit) {
    visit("signal", self.signal);
    visit("noise", self.noise);
    visit("bias", self.bias);
    visit("noise_error", self.noise_error);
    visit("lost", self.lost);
  }
};

/// By the unit itself: products of `rows` by `rows` lines, drawn by `seed`.
MeasuredSums measured_sums(const SumCase&, std::int64_t rows, std::uint64_t seed);

}  // namespace numemu::experiments
