// Static scales of layers, calibrated on what their products read.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "emu/net/tensor.hpp"
#include "policies/calibrate/static_scale.hpp"
#include "policies/numerics/layer_state.hpp"
#include "policies/numerics/role_numerics.hpp"
#include "policies/recipe/recipe.hpp"

namespace numemu::policies {

/// The steps of one calibration: add() every layer, take_known(), see() what a pass shows where
/// something waits for one, settle().
class StaticCalibration {
 public:
  /// All are read until the end of life. `shared`, which may be null, is neither read nor added to
  /// where inputs are rewritten.
  StaticCalibration(const CalibrationPolicy&, std::int64_t samples, const RoleNumerics::ReadInput&,
                    SeenTensors* shared);

  /// The layer's operands, as far as they have static scales that are not fixed.
  void add(const std::string& name, LayerState&);
  /// What needs no pass. Returns whether some operand waits for one.
  bool take_known();
  /// What a product of the layer read; right: null but for an activation.
  void see(std::int64_t first_sample, std::string_view name, const net::Tensor& left,
           const net::Tensor* right);
  /// Gives the layers their scales. One whose product the network never computes (the recurrent one
  /// of a single step) gets the scale of zeros.
  void settle();

 private:
  struct Operand {
    std::optional<StaticScale> scale;
    bool saw = false, waits = false;  ///< for the pass
  };
  struct Layer {
    LayerState* state = nullptr;
    Operand left, right;
  };

  std::optional<StaticScale> fresh(const std::optional<RoleQuantizer>&) const;
  std::string key(const std::string& layer, const char* side) const;
  void take_known(Operand&, const std::optional<RoleQuantizer>&, const std::string& layer,
                  const char* side) const;
  bool is_known(std::optional<StaticScale>&, const std::optional<RoleQuantizer>&,
                const std::string& layer, const char* side) const;
  void share(const std::string& name, const Layer&) const;

  const CalibrationPolicy& calibration_;
  const std::int64_t samples_;
  const RoleNumerics::ReadInput& read_;
  SeenTensors* const shared_;
  std::map<std::string, Layer, std::less<>> layers_;
};

}  // namespace numemu::policies
