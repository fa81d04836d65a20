// What the numerics of roles give to policies that decide static scales in the place of calibration.
#pragma once

namespace numemu::policies {

class RoleNumerics;

/// A base class beside Policy.
class SetsScales {
 public:
  virtual ~SetsScales() = default;
  /// Called once, before freeze(); the roles outlive the policy.
  virtual void give_roles(RoleNumerics&) = 0;
};

}  // namespace numemu::policies
