// Policy edges static: tensors between operators are codes of static scales, as integer runtimes
// and accelerators keep them, rounded once, behind what is fused with the operator that gives them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "emu/net/forward.hpp"
#include "emu/net/ops/conv.hpp"
#include "emu/net/ops/linear.hpp"
#include "emu/net/ops/matmul.hpp"
#include "emu/unit/integer/requantize.hpp"
#include "emu/unit/unit.hpp"
#include "formats/error.hpp"
#include "policies/calibrate/static_scale.hpp"
#include "policies/edges/base/edge_groups.hpp"
#include "policies/numerics/quantized_tensor.hpp"
#include "policies/numerics/role_numerics.hpp"
#include "policies/numerics/sets_scales.hpp"
#include "policies/policy.hpp"
#include "policies/recipe/bound_recipe.hpp"
#include "policies/recipe/fixed_ranges.hpp"

namespace numemu::policies {
namespace {

constexpr std::string_view kOwn = "own", kOne = "one", kNoRequantization = "none";

struct EdgeOptions final : PolicyOptions {
  std::string add{kOwn}, concat{kOwn}, requantize{kNoRequantization};
  bool fuse = true;

  std::vector<Option> list() override {
    const std::vector<std::string> scales = {std::string(kOwn), std::string(kOne)};
    std::vector<std::string> variants = {std::string(kNoRequantization)};
    for (std::size_t i = 0; i < unit::kRequantizations; ++i)
      variants.emplace_back(unit::row_of(static_cast<unit::Requantization>(i)).name);
    return {
        {"add", "one: the operands of an addition share a scale", &add, 0, 0, scales},
        {"concat", "one: what is concatenated and the result share a scale", &concat, 0, 0, scales},
        {"fuse", "ReLU, Clip and a normalisation that alone read a result come before its rounding",
         &fuse},
        {"requantize", "codes of products from int32 sums and an int32 bias; none: through float32",
         &requantize, 0, 0, variants}};
  }
};

/// Codes of tensors have one scale.
const RolePolicy* role_of(const BoundRecipe& recipe, std::string_view layer) {
  const std::optional<RolePolicy>& role = recipe.layer(layer)[RolePart::activation];
  return role ? &*role : nullptr;
}

bool same_codes(const RolePolicy& a, const RolePolicy& b) {
  return a.format == b.format && a.block == b.block && a.rounding == b.rounding &&
         a.overflow == b.overflow && a.granularity == b.granularity && a.zero_point == b.zero_point;
}

/// The scale of the range that holds those of all scales.
TensorScale common_scale(const RolePolicy& policy, const std::vector<TensorScale>& scales) {
  if (!policy.zero_point) return *std::ranges::max_element(scales, {}, &TensorScale::scale);
  if (std::ranges::all_of(scales, [&](const TensorScale& s) { return s == scales.front(); }))
    return scales.front();
  ValueRange all;
  for (const TensorScale& scale : scales) {
    const ValueRange range = range_of(policy, scale);
    all = {std::min(all.low, range.low), std::max(all.high, range.high)};
  }
  return RoleQuantizer(policy).scale_of_range(all.low, all.high);
}

class StaticEdges final : public Policy, public SetsScales, public LeavesWeights {
 public:
  StaticEdges(Binding given, net::Numerics& inner)
      : Policy(std::move(given), inner),
        recipe_(binding().recipe),
        groups_(recipe_.graph(), [this](std::string_view layer) { return rules_of(layer); }) {
    const net::Graph& graph = recipe_.graph();
    std::vector<std::string> first(static_cast<std::size_t>(groups_.groups()));
    quantizers_.resize(first.size());
    // Ranges of a layer are those of what it reads, not of what it gives.
    const Recipe by_rules = ranges_of(recipe_.recipe()).empty()
                                ? recipe_.recipe()
                                : with_ranges(recipe_.recipe(), {}, recipe_.where());
    for (int v = 0; v < static_cast<int>(graph.value_count()); ++v) {
      const int group = groups_.group(v);
      if (group == EdgeGroups::kNone) continue;
      const std::string layer(graph.value_name(v));
      const RolePolicy role = by_rules.layer(layer)[RolePart::activation].value();
      require_static(layer, role);
      if (!quantizers_[group]) {
        quantizers_[group].emplace(role);
        first[group] = layer;
      } else if (!same_codes(quantizers_[group]->policy(), role) ||
                 quantizers_[group]->policy().scale != role.scale) {
        refuse(layer,
               fmt::format("roles.activation: expected that of {}, with which it shares a "
                           "scale, found {} and {}",
                           first[group], role.describe(), quantizers_[group]->policy().describe()));
      }
      if (groups_.rounds(v)) rounded_[layer] = group;
    }
    if (rounded_.empty())
      throw Error(fmt::format(
          "{}: static: expected a result with a role activation in the layers that choose it",
          binding().where));
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) bind_product(i);
    std::set<int> known;  // tensors
    for (const Read& read : reads_) {
      if (read.range) known.insert(groups_.tensor(read.value));
    }
    for (int v = 0; v < static_cast<int>(graph.value_count()); ++v) {
      if (groups_.group(v) != EdgeGroups::kNone && !known.contains(groups_.tensor(v)))
        calibrated_.insert(v);
    }
  }

