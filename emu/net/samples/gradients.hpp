// Gradients of single samples in the form that their dot products need, from operands as they are
// or rounded to a format.
#pragma once
#include <cstdint>
#include <vector>

#include "emu/net/samples/operands.hpp"
#include "formats/conversion.hpp"

namespace numemu::net::samples {

/// How operands are stored: every tensor under one scale for all its samples.
struct Stored {
  const Format* format = nullptr;  ///< null: as they are
  Rounding rounding = {};
  std::uint64_t seed = 0;
  std::uint32_t first_tensor = 0;  ///< of the random bits: the operands have numbers from it on
  std::uint16_t draw = 0;
};
/// The scale at which the largest magnitude is the largest of the format.
float scale_of(const SampleOperand&, const Format&);

/// The gradients of samples in the form that their dot products need.
class SampleGradients {
 public:
  /// Of the first `count` samples, 0: all.
  SampleGradients(const std::vector<LayerOperands>&, const Stored&, std::int64_t count = 0);
  std::int64_t samples() const { return samples_; }
  /// The dot product of sample i and sample j of the other gradients, which are of the same
  /// network: (g . g')(x . x') where a layer's are factored, with + 1 behind x . x' for its bias.
  double dot(std::int64_t i, const SampleGradients&, std::int64_t j) const;

 private:
  struct Layer {
    bool factored = true, bias = false;
    std::int64_t channels = 0, depth = 0;
    std::vector<float> g, x;    ///< [samples, channels], [samples, depth]
    std::vector<double> whole;  ///< [samples, channels, depth], behind it [samples, channels]
  };
  std::int64_t samples_ = 0;
  std::vector<Layer> layers_;
};

}  // namespace numemu::net::samples
