// Float32 numerics that disturb the operands of products as a recipe's rounding would, by noise of
// random phase.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "emu/net/graph.hpp"
#include "emu/net/tensor.hpp"
#include "experiments/predict/unit_errors.hpp"
#include "formats/analysis/phase_noise.hpp"
#include "policies/calibrate/reference.hpp"
#include "policies/numerics/role_numerics.hpp"
#include "policies/recipe/bound_recipe.hpp"
#include "policies/recipe/role_quantizer.hpp"

namespace numemu::experiments {

// Drawn errors of a weight that keep what rounding does to the sums of its outputs.

/// The root mean square of every input that an output with k weights reads, from the layer's
/// float32 inputs [..., channels]; the taps of a convolution repeat the channels. All 1 where
/// outputs read different channels (groups).
std::vector<float> input_sizes(const net::Tensor& inputs, const net::Tensor& weight);

/// What the errors e of one output's weights x have in common with x and with the sizes r of the
/// inputs: e = along x + common r + a rest that is orthogonal to both.
struct ErrorParts {
  double along = 0, common = 0;
  double rest = 0;  ///< sum of squares
};
ErrorParts error_parts(const float* x, const float* r, const float* e, std::int64_t n);

/// `error` becomes x + e, where e has the first two parts of `wanted` and the rest of the drawn
/// errors, whose parts are `drawn`, times `ratio`.
void add_error_parts(const float* x, const float* r, const ErrorParts& drawn,
                     const ErrorParts& wanted, double ratio, std::int64_t n, float* error);

/// What a recipe does to the operands of a network's forward products, looked up once for all
/// passes.
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

/// Activations in blocks along the reduction of a convolution are drawn as the matrix that it
/// reads, of at most so many elements.
inline constexpr std::int64_t kMostColumns = std::int64_t{1} << 25;

/// One pass over some samples: every product reads disturbed operands and multiplies in float32.
/// An activation has one phase per sample and channel (its last axis), the network's input one per
/// sample, a weight one per element; samples may share theirs. The drawn errors of a tensor then
/// get the two moments of its rounding, sum x e and sum e^2, in every channel (of a weight: output)
/// of at least 128 elements, else of the whole tensor: rounding shrinks tensors by a little, which
/// adds up coherently. A weight has sum x e in every output, and sum r e with the root mean squares
/// r of its inputs: inputs that vary together multiply the errors of an output as one number.
/// Scales are those of the role's rule: static ones as calibrated, the others from the operand as
/// it comes, upstream noise included, each sample for itself. To the results comes what the layer's
/// unit adds (unit_errors.hpp): of some outputs, whose operands are the nearest codes; every output
/// gets the error of one whose result is near its own, results that are one number (Atoms) one
/// error.
class InjectedNoise : public net::Numerics {
 public:
  /// By layer, by ascending result.
  using KnownErrors = std::map<std::string, std::vector<ResultError>, std::less<>>;
  /// `probe` is the number of the draw; without `units` sums are float32's. Errors that are `known`
  /// are lent to the results, no unit multiplies, and samples share phases, as they share the grid
  /// of the network that is measured.
  InjectedNoise(const InjectedRoles&, int probe, const UnitErrors* units = nullptr,
                const KnownErrors* known = nullptr);
  void product(const net::Step&, const net::Product&) override;
  /// Of the products so far, by layer.
  const std::map<std::string, UnitErrors::Sample>& units() const { return samples_; }
  /// The errors of those outputs.
  const KnownErrors& unit_errors() const { return errors_; }
  /// One phase per element; the moments are those of the whole table.
  net::SharedTensor table(const net::Step&, std::string_view layer,
                          const net::Tensor& parameter) override;
  /// One phase per sample and channel, as of an activation; -infinity and NaN stay.
  void vector_result(const net::Step&, std::string_view layer, std::string_view op,
                     net::Tensor&) override;

 private:
  /// An operand with its noise; where units are looked at, the codes that are nearest, too.
  struct Disturbed {
    net::Tensor values, codes;
    UnitErrors::Scales scales;  ///< of codes; empty in blocks, whose codes are values
  };
  Disturbed disturbed(const InjectedRoles::Operand&, const net::Product&,
                      const net::ProductSide&) const;
  bool samples_units(std::string_view layer) const;
  void add_unit_errors(const net::Product&, const std::vector<ResultError>&);
  /// Of a tensor that is stored: its scales are those of `shape` and of each of `samples` shares.
  void disturb_stored(const InjectedRoles::Operand&, const net::Shape& shape, std::int64_t samples,
                      float* x) const;
  /// x + noise, of [lines, channels] with the given scales; `shifts`, unless empty, are subtracted
  /// before.
  net::Tensor drawn(const InjectedRoles::Operand&, const net::Tensor& x,
                    const std::vector<float>& scales, const std::vector<float>& shifts,
                    bool weight) const;
  RandomSource source(const InjectedRoles::Operand&, const char* use) const;

  const InjectedRoles& roles_;
  int probe_;
  const UnitErrors* units_;
  const KnownErrors* known_;
  std::map<std::string, UnitErrors::Sample> samples_;
  KnownErrors errors_;
  std::map<std::string, std::int64_t> calls_;  ///< so far, by layer
};

}  // namespace numemu::experiments