  void give_roles(RoleNumerics& roles) override { roles_ = &roles; }

  RoundedResults rounded_results() const override {
    RoundedResults out;
    for (const auto& [layer, group] : rounded_)
      out.emplace(layer, RoundedResult{quantizers_[group]->policy(), scales_.at(group)});
    for (const auto& [layer, epilogue] : epilogues_)
      out.insert_or_assign(layer, RoundedResult{quantizers_[epilogue.group]->policy(),
                                                scales_.at(epilogue.group), true});
    return out;
  }

  void require_trainable(const std::string& where) const override {
    throw Error(where + ": edges: serves inference alone, expected null in training");
  }

  void freeze(const net::Graph& graph, const Calibration& calibration) override {
    std::vector<StaticScale> scales;
    for (const std::optional<RoleQuantizer>& quantizer : quantizers_)
      scales.emplace_back(recipe_->calibration(), quantizer->policy());
    const auto see = [&](int value, const net::Tensor& x) {
      if (calibrated_.contains(value)) scales[groups_.group(value)].see(x.data.data(), x.size());
    };
    std::map<const net::Node*, int> values;
    for (std::size_t i = 0; i < graph.nodes.size(); ++i)
      values[&graph.nodes[i]] = graph.value_of(i);
    const net::Observer observe = [&](const net::Node& node, const net::Tensor& x) {
      see(values.at(&node), x);
    };
    const auto pass = [&](std::int64_t, const std::vector<net::Tensor>& inputs) {
      for (std::size_t i = 0; i < inputs.size(); ++i) see(static_cast<int>(i), inputs[i]);
      net::Numerics float32;
      net::forward(graph, inputs, float32, {}, &observe);
    };
    if (!calibrated_.empty()) calibration.for_each(pass);
    std::vector<std::vector<TensorScale>> parts(scales.size());
    for (const Read& read : reads_) {
      if (read.range) parts[groups_.group(read.value)].push_back(*read.range);
    }
    std::set<int> seen;  // groups
    for (const int v : calibrated_) {
      const int group = groups_.group(v);
      if (seen.insert(group).second) parts[group].push_back(scales[group].scale());
    }
    scales_.clear();
    for (std::size_t g = 0; g < parts.size(); ++g)
      scales_.push_back(common_scale(quantizers_[g]->policy(), parts[g]));
    for (const Read& read : reads_) {
      const TensorScale scale = scales_[groups_.group(read.value)];
      read.second ? roles_->use_second_scale(read.layer, scale)
                  : roles_->use_scales(read.layer, RolePart::activation, {scale});
    }
    for (const auto& [layer, epilogue] : epilogues_)
      roles_->use_result_codes(layer, {epilogue.how, quantizers_[epilogue.group]->policy(),
                                       scales_[epilogue.group], epilogue.bias, epilogue.fused});
    frozen_ = true;
  }

