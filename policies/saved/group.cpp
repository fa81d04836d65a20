// Activation compressor group: tensors kept for backward become unbiased codes of few bits, a scale
// and a minimum for each group of a sample (ActNN, Chen et al., ICML 2021). Only copies that a
// gradient is linear in are rounded; signs stay exact in 2 bits each.
#include <fmt/format.h>

#include <map>

#include "formats/error.hpp"
#include "policies/policy.hpp"
#include "policies/recipe/random_identity.hpp"
#include "policies/recipe/recipe.hpp"
#include "policies/recipe/stored_tensor.hpp"

namespace numemu::policies {
namespace {

constexpr int kRandomBits = 16;

struct Options final : PolicyOptions {
  std::string format = "uint2", bits = "fixed";
  std::int64_t group = 256;
  std::vector<Option> list() override {
    return {{"format",
             "of the codes",
             &format,
             0,
             0,
             {"uint2", "uint3", "uint4", "uint5", "uint6", "uint7", "uint8"}},
            {"group", "neighbours of a sample, all its axes taken as one, that share a scale",
             &group, 1, kLargestBlock},
            {"bits", "fixed: those of the format for every tensor", &bits, 0, 0, {"fixed"}}};
  }

  /// Stochastic codes between the minimum, kept in float32, and the maximum of a group: the scale,
  /// range / largest code rounded upward to bfloat16, clips nothing, so that the mean of what is
  /// given back is the element, to 2^-17 of a step.
  RolePolicy rounding() const {
    RolePolicy policy;
    policy.block = &find_block_format(fmt::format("group({},{},bfloat16,min)", format, group));
    policy.format = policy.block->element;
    policy.rounding = {RoundingMode::sr, StochasticVariant::c, kRandomBits};
    policy.scale = policy.block->default_rule;
    policy.granularity = Granularity::block;
    return policy;
  }
};

class Group final : public Policy {
 public:
  Group(Binding binding, net::Numerics& inner) : Policy(std::move(binding), inner) {
    for (const auto& [layer, options] : this->binding().layers) {
      if (this->binding().recipe.layer(layer).saved) {
        throw Error(
            fmt::format("{}: group contradicts roles.saved of layer {}: expected one of them",
                        this->binding().where, layer));
      }
      quantizers_.try_emplace(layer, static_cast<const Options&>(*options).rounding());
    }
  }

  net::Saved save(const net::Step& step, const net::Kept& kept,
                  const net::SharedTensor& tensor) override {
    const RoleQuantizer* const quantizer = find(kept);
    if (quantizer == nullptr) return Forwarding::save(step, kept, tensor);
    net::Saved saved{.tensor = nullptr, .shape = tensor->shape};
    if (kept.use == net::Use::sign) {
      saved.packed = pack_signs(*tensor);
    } else {
      FlagCounts flags;
      saved.packed = pack(
          *quantizer, *tensor,
          {stored_random(binding().recipe.seed(), kept.layer, "saved", step, "save"), 0}, flags);
    }
    return saved;
  }

  net::SharedTensor restore(const net::Step& step, const net::Kept& kept,
                            net::Saved saved) override {
    const RoleQuantizer* const quantizer = find(kept);
    if (quantizer == nullptr) return Forwarding::restore(step, kept, std::move(saved));
    return std::make_shared<const net::Tensor>(
        kept.use == net::Use::sign ? restore_signs(saved.shape, saved.packed)
                                   : restore_packed(*quantizer, saved.shape, saved.packed));
  }

 private:
  /// Null where the tensor is kept by the inner numerics.
  const RoleQuantizer* find(const net::Kept& kept) const {
    if (kept.use != net::Use::linear && kept.use != net::Use::sign) return nullptr;
    const auto found = quantizers_.find(kept.layer);
    return found == quantizers_.end() ? nullptr : &found->second;
  }

  std::map<std::string, RoleQuantizer, std::less<>> quantizers_;  ///< by layer
};

}  // namespace

extern const PolicyKind saved_group;
const PolicyKind saved_group{
    .key = "saved",
    .name = "group",
    .summary = "tensors kept for backward become stochastic codes of few bits in groups",
    .source = "Chen et al., ICML 2021 (ActNN, arXiv 2104.14129)",
    .options = make_options<Options>,
    .bind = make_policy<Group>,
    .usual = true};

}  // namespace numemu::policies
