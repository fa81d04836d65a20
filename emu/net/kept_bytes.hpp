// The bytes that a training run keeps for backward, counted from what the numerics give to store.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "emu/net/numerics.hpp"

namespace numemu::net {

/// Forwards every hook and counts what save() returns: packed forms byte by byte (codes, scales,
/// minima, signs), tensors that stay as they are 4 bytes per element, once for all their uses.
/// Survives a restart with the rest of the numerics' state.
class KeptBytes final : public Forwarding {
 public:
  /// Of an epoch.
  struct Sums {
    std::int64_t bytes = 0;
    std::int64_t float32 = 0;  ///< the same tensors, each kept once as it is
    std::int64_t samples = 0;

    double per_sample() const { return static_cast<double>(bytes) / static_cast<double>(samples); }
    double float32_per_sample() const {
      return static_cast<double>(float32) / static_cast<double>(samples);
    }
    bool operator==(const Sums&) const = default;
  };

  using Forwarding::Forwarding;

  void begin_step(const Step&) override;
  void end_epoch(const Epoch&) override;
  Saved save(const Step&, const Kept&, const SharedTensor&) override;
  std::vector<std::int64_t> counts() const override;
  void add_counts(std::span<const std::int64_t> more) override;
  void save_state(NamedState&) const override;
  /// A state without these sums is one of an earlier version: its epochs have none. Throws Error
  /// where it has others.
  void load_state(const NamedState&) override;

  /// Null where no sample of the epoch was counted.
  const Sums* of_epoch(std::int64_t epoch) const;

 private:
  Sums current_;
  std::map<std::int64_t, Sums> epochs_;  ///< those that ended
  // The last call: uses of one tensor follow each other in ascending order.
  std::string layer_;
  std::optional<Use> use_;
  const Tensor* stored_ = nullptr;  ///< as it is, for that use or one before
};

}  // namespace numemu::net
