// Small random networks in ONNX: constants and views of them, shared weights, several outputs,
// empty axes, recurrent layers, lengths of 1, einsum, experts, grouped convolutions.
#pragma once
#include <cstdint>
#include <vector>

#include "emu/net/model/onnx/import.hpp"
#include "formats/random.hpp"

namespace numemu::fuzz {

/// Numbers that are a function of the seed alone, one after another.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : source_{.seed = seed} {}
  /// In [0, n).
  std::int64_t below(std::int64_t n) { return source_.bits(next_++, 32) % n; }
  bool once_in(std::int64_t n) { return below(n) == 0; }
  template <class T>
  const T& of(const std::vector<T>& values) {
    return values[static_cast<std::size_t>(below(std::ssize(values)))];
  }
  /// `count` numbers around 0, some of them 0; or all 0, or all alike.
  std::vector<float> numbers(std::int64_t count);

 private:
  RandomSource source_;
  std::uint64_t next_ = 0;
};

/// The network of a seed. Its layers block1.attention.scores, block1.attention.gathered, block4.fc
/// and head are there for recipes that name them. Throws Error for one that the import refuses.
net::ImportedModel random_graph(Draws&);

}  // namespace numemu::fuzz
