// Transform hadamard-backward: both operands of a product of backward are rotated along its
// reduction axis by a Hadamard matrix with signs drawn anew in every step, so that outliers of
// gradients are spread over their blocks before they are quantized (Tseng et al., 2025; NVIDIA,
// 2025). With H H^T = b I and signs S, (A S H)(B S H)^T = b A B^T: in exact arithmetic the product
// stays. wgrad reduces along batch and space, dgrad along the outputs; positions beyond the last
// whole block are not rotated.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <map>
#include <optional>
#include <string_view>

#include "emu/net/profile.hpp"
#include "formats/digest.hpp"
#include "formats/error.hpp"
#include "policies/numerics/operands/im2col_operand.hpp"
#include "policies/numerics/operands/operand_scales.hpp"
#include "policies/numerics/rotation.hpp"
#include "policies/policy.hpp"
#include "policies/recipe/bound_recipe.hpp"

namespace numemu::policies {
namespace {

using net::GemmKind;

struct BackwardOptions final : PolicyOptions {
  std::int64_t block = 32;
  std::string products = "wgrad";
  std::vector<Option> list() override {
    return {
        {"block", "positions that are rotated together, a power of two", &block, 2,
         kLargestRotation},
        {"products", "whose operands are rotated", &products, 0, 0, {"wgrad", "dgrad", "both"}}};
  }
  bool rotates(GemmKind kind) const {
    if (kind == GemmKind::fprop) return false;
    return products == "both" || products == net::to_string(kind);
  }
};

class HadamardBackward final : public Policy {
 public:
  HadamardBackward(Binding given, net::Numerics& inner) : Policy(std::move(given), inner) {
    for (const BoundProduct& product : binding().recipe.products()) {
      const auto* const options = binding().of<BackwardOptions>(product.gemm.name);
      if (options != nullptr) check(product, *options);
    }
  }

  void product(const net::Step& step, const net::Product& given) override {
    const auto* const options = binding().of<BackwardOptions>(given.layer);
    if (options == nullptr || !options->rotates(given.kind))
      return Forwarding::product(step, given);
    net::Product product = given;
    // Windows shift what the depth pairs: they are copied out before they are rotated.
    std::optional<Im2colOperand> copied_a, copied_b;
    if (!reads_whole_lines(given, given.a) || !reads_whole_lines(given, given.b)) {
      product.a = copied_a.emplace(given, net::Side::a).side();
      product.b = copied_b.emplace(given, net::Side::b).side();
    }
    net::Tensor &a = kept(product.a, 0), &b = kept(product.b, 1);
    {
      const net::Section section(net::SectionKind::quantize, given.layer,
                                 net::to_string(given.kind));
      const std::vector<float> signs = signs_of(step, given);
      rotate_side(product.a, signs, options->block, true, a);
      rotate_side(product.b, signs, options->block, false, b);
    }
    product.a.source = &a;
    product.b.source = &b;
    Forwarding::product(step, product);
  }

 private:
  /// Room for a rotated side, kept for later products by its size: arrays that are allocated anew,
  /// or grow again, are filled with zeros, a twentieth of the time of quantization.
  static net::Tensor& kept(const net::ProductSide& side, std::size_t place) {
    constexpr std::size_t kSizes = 6;
    thread_local std::array<std::map<std::int64_t, net::Tensor>, 2> tensors;
    const std::int64_t size = side.source->size();
    auto& of_side = tensors[place];
    if (of_side.size() == kSizes && !of_side.contains(size)) of_side.clear();
    return of_side[size];
  }

  void check(const BoundProduct& product, const BackwardOptions& options) const {
    const net::GemmLayer& gemm = product.gemm;
    const LayerRecipe& r = product.roles;
    const auto refuse = [&](const std::string& why) {
      throw Error(fmt::format("{}: layer {}: {}", binding().where, gemm.name, why));
    };
    if (!std::has_single_bit(static_cast<std::uint64_t>(options.block)))
      refuse(fmt::format("block: expected a power of two, found {}", options.block));
    const auto require = [&](const char* role, const std::optional<RolePolicy>& policy,
                             const std::optional<MaskPolicy>& mask) {
      if (const std::string why = not_rotatable(role, policy, mask); !why.empty()) refuse(why);
    };
    if (options.rotates(GemmKind::dgrad)) {
      require("gradient", r[RolePart::gradient_dgrad], r.masks[RolePart::gradient_dgrad]);
      if (gemm.weight != nullptr) require("weight", r[RolePart::weight], r.masks[RolePart::weight]);
    }
    if (options.rotates(GemmKind::wgrad))
      require("gradient", r[RolePart::gradient_wgrad], r.masks[RolePart::gradient_wgrad]);
    if (options.rotates(GemmKind::wgrad) || gemm.weight == nullptr)
      require("activation", r[RolePart::activation], r.masks[RolePart::activation]);
  }

  std::vector<float> signs_of(const net::Step& step, const net::Product& p) const {
    RandomSource random;
    random.seed = binding().recipe->seed();
    random.tensor = tensor_word(fmt::format("{}/transform/{}.{}/{}", p.layer, step.index,
                                            p.repetition_in(step), net::to_string(p.kind)));
    return random_signs(random, p.k);
  }

  static void rotate_side(const net::ProductSide& side, const std::vector<float>& signs,
                          std::int64_t block, bool left, net::Tensor& x) {
    const net::Tensor& from = *side.source;
    const std::int64_t inner = side.along_rows ? side.stack.inner * side.stack.width : 1;
    const auto length = static_cast<std::int64_t>(signs.size());
    x.shape = from.shape;
    x.data.resize(from.data.size());
    if (from.size() > 0)
      rotate(from.data.data(), x.data.data(), from.size() / (length * inner), inner, signs, block,
             left);
  }
};

}  // namespace

extern const PolicyKind transform_hadamard_backward{
    .key = "transform",
    .name = "hadamard-backward",
    .summary =
        "both operands of products of backward are rotated along the reduction axis, with "
        "random signs of every step",
    .source = "Tseng et al., 2025 (arXiv 2502.20586); NVIDIA, 2025 (arXiv 2509.25149)",
    .options = make_options<BackwardOptions>,
    .bind = make_policy<HadamardBackward>,
    .in_inference = [](const PolicyOptions&) { return false; }};

}  // namespace numemu::policies
