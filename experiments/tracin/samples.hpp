// Gradients of single samples, layer by layer, from the operands of the weight gradients: as they
// are or rounded to a format.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "emu/net/data/dataset.hpp"
#include "emu/net/graph.hpp"
#include "emu/unit/gather.hpp"
#include "experiments/tracin/rounded_dots.hpp"
#include "formats/conversion.hpp"

namespace numemu::experiments::tracin {

/// One operand of a weight gradient for many samples, a sample's elements after each other.
struct SampleOperand {
  std::int64_t elements = 0;  ///< of a sample
  std::vector<float> data;    ///< [samples, elements]
  unit::Gather gather;        ///< the matrix [channels, positions] of one sample
  std::int64_t rows() const { return std::ssize(gather.row); }
  std::int64_t positions() const { return std::ssize(gather.depth); }
  /// A sample's elements as `gather` reads them, in `scratch` where there is a border.
  const float* bordered(const float* sample, std::vector<float>& scratch) const;
  /// The matrix of bordered elements, row by row.
  template <class T>
  void read(const T* bordered, std::vector<T>& matrix) const {
    matrix.clear();
    for (const std::int32_t row : gather.row)
      for (const std::int32_t depth : gather.depth) matrix.push_back(bordered[row + depth]);
  }
};

/// A layer's gradients along its outputs and what it read.
struct LayerOperands {
  std::string layer;
  bool bias = false;
  SampleOperand g, x;

  /// The weight gradient of a sample is one outer product.
  bool factored() const { return g.positions() == 1; }
};

struct Batch {
  net::Tensor x;
  std::vector<std::int32_t> labels;
};
/// The first `count` samples of the training or of the test split.
Batch first_of_training(const net::Dataset&, std::int64_t count);
Batch first_of_test(const net::Dataset&, std::int64_t count);

/// Throws Error (usage) for a network whose samples depend on each other or that has trained
/// parameters outside fully connected and ungrouped convolutional layers.
void require_separable(const net::Graph&);

/// For the loss of every sample by itself, in float32, at the network's current weights.
std::vector<LayerOperands> operands_of(const net::Graph&, const Batch&);

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

/// What one draw adds to the mean squared length of a sample's gradient: over the positions p of
/// each layer the sum of G X' + G' X + G' X', with the squared length and the summed variances of
/// the rounded g_p and x_p, and of G' for the bias.
double one_draw_bias(const std::vector<LayerOperands>&, const Format&, const Rounding&,
                     std::int64_t sample);

/// Moments of the squared length of a sample's gradient by one draw, and by two.
struct SelfLaw {
  Moments one, two;
};

bool all_factored(const std::vector<LayerOperands>&);

/// Moments of drawn gradients. Those of factored layers are exact; the variances of others are
/// those of what the draws change to first order, which leaves out v v' and the square of a draw.
class GradientLaws {
 public:
  /// Of the first `count` samples of operands, which must outlive this.
  GradientLaws(const std::vector<LayerOperands>&, const Format&, const Rounding&,
               std::int64_t count);
  SelfLaw self(std::int64_t sample) const;
  /// The dot product of two samples' gradients by independent draws, where all layers are factored.
  Moments two(std::int64_t i, const GradientLaws&, std::int64_t j) const;

 private:
  struct Side {
    const SampleOperand* operand = nullptr;
    double scale = 1;
    std::vector<RoundedElement> rounded;  ///< of factored layers
    RoundedVector of(std::int64_t sample) const;
  };
  struct Layer {
    bool factored = true, bias = false;
    Side g, x;
  };
  SelfLaw to_first_order(const Layer&, std::int64_t sample) const;

  StochasticLaw law_;
  std::vector<Layer> layers_;
};

}  // namespace numemu::experiments::tracin
