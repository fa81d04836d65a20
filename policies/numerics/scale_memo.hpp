// The last scales of a tensor that several products read.
#pragma once
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "policies/recipe/role_quantizer.hpp"

namespace numemu::policies {

/// A tensor is read by two products of a training step (a weight by every batch of an evaluation),
/// and rules that read all elements cost more than comparing them does. Elements are compared, so
/// that no scale differs.
class ScaleMemo {
 public:
  /// choose_scales() of the same arguments.
  std::vector<float> scales(const RoleQuantizer&, const float* x, std::int64_t n,
                            std::int64_t groups);
  std::int64_t asked() const { return asked_; }  ///< how often the rule chose

 private:
  /// What the last scales depend on, but for the elements.
  struct Key {
    const Format* format = nullptr;
    Rounding rounding;
    Overflow overflow = Overflow::saturate;
    std::string scale;
    std::int64_t groups = 0;
    friend bool operator==(const Key&, const Key&) = default;
  };

  std::vector<float> ask(const RoleQuantizer&, const float* x, std::int64_t n, std::int64_t groups);

  std::atomic<std::int64_t> asked_ = 0;
  std::mutex mutex_;
  Key key_;
  std::vector<float> x_, scales_;
};

}  // namespace numemu::policies
