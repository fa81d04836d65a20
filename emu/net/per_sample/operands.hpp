// The operands of the weight gradients of single samples, layer by layer.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "emu/net/data/dataset.hpp"
#include "emu/net/graph.hpp"
#include "emu/unit/gather.hpp"

namespace numemu::net::per_sample {

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
  Tensor x;
  std::vector<std::int32_t> labels;
};
/// The first `count` samples of the training or of the test split.
Batch first_of_training(const Dataset&, std::int64_t count);
Batch first_of_test(const Dataset&, std::int64_t count);

/// Throws Error (usage), which `where` begins, for a network whose samples depend on each other or
/// that has trained parameters outside fully connected and ungrouped convolutional layers.
void require_separable(const Graph&, const std::string& where);

/// For the loss of every sample by itself, in float32, at the network's current weights. Throws
/// Error for a convolution with groups.
std::vector<LayerOperands> operands_of(const Graph&, const Batch&);

bool all_factored(const std::vector<LayerOperands>&);

}  // namespace numemu::net::per_sample