  /// The bias of a product whose epilogue adds it.
  net::SharedTensor table(const net::Step& step, std::string_view layer,
                          const net::Tensor& parameter) override {
    static const net::SharedTensor nothing = std::make_shared<const net::Tensor>();
    const bool added = frozen_ && step.phase == net::Phase::inference && epilogues_.contains(layer);
    return added ? nothing : Forwarding::table(step, layer, parameter);
  }

  void edge(const net::Step& step, const net::Edge& edge, net::Tensor& x) override {
    const auto found = rounded_.find(edge.layer);
    if (frozen_ && !edge.backward && step.phase == net::Phase::inference && found != rounded_.end())
      round(*quantizers_[found->second], scales_[found->second], x);
    Forwarding::edge(step, edge, x);
  }

 private:
  /// A side of a product that reads codes as they are.
  struct Read {
    std::string layer;
    int value = 0;
    bool second = false;
    std::optional<TensorScale> range = {};  ///< the scale that `ranges` fix
  };
  struct BoundEpilogue {
    unit::Requantization how;
    int group = 0;
    const net::Tensor* bias = nullptr;
    bool fused = false;
  };

  [[noreturn]] void refuse(std::string_view layer, const std::string& why) const {
    throw Error(fmt::format("{}: layer {}: {}", binding().where, layer, why));
  }

  EdgeRules rules_of(std::string_view layer) const {
    const auto* const options = binding().of<EdgeOptions>(layer);
    if (options == nullptr) return {};
    return {.quantized = role_of(recipe_, layer) != nullptr,
            .fused = options->fuse,
            .add_one = options->add == kOne,
            .concat_one = options->concat == kOne};
  }

  void require_static(const std::string& layer, const RolePolicy& role) const {
    if (!has_static_scale(recipe_->calibration(), role) || role.history > 0)
      refuse(layer,
             fmt::format("roles.activation: expected one static scale (granularity 'tensor', a "
                         "calibrate.rule other than 'dynamic', no delayed scale), found {}",
                         role.describe()));
    if (role.rounding.stochastic())
      refuse(layer, "roles.activation.rounding: expected one without random bits, found " +
                        to_string(role.rounding));
  }

  /// What the product of a node reads, and what its epilogue gives.
  void bind_product(std::size_t i) {
    const net::Graph& graph = recipe_.graph();
    const net::Node& node = graph.nodes[i];
    const net::Op* const op = node.op.get();
    const bool two = dynamic_cast<const net::MatMul*>(op) != nullptr;
    const bool one = dynamic_cast<const net::Linear*>(op) != nullptr ||
                     dynamic_cast<const net::Conv*>(op) != nullptr;
    if (!two && !one) return refuse_epilogue(node);
    const LayerRecipe& roles = recipe_.layer(node.name);
    if (recipe_.chooses_for_inference("transform", node.name) &&
        binding().layers.contains(node.name))
      refuse(node.name, "transform: expected null: the codes of edges are not those of rotations");
    for (std::size_t side = 0; side < (two ? 2u : 1u); ++side) {
      const int group = groups_.group(node.inputs[side]);
      const net::Role role = side == 0 ? net::Role::activation : right_of(node.name);
      const std::optional<RolePolicy>& policy = roles.role(role, net::GemmKind::fprop);
      if (group == EdgeGroups::kNone || !policy ||
          !same_codes(*policy, quantizers_[group]->policy()))
        continue;
      reads_.push_back({node.name, node.inputs[side], side == 1, policy->fixed_scale()});
    }
    const auto* const options = binding().of<EdgeOptions>(node.name);
    if (options == nullptr || options->requantize == kNoRequantization) return;
    if (two) refuse_epilogue(node);
    bind_epilogue(i, unit::parse_requantization(options->requantize));
  }

  net::Role right_of(const std::string& layer) const {
    for (const BoundProduct& product : recipe_.products()) {
      if (product.gemm.name == layer) return product.gemm.right;
    }
    return net::Role::activation;
  }

  /// Of an operator that multiplies otherwise.
  void refuse_epilogue(const net::Node& node) const {
    const auto* const options = binding().of<EdgeOptions>(node.name);
    if (options == nullptr || options->requantize == kNoRequantization ||
        node.op->products().empty())
      return;
    refuse(
        node.name,
        fmt::format("edges.requantize: expected a linear layer or a convolution, not {}: give it "
                    "\"requantize\": \"none\" in an entry of layers",
                    node.op->kind()));
  }

