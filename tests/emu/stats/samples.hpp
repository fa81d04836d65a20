// Seeded samples of known laws for the tests of fits and distances, the same on every platform.
#pragma once
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

namespace numemu::testing {

class Draws {
 public:
  explicit Draws(std::uint64_t seed) : random_(seed) {}
  double uniform() { return (static_cast<double>(random_() >> 11) + 0.5) * 0x1p-53; }
  double normal() { return std::sqrt(-2 * std::log(uniform())) * std::cos(2 * M_PI * uniform()); }
  double laplace() { return (uniform() < 0.5 ? 1 : -1) * std::log(uniform()); }

 private:
  std::mt19937_64 random_;
};

template <class Law>
std::vector<float> draw(std::int64_t n, Law&& law) {
  std::vector<float> x(static_cast<std::size_t>(n));
  for (float& value : x) value = static_cast<float>(law());
  return x;
}

}  // namespace numemu::testing
