// The products that are timed: matrices and layers of a small convolutional network.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "emu/unit/unit.hpp"

namespace numemu::bench {

/// A product ready to run.
struct Case {
  std::string name, unit;
  const Format *format_a = nullptr, *format_b = nullptr;
  std::int64_t m = 0, n = 0, k = 0;
  unit::Gather a, b;
  std::vector<std::uint8_t> a_codes, b_codes;  ///< used where the format has at most 8 bits
  std::vector<float> a_floats, b_floats;       ///< used for float32
  std::vector<float> d;

  double macs() const {
    return static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  }
  unit::Gemm gemm();
  void run() { unit::find_unit(unit).multiply(gemm()); }
};

/// A: m x k row-major, B: k x n row-major.
Case matrices(const std::string& unit, const std::string& format, std::int64_t m, std::int64_t n,
              std::int64_t k);
/// A 5x5 convolution of 128 images; `gradient`: the product of its weight gradient instead.
Case convolution(const std::string& unit, const std::string& format, std::int64_t size,
                 std::int64_t channels, std::int64_t outputs, bool gradient);

/// Compares the unit's fast answer with its reference on a smaller product of the same layout;
/// throws Error when a bit differs.
void require_equal(const std::string& unit, const std::string& format);

}  // namespace numemu::bench