  void bind_epilogue(std::size_t i, unit::Requantization how) {
    const net::Graph& graph = recipe_.graph();
    const net::Node& node = graph.nodes[i];
    const LayerRecipe& roles = recipe_.layer(node.name);
    const auto expect = [&](bool holds, const std::string& expected) {
      if (!holds) refuse(node.name, "edges.requantize: expected " + expected);
    };
    const int at = groups_.quantized_at(graph.value_of(i));
    expect(at != EdgeGroups::kNone, "a result that edges quantize");
    for (int v = graph.value_of(i); v != at;) {
      const auto reader = std::ranges::find_if(graph.nodes, [v](const net::Node& other) {
        return std::ranges::find(other.inputs, v) != other.inputs.end();
      });
      expect(bounds_result(*reader->op),
             fmt::format("no {} between product and codes ({}): fold it (--fold-batch-norm)",
                         reader->op->kind(), reader->name));
      v = graph.value_of(static_cast<std::size_t>(reader - graph.nodes.begin()));
    }
    const unit::Unit& unit = roles.unit(net::GemmKind::fprop);
    expect(unit::gives_int32(unit), "a unit with int32 results, not " + unit.row().name);
    const auto integers = [](const std::optional<RolePolicy>& role) {
      return role && role->block == nullptr && role->format->kind == Kind::integer &&
             role->format->bits <= 8;
    };
    const std::optional<RolePolicy>& weight = roles[RolePart::weight];
    expect(integers(weight) && (weight->granularity == Granularity::tensor ||
                                weight->granularity == Granularity::channel),
           "weights that are integers of at most 8 bits, with one scale or one per channel");
    const std::optional<RolePolicy>& activation = roles[RolePart::activation];
    expect(integers(activation) && has_static_scale(recipe_->calibration(), *activation),
           "activations that are integers of at most 8 bits with one static scale");
    const int group = groups_.group(at);
    expect(integers(quantizers_[group]->policy()), "codes that are integers of at most 8 bits");
    expect(!roles[RolePart::output], "no role output, which is that of float32 results");
    const std::span<const net::Parameter> parameters = std::as_const(*node.op).parameters();
    epilogues_[node.name] = {how, group, parameters.size() > 1 ? &parameters[1].value : nullptr,
                             at != graph.value_of(i)};
  }

  static void round(const RoleQuantizer& quantizer, const TensorScale& scale, net::Tensor& x) {
    thread_local QuantizedTensor codes;
    // An infinite mask is not a number to round.
    const std::vector<float> given(
        std::ranges::all_of(x.data, [](float value) { return std::isfinite(value); })
            ? std::vector<float>()
            : std::vector<float>(x.data.begin(), x.data.end()));
    if (quantizer.policy().zero_point) {
      quantize_affine(quantizer, x.data.data(), x.size(), scale, {}, codes);
    } else {
      quantize_tensor(quantizer, x.data.data(), x.size(), {scale.scale}, {}, codes);
    }
    codes.values(x.data.data());
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (!std::isfinite(given[i])) x.data[i] = given[i];
    }
  }

  const BoundRecipe& recipe_;
  EdgeGroups groups_;
  std::vector<std::optional<RoleQuantizer>> quantizers_;  ///< by group
  std::vector<TensorScale> scales_;                       ///< by group, after freeze()
  std::map<std::string, int, std::less<>> rounded_;       ///< groups by layer
  std::map<std::string, BoundEpilogue, std::less<>> epilogues_;
  std::vector<Read> reads_;
  std::set<int> calibrated_;  ///< values whose tensors no range is of
  RoleNumerics* roles_ = nullptr;
  bool frozen_ = false;
};

}  // namespace

extern const PolicyKind edges_static{
    .key = "edges",
    .name = "static",
    .summary =
        "tensors between operators are codes of static scales, rounded once behind what is "
        "fused with their operator",
    .source = "Jacob et al., CVPR 2018 (arXiv 1712.05877)",
    .options = make_options<EdgeOptions>,
    .bind = make_policy<StaticEdges>};

}  // namespace numemu::policies
