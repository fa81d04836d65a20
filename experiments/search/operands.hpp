// What forward products read: samples of their float32 numbers, and how much noise of each arrives
// at the output of the network.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "emu/net/gemm_layers.hpp"
#include "experiments/engine/bench/workbench.hpp"
#include "policies/calibrate/reference.hpp"
#include "policies/recipe/recipe.hpp"
#include "policies/recipe/role_policy.hpp"

namespace numemu::experiments {

/// An operand of a layer's forward product.
struct SearchOperand {
  net::GemmLayer gemm;
  net::Role role = net::Role::weight;   ///< else activation, key or value
  bool right = false;                   ///< the side of the product
  const net::Tensor* tensor = nullptr;  ///< whole: [outputs, ...] or [samples, ...]
  /// Some of its lines along the last axis, evenly spread, and their numbers.
  std::vector<float> sample = {};
  std::vector<std::int64_t> lines = {};

  bool weight() const { return role == net::Role::weight; }
  std::string name() const { return gemm.name + (right ? "/right" : "/left"); }
  std::int64_t width() const { return tensor->shape.back(); }
};

/// Elements of the sample of an operand.
inline constexpr std::int64_t kSampleElements = std::int64_t{1} << 15;
/// Fills sample and lines of an operand with elements; one line at least.
void take_sample(SearchOperand&, std::int64_t most = kSampleElements);

/// Every operand with elements, in the order of forward. They read graph and reference.
std::vector<SearchOperand> search_operands(const net::Graph&, const policies::FloatReference&);

/// Scales of an operand under a policy, which never quantizes: one for each run of `each` elements
/// of the sample. Static ones of activations as the calibration gives them on the reference.
struct SampleScales {
  std::vector<double> scales;
  std::int64_t each = 0;  ///< no run crosses a line; the last one of a line may be shorter
};
SampleScales sample_scales(const policies::RolePolicy&, const SearchOperand&,
                           const policies::CalibrationPolicy&, const policies::FloatReference&);
/// The scale of every element of the sample.
std::vector<double> expanded(const SampleScales&, std::int64_t width, std::int64_t elements);

/// Of each operand: the mean square of the output's error, over the mean square of its signal, for
/// noise of mean square 1 in the operand: white, in elements that are not zero, of weights of all
/// samples alike, and so small that the network is linear (-30 dB of the operand).
/// Measured with kGainProbes passes of kGainSamples samples for each operand; kept in
/// CACHE/gains under a digest of network, data, samples and version. An empty cache keeps nothing.
std::vector<double> output_gains(const std::vector<SearchOperand>&, const Workbench&,
                                 const std::string& cache);
inline constexpr std::int64_t kGainProbes = 4, kGainSamples = 8;

}  // namespace numemu::experiments
