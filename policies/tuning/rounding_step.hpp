// What the steps share that only choose how each layer's weight is rounded.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "policies/tuning/tune_step.hpp"
#include "policies/tuning/tuned_layers.hpp"

namespace numemu::policies {

/// Options of every such step.
struct RoundingOptions : PolicyOptions {
  std::string mode = "sequential";
  std::int64_t samples = 0;

 protected:
  /// `own`, then mode and samples.
  std::vector<Option> with_inputs(std::vector<Option> own);
};

/// Rounds one layer after another by what it reads, X^T X of its inputs before they are quantized:
/// scales are those of the layer's ranges or its rule and become ranges; weights become numbers of
/// the format.
class RoundingStep : public TuneStep {
 public:
  RoundingStep(std::string_view name, const RoundingOptions& options)
      : name_(name), inputs_(options) {}

  std::int64_t begin(const Tuning&) override;
  void run(Tuning&, std::int64_t part, const TuneProgress&) override;
  void save_state(net::NamedState&) const override;
  void load_state(const net::NamedState&) override;
  std::string summary() const override;

 private:
  /// The weight as numbers of the role.
  virtual net::Tensor round(const RolePolicy&, const net::Tensor& weight,
                            const LayerHessians&) const = 0;

  std::string_view name_;
  const RoundingOptions& inputs_;
  std::vector<TunedLayer> layers_;
  std::vector<double> errors_;  ///< of each layer: of rounding to nearest, of this rounding
};

}  // namespace numemu::policies
