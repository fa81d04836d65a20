// The products that are timed: matrices for every unit, and layers of a small convolutional
// network.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "emu/unit/unit.hpp"

namespace numemu::bench {

/// What the elements of a product are like.
enum class Data {
  moderate,  ///< sums of uniform numbers, near 1: nothing special, as in a network
  codes,     ///< every finite code of the format, all equally often
  sparse,    ///< seven of eight elements zero, the others anywhere in the format's range
};
std::string to_string(Data);

/// A product ready to run, with a float32 copy of its operands for yardsticks.
struct Case {
  std::string name, unit;
  const Format *format_a = nullptr, *format_b = nullptr;
  std::int64_t m = 0, n = 0, k = 0;
  unit::Gather a, b;
  std::vector<std::uint8_t> a_codes, b_codes;  ///< in containers
  std::vector<float> a_floats, b_floats;       ///< the same numbers
  std::vector<std::uint8_t> a_scales, b_scales;
  std::vector<std::uint8_t> d;

  double macs() const {
    return static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  }
  unit::Gemm gemm();
  const unit::Unit* machine = nullptr;  ///< `unit`, found once
  void run() { machine->multiply(gemm()); }
};

/// A: m x k row-major, B: k x n row-major. `unit`: a name, or the JSON of a description. `format`
/// for units that take any operand.
Case matrices(const std::string& unit, const std::string& format, std::int64_t m, std::int64_t n,
              std::int64_t k, Data data = Data::moderate);
/// A 5x5 convolution of 128 images; `gradient`: the product of its weight gradient instead.
Case convolution(const std::string& unit, const std::string& format, std::int64_t size,
                 std::int64_t channels, std::int64_t outputs, bool gradient);

/// Compares the unit's fast answer with its reference on a smaller product of the same layout;
/// throws Error when a bit differs.
void require_equal(const std::string& unit, const std::string& format, Data data = Data::moderate);

}  // namespace numemu::bench
