// The mask of one layer's weight: made when it is due, kept between, part of a run's state.
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "emu/net/tensor.hpp"
#include "policies/mask/mask_rule.hpp"
#include "policies/mask/mask_tensor.hpp"

namespace numemu::policies {

/// In training the mask serves `refresh` steps and the gradient passes to every weight
/// (straight-through): training of the dense weight continues. With refresh=0 the first mask stays
/// and pruned weights become zeros (settle), so that the weights contain their mask.
class WeightMask {
 public:
  WeightMask(MaskPolicy policy, RandomSource random)
      : policy_(std::move(policy)), random_(random) {}

  /// The weight of training step `step` under its mask; `matrices` are its independent parts
  /// (groups of a convolution).
  std::shared_ptr<const net::Tensor> in_step(const net::Tensor& weight, std::int64_t matrices,
                                             std::int64_t step);
  /// Of a weight that does not change until forget(). Any number of threads.
  std::shared_ptr<const net::Tensor> fixed(const net::Tensor& weight, std::int64_t matrices);
  /// Of a weight in the middle of training, in inference: under the mask in force where there is
  /// one. Made once for equal weights. Any number of threads.
  std::shared_ptr<const net::Tensor> passing(const net::Tensor& weight,
                                             std::int64_t matrices) const;
  /// Replaces what fixed() gives: weights repaired elsewhere.
  void fix(net::Tensor masked);
  void forget();

  /// After an update: +0 where a mask that is never refreshed prunes.
  void settle(net::Tensor& weight) const;

  const MaskPolicy& policy() const { return policy_; }
  /// 1 where kept, of the mask in force; empty before the first and where each step makes its own.
  const std::vector<std::uint8_t>& keep() const { return keep_; }
  /// The mask of a weight now, 1 where kept.
  std::vector<std::uint8_t> mask_of(const net::Tensor& weight, std::int64_t matrices) const;
  /// The mask in force, or that of the weight where there is none.
  std::vector<std::uint8_t> keep_of(const net::Tensor& weight, std::int64_t matrices) const;

  /// The mask in force, 8 elements in a byte; "" for none.
  std::string state() const;
  /// Throws Error naming the state where it is damaged.
  void load(const std::string& name, const std::string& state);

 private:
  net::Tensor made(const net::Tensor& weight, std::int64_t matrices) const;
  /// Throws Error where the mask in force is of another weight.
  void require_size(const net::Tensor& weight) const;

  MaskPolicy policy_;
  RandomSource random_;
  std::vector<std::uint8_t> keep_;
  std::string loaded_;  ///< the name of the state that keep_ comes from
  std::shared_ptr<const net::Tensor> cached_;
  std::optional<std::int64_t> cached_step_;
  mutable std::shared_ptr<const net::Tensor> passing_;
  mutable net::Elements passing_of_;  ///< the dense weight that passing_ is of
  mutable std::mutex mutex_;
};

/// Stream `mask` of the tensor with that identity (docs/masks.md).
RandomSource mask_source(std::uint64_t seed, const std::string& identity);

/// Where the draws of a layer's weight mask come from: LAYER/weight/0/mask-channel (or -reduction,
/// or -element): the same in every step.
RandomSource weight_mask_random(std::uint64_t seed, std::string_view layer, const MaskPolicy&);

/// How a weight [out, ..., in] of so many independent parts is cut.
MaskLayout weight_layout(const MaskPolicy&, const net::Shape&, std::int64_t matrices);

}  // namespace numemu::policies
