// The mark of policies that override Policy::read_input().
#pragma once

namespace numemu::policies {

/// Calibration below such a policy sees other numbers than the float32 network's, so that recipes
/// with and without it share nothing. A base class beside Policy.
class RewritesInputs {
 public:
  virtual ~RewritesInputs() = default;
};

}  // namespace numemu::policies
