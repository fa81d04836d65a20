// Transform hadamard: both operands of a forward product are rotated along its reduction axis by a
// Hadamard matrix with random signs, block by block, so that each outlier is spread over its block
// before the operands are quantized (QuIP#, Tseng et al., ICML 2024; QuaRot, Ashkboos et al.,
// NeurIPS 2024). With H H^T = b I and signs S, (A S H)(B S H)^T = b A B^T: in exact arithmetic the
// product stays.
//
// Only fprop is transformed. dgrad and wgrad reduce along other axes and read the operands as they
// are: the gradients of the exact product.
#include <fmt/format.h>

#include <bit>
#include <mutex>

#include "emu/net/profile.hpp"
#include "formats/digest.hpp"
#include "formats/error.hpp"
#include "policies/numerics/rotation.hpp"
#include "policies/policy.hpp"
#include "policies/recipe/bound_recipe.hpp"

namespace numemu::policies {
namespace {

struct HadamardOptions final : PolicyOptions {
  std::int64_t block = 32;
  std::vector<Option> list() override {
    return {{"block",
             "channels that are rotated together, a power of two that divides the input channels "
             "of the layer (of a group)",
             &block, 2, kLargestRotation}};
  }
};

/// The rotation of one layer's input channels.
class Rotation {
 public:
  Rotation(std::int64_t block, std::int64_t width, const RandomSource& random)
      : block_(block), signs_(random_signs(random, width)) {}

  /// Lines of as many elements as there are channels.
  void apply(net::Tensor& x, bool left) const {
    const auto width = static_cast<std::int64_t>(signs_.size());
    rotate(x.data.data(), x.data.data(), x.size() / width, 1, signs_, block_, left);
  }

 private:
  std::int64_t block_;
  std::vector<float> signs_;  ///< of every channel
};

class Hadamard final : public Policy, public RewritesInputs {
 public:
  Hadamard(Binding given, net::Numerics& inner) : Policy(std::move(given), inner) {
    for (const BoundProduct& product : binding().recipe.products()) {
      const auto chosen = binding().layers.find(product.gemm.name);
      if (chosen != binding().layers.end())
        add(product, static_cast<const HadamardOptions&>(*chosen->second));
    }
  }

  void product(const net::Step& step, const net::Product& given) override {
    const auto found = layers_.find(given.layer);
    if (found == layers_.end() || given.kind != net::GemmKind::fprop)
      return Forwarding::product(step, given);
    net::Product product = given;
    net::Tensor a;
    std::shared_ptr<const net::Tensor> b;
    {
      const net::Section section(net::SectionKind::quantize, given.layer, "fprop");
      Layer& layer = found->second;
      a = *given.a.source;
      layer.rotation.apply(a, true);
      b = weight(step, layer, *given.b.source);
    }
    product.a.source = &a;
    product.b.source = b.get();
    Forwarding::product(step, product);
  }

  void freeze(const net::Graph&, const Calibration&) override {
    frozen_ = true;
    for (auto& [name, layer] : layers_) layer.weight.reset();
  }

  void read_input(std::string_view name, std::int64_t, net::Tensor& x) const override {
    const auto found = layers_.find(name);
    if (found != layers_.end()) found->second.rotation.apply(x, true);
  }

 private:
  struct Layer {
    Rotation rotation;
    std::shared_ptr<const net::Tensor> weight;  ///< after freeze(): rotated once
  };

  void add(const BoundProduct& product, const HadamardOptions& options) {
    const net::GemmLayer& gemm = product.gemm;
    const LayerRecipe& layer = product.roles;
    const auto refuse = [&](const std::string& why) {
      throw Error(fmt::format("{}: layer {}: {}", binding().where, gemm.name, why));
    };
    if (gemm.weight == nullptr)
      refuse("it multiplies two activations: expected null there (a layers entry of its own)");
    if (!std::has_single_bit(static_cast<std::uint64_t>(options.block)))
      refuse(fmt::format("block: expected a power of two, found {}", options.block));
    const std::int64_t width = gemm.weight->shape.back();
    if (width % options.block != 0) {
      refuse(
          fmt::format("expected a multiple of {} input channels (the block of hadamard), found {}",
                      options.block, width));
    }
    const auto contradicts = [&](const char* role, const std::optional<RolePolicy>& policy,
                                 const std::optional<MaskPolicy>& mask) {
      if (const std::string why = not_rotatable(role, policy, mask); !why.empty()) refuse(why);
      if (policy && policy->straight_through == StraightThrough::clipped) {
        refuse(
            fmt::format("hadamard and roles.{}.ste clipped contradict each other: elements of "
                        "the rotated {} saturate, gradients are those of one that is not rotated",
                        role, role));
      }
    };
    contradicts("weight", layer[RolePart::weight], layer.masks[RolePart::weight]);
    contradicts("activation", layer[RolePart::activation], layer.masks[RolePart::activation]);
    RandomSource random;
    random.seed = binding().recipe->seed();
    random.tensor = tensor_word(gemm.name + "/transform/0/hadamard");
    layers_.emplace(gemm.name, Layer{Rotation(options.block, width, random), nullptr});
  }

  std::shared_ptr<const net::Tensor> weight(const net::Step& step, Layer& layer,
                                            const net::Tensor& x) {
    const auto rotated = [&] {
      auto y = std::make_shared<net::Tensor>(x);
      layer.rotation.apply(*y, false);
      return y;
    };
    if (!frozen_ || step.phase == net::Phase::training) return rotated();
    const std::lock_guard lock(mutex_);
    if (!layer.weight) layer.weight = rotated();
    return layer.weight;
  }

  std::map<std::string, Layer, std::less<>> layers_;
  std::mutex mutex_;
  bool frozen_ = false;
};

}  // namespace

extern const PolicyKind transform_hadamard{
    .key = "transform",
    .name = "hadamard",
    .summary = "both operands of fprop are rotated along its reduction axis, with random signs",
    .source =
        "Tseng et al., ICML 2024 (QuIP#, arXiv 2402.04396); Ashkboos et al., NeurIPS 2024 "
        "(QuaRot, arXiv 2404.00456)",
    .options = make_options<HadamardOptions>,
    .bind = make_policy<Hadamard>};

}  // namespace numemu::policies
