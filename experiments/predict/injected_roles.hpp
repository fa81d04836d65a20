// What a recipe does to the operands of a network's forward products, for noise of random phase.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "emu/net/tensor.hpp"
#include "experiments/predict/weight_errors.hpp"
#include "formats/analysis/phase_noise.hpp"
#include "policies/calibrate/reference.hpp"
#include "policies/numerics/role_numerics.hpp"
#include "policies/recipe/bound_recipe.hpp"
#include "policies/recipe/role_quantizer.hpp"

namespace numemu::experiments {

/// Looked up once for all passes.
class InjectedRoles {
 public:
  /// Static activation scales are those given by layer, else those that the reference gives.
  /// `read`: what policies make of a layer's input before it is rounded; null for nothing.
  InjectedRoles(const policies::BoundRecipe&, const policies::FloatReference&,
                const policies::StaticScales& static_scales = {},
                const policies::RoleNumerics::ReadInput& read = {});

  struct Operand {
    explicit Operand(const policies::RolePolicy&, std::int32_t zero_point = 0);
    policies::RoleQuantizer quantizer;  ///< chooses scales; never quantizes
    PhaseNoise noise;
    std::optional<policies::TensorScale> scale;  ///< a static one
    net::Role role = net::Role::activation;      ///< what it is: key and value, too
    /// What its phases are drawn for: tensors that several layers read have one name.
    std::string name;
    std::int64_t channels = 0;  ///< with phases of their own; 0: the last axis
    bool one_sample = false;    ///< all arrays are one sample: one scale for a tensor
    bool input = false;         ///< the network's input, whose channels are alike: colours, pixels
    bool slices = false;        ///< its unit reads slices: of windows the matrix that they become
    std::vector<float> input_sizes;       ///< of a weight: of the inputs that an output reads
    const net::Tensor* weight = nullptr;  ///< that of the graph, where it is one
    /// Of each output of that weight, what rounding itself does; filled by the first that asks.
    mutable std::once_flag own_once;
    mutable std::vector<ErrorParts> own;
  };
  struct Layer {
    std::unique_ptr<Operand> left, right;  ///< null: float32
    std::unique_ptr<Operand> output;       ///< role output of its results
  };
  /// Of a layer that multiplies.
  const Layer& layer(std::string_view name) const;
  /// Of a node that looks up a table; null where that stays float32.
  const Operand* table(std::string_view node) const;
  /// Role vector of a node's result; null where that stays float32.
  const Operand* vector(std::string_view node) const;
  /// Whether results are stored in a format: then numbers may come that lie on the grid of their
  /// phases.
  bool stores() const { return stores_; }
  std::uint64_t seed() const { return seed_; }

 private:
  std::uint64_t seed_;
  bool stores_ = false;
  std::map<std::string, Layer, std::less<>> layers_;
  std::map<std::string, Operand, std::less<>> tables_;
  std::map<std::string, std::unique_ptr<Operand>, std::less<>> vectors_;
};

}  // namespace numemu::experiments
