// The float32 network with noise of random phase: the policies of a recipe that are no rounding, on
// injected noise in the place of its roles.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "experiments/predict/injected_noise.hpp"
#include "experiments/predict/unit_errors.hpp"
#include "policies/numerics/recipe_numerics.hpp"

namespace numemu::experiments {

/// Numerics of passes in inference, each with draws of its own: those of the step's number. Masks
/// and transforms act as they do in the recipe's numerics, chosen from float32 numbers; what rounds
/// is noise. Threads may run a step each. Static scales as in predict_layers().
class InjectedNetwork : public net::Numerics {
 public:
  /// All are read until the end of life.
  InjectedNetwork(const policies::BoundRecipe&, const policies::FloatReference&,
                  const policies::StaticScales&);
  ~InjectedNetwork() override;

  void begin_step(const net::Step&) override;
  void end_step(const net::Step&) override;
  void product(const net::Step&, const net::Product&) override;
  net::SharedTensor table(const net::Step&, std::string_view node,
                          const net::Tensor& parameter) override;
  void vector_result(const net::Step&, std::string_view layer, std::string_view op,
                     net::Tensor&) override;
  net::NormRule norm(const net::Step&, std::string_view layer) override;

  /// By layer, what units add in the steps that have ended.
  std::map<std::string, UnitError> units() const;
  /// From now on passes stand for that of the network that is evaluated: samples of a step share
  /// phases, results get the errors that units made in the steps that have ended, at most
  /// kKnownErrors of a layer, and no unit multiplies. Not while a step runs.
  void begin_evaluation();
  static constexpr std::int64_t kKnownErrors = 1024;

  const policies::BoundRecipe& recipe() const { return recipe_; }

 private:
  class Draws;
  const policies::BoundRecipe& recipe_;
  UnitErrors units_;
  std::unique_ptr<Draws> draws_;
  policies::PolicyStack stack_;
  std::unique_ptr<InjectedRoles> roles_;
};

/// Whether the policies of that key of a recipe act on injected noise as they are; of others
/// nothing is predicted (left_out.hpp).
bool acts_on_noise(std::string_view key);

}  // namespace numemu::experiments
