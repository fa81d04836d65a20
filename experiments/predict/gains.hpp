// Gains of the float32 network from noise on one tensor to every layer's output, by random probes.
#pragma once
#include <array>
#include <map>
#include <string>
#include <vector>

#include "emu/net/graph.hpp"
#include "experiments/predict/tensor_source.hpp"
#include "policies/calibrate/reference.hpp"

namespace numemu::experiments {

/// Multiply-adds of a product, and of all products of a batch.
double multiply_adds(const net::Product&);
double multiply_adds(const net::Graph&, const std::vector<net::Tensor>& batch);

/// The shape of a tensor's noise: the same variance on every non-zero element (integers,
/// subnormals), or one proportional to the element's square (normal numbers of a float).
enum class NoiseShape { flat, proportional };

/// gain(source, shape, layer): noise power at the output of `layer` per unit of mean noise power on
/// the source tensor.
class NoiseGains {
 public:
  /// Mean over random probes on the first kProbeImages samples of the reference: kProbes of them,
  /// fewer (at least kFewestProbes) where all together would take more than kProbeMacs
  /// multiply-adds. Layers that multiply two activations get no gains: their noise is not followed.
  NoiseGains(const net::Graph&, const policies::FloatReference&, std::uint64_t seed = 0);

  double gain(const TensorSource&, NoiseShape, const std::string& layer) const;
  const std::vector<std::string>& layers() const { return layers_; }

  static constexpr int kProbes = 16, kFewestProbes = 2;
  static constexpr double kProbeMacs = 0x1p39;  // some seconds
  static constexpr std::int64_t kProbeImages = 128;
  /// Relative size of a probe: small enough that ReLU and pooling hardly switch, large against
  /// float32 rounding (2^-24).
  static constexpr float kProbeSize = 0x1p-9f;

 private:
  std::vector<std::string> layers_;
  std::map<TensorSource, std::map<std::string, std::array<double, 2>>> gains_;
};

}  // namespace numemu::experiments
