// What the numerics of roles give to policies that decide static scales in the place of
// calibration, and what training asks of policies that learn scales.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "policies/recipe/fixed_ranges.hpp"
#include "policies/recipe/role_policy.hpp"
#include "policies/recipe/role_quantizer.hpp"
#include "policies/recipe/role_table.hpp"

namespace numemu::policies {

/// A base class beside Policy.
class LearnsScales {
 public:
  virtual ~LearnsScales() = default;
  /// Puts fixed scales in the place of what a layer's role had.
  using UseScales = std::function<void(std::string_view layer, RolePart, FixedScales)>;
  /// Called once, before the first step.
  virtual void give_scales_to(UseScales) = 0;
  /// That of the steps that follow; 0 before the first call.
  virtual void set_learning_rate(double) = 0;
  /// The ranges that codes reach under what was learned so far, or with `best` until the end of the
  /// epoch with the lowest validation loss; empty before the first step.
  virtual FixedRanges learned(bool best) const = 0;
};

class RoleNumerics;

/// How the result of a layer is rounded before others read it.
struct RoundedResult {
  RolePolicy role;
  TensorScale scale;
  bool from_sums = false;  ///< a product gives the codes by its epilogue
};
using RoundedResults = std::map<std::string, RoundedResult, std::less<>>;

/// A base class beside Policy.
class SetsScales {
 public:
  virtual ~SetsScales() = default;
  /// Called once, before freeze(); the roles outlive the policy.
  virtual void give_roles(RoleNumerics&) = 0;
  /// By layer, after freeze().
  virtual RoundedResults rounded_results() const = 0;
};

}  // namespace numemu::policies
