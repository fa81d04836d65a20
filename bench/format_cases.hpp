// The conversions that are timed, each with its check against the reference and its port bound.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace numemu::bench {

/// What the elements look like. Speed must not depend on it.
enum class Numbers { normal, log_uniform, special };
inline constexpr Numbers kAllNumbers[] = {Numbers::normal, Numbers::log_uniform, Numbers::special};
std::string to_string(Numbers);

/// Arrays of n elements: x as float32, codes of a format of at most 8 bits, and room for results.
struct Arrays {
  Arrays(std::int64_t count, Numbers);
  std::int64_t n;
  float *x, *y;  ///< aligned to a cache line
  std::vector<std::uint8_t> codes, flags;

 private:
  std::vector<float> x_, y_;
};

/// A conversion ready to run on any arrays.
struct ConversionCase {
  std::string name;
  /// Instructions per 16 elements on the vector ports of a machine with 512-bit registers; 0 where
  /// something else binds.
  double instructions = 0;
  bool has_flags = false;
  std::function<void(Arrays&, bool with_flags)> run = {};
  /// Fills what run() reads besides x. May be empty.
  std::function<void(Arrays&)> prepare = {};
  /// Throws Error where a bit of the results differs from the reference.
  std::function<void(Arrays&)> require_equal = {};
};

std::vector<ConversionCase> conversion_cases();

}  // namespace numemu::bench
