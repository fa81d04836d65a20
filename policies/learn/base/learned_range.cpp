#include "policies/learn/base/learned_range.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "emu/net/ops/elementwise.hpp"
#include "emu/net/profile.hpp"
#include "emu/net/train/options.hpp"
#include "formats/codec.hpp"
#include "formats/error.hpp"
#include "formats/portable/pairwise.hpp"
#include "formats/quantize.hpp"
#include "policies/numerics/quantized_tensor.hpp"

namespace numemu::policies {
namespace {

constexpr double kMomentum = 0.9, kSquares = 0.999, kEpsilon = 1e-12;
constexpr double kMostChange = 0.5;    // of a step, in parts of the scale
constexpr float kLeast = 1.0f / 1024;  // of a scale, in parts of the first one
constexpr double kLargestRate = 1e6;

[[noreturn]] void refuse(const Binding& binding, std::string_view layer, const std::string& why) {
  throw Error(fmt::format("{}: layer {}: {}", binding.where, layer, why));
}

/// An operand with one scale for the tensor, or one for each channel of a weight.
std::optional<RolePolicy> learnable(const Binding& binding, const BoundProduct& product,
                                    RolePart part) {
  const std::optional<RolePolicy>& role = product.roles[part];
  if (!role || !has_fixable_scales(*role) || role->format->kind == Kind::sign ||
      role->format->kind == Kind::codebook)
    return std::nullopt;
  if (part == RolePart::activation && !has_static_scale(binding.recipe->calibration(), *role))
    return std::nullopt;
  return role;
}

void require_learnable(const Binding& binding, const BoundProduct& product, const RolePolicy& role,
                       RolePart part) {
  const std::string& layer = product.gemm.name;
  const char* const name = part == RolePart::weight ? "weight" : "activation";
  if (role.rounding.stochastic())
    refuse(binding, layer, fmt::format("roles.{}.rounding: expected rounding to nearest", name));
  if (role.overflow != Overflow::saturate)
    refuse(binding, layer, fmt::format("roles.{}.overflow: expected 'saturate'", name));
  if (role.straight_through != StraightThrough::identity)
    refuse(binding, layer,
           fmt::format("roles.{}.ste: expected 'identity': a learned range clips gradients itself",
                       name));
  if (product.roles.masks[part])
    refuse(binding, layer, fmt::format("roles.{}.mask: expected null", name));
  if (binding.recipe.chooses_for_inference("transform", layer))
    refuse(binding, layer, "transform: expected null");
}

/// By multiplication: the same bits everywhere.
double power(double base, std::int64_t exponent) {
  double result = 1;
  for (; exponent > 0; exponent /= 2, base *= base) {
    if (exponent % 2 != 0) result *= base;
  }
  return result;
}

std::string key_of(const std::string& layer, RolePart part) {
  return layer + (part == RolePart::weight ? "/weight" : "/activation");
}

}  // namespace

Option rate_option(LearnOptions& options) {
  return {"rate", "factor on the learning rate", &options.rate, 0, kLargestRate};
}

Option method_option(LearnOptions& options) {
  return {"method",
          "adam: in parts of the scale; sgd: with momentum 0.9, as published",
          &options.method,
          0,
          0,
          {"adam", "sgd"}};
}

LearnedRange::LearnedRange(Binding given, net::Numerics& inner, std::string prefix,
                           bool (*learns)(const LearnOptions&, RolePart))
    : Policy(std::move(given), inner), prefix_(std::move(prefix)) {
  for (const BoundProduct& product : binding().recipe.products()) {
    const std::string& name = product.gemm.name;
    if (!binding().layers.contains(name) || product.gemm.weight == nullptr) continue;
    Layer layer;
    for (auto [part, to] :
         {std::pair(RolePart::weight, &layer.weight), {RolePart::activation, &layer.activation}}) {
      if (!learns(options(name), part)) continue;
      const std::optional<RolePolicy> role = learnable(binding(), product, part);
      if (!role) continue;
      require_learnable(binding(), product, *role, part);
      to->emplace(Operand{.quantizer = RoleQuantizer(*role), .part = part});
    }
    if (layer.weight || layer.activation) layers_.emplace(name, std::move(layer));
  }
  if (layers_.empty()) {
    throw Error(fmt::format(
        "{}: expected an operand with one static scale, or one per channel of a weight: not "
        "blocks, rows, scale 'none', delayed scales or the calibration rule 'dynamic'",
        binding().where));
  }
}

template <class Visit>
void LearnedRange::for_each_operand(const Visit& visit) {
  for (auto& [name, layer] : layers_) {
    for (std::optional<Operand>* operand : {&layer.weight, &layer.activation})
      if (*operand) visit(name, **operand);
  }
}

const LearnOptions& LearnedRange::options(std::string_view layer) const {
  return *binding().of<LearnOptions>(layer);
}

LevelRange LearnedRange::levels_of(const Operand& operand) const {
  const RolePolicy& policy = operand.quantizer.policy();
  if (policy.zero_point) {
    const float* const values = decode_table(*policy.format);
    const auto [low, high] =
        std::minmax_element(values, values + (std::size_t{1} << policy.format->bits));
    return {double{*low} - operand.zero_point, double{*high} - operand.zero_point};
  }
  const double high = largest_element(operand.quantizer.conversion());
  return {policy.format->is_signed ? -high : 0, high};
}

void LearnedRange::use(const std::string& layer, const Operand& operand) const {
  if (!use_) return;
  FixedScales scales;
  if (operand.quantizer.policy().zero_point) {
    scales.push_back({operand.scales[0], operand.zero_point});
  } else {
    for (const float scale : operand.scales) scales.push_back({scale});
  }
  use_(layer, operand.part, std::move(scales));
}

void LearnedRange::begin(const std::string& layer, Operand& operand, const net::Tensor& x) {
  if (!operand.scales.empty()) return;
  const RoleQuantizer& quantizer = operand.quantizer;
  const bool channels = quantizer.policy().granularity == Granularity::channel;
  if (quantizer.policy().zero_point) {
    const TensorScale scale = quantizer.scale_of_elements(x.data.data(), x.size());
    operand.scales = {scale.scale};
    operand.zero_point = scale.zero_point;
  } else {
    operand.scales = choose_scales(quantizer, x.data.data(), x.size(), channels ? x.dim(0) : 1);
  }
  operand.first = operand.scales;
  operand.gradient.assign(operand.scales.size(), 0);
  operand.momentum.assign(operand.scales.size(), 0);
  operand.square.assign(operand.scales.size(), 0);
  use(layer, operand);
}

void LearnedRange::begin_step(const net::Step& step) {
  Forwarding::begin_step(step);
  if (step.phase == net::Phase::inference) return;
  for (auto& [name, layer] : layers_) layer.waiting.clear();
  for_each_operand([](const std::string&, Operand& operand) {
    operand.gradient.assign(operand.scales.size(), 0);
  });
  accepted_ = true;
  parts_ = 0;
}

net::Participation LearnedRange::participation(const net::Step& step, std::int64_t worker,
                                               std::int64_t micro_batches) {
  parts_ += micro_batches;
  return Forwarding::participation(step, worker, micro_batches);
}

float LearnedRange::loss_scale(const net::Step& step) {
  loss_scale_ = Forwarding::loss_scale(step);
  return loss_scale_;
}

bool LearnedRange::accept_gradients(const net::Step& step) {
  accepted_ = Forwarding::accept_gradients(step);
  return accepted_;
}

LearnedRange::Slopes LearnedRange::slopes_of(const Operand& operand, const float* x, std::int64_t n,
                                             float scale) const {
  QuantizedTensor codes;
  if (operand.quantizer.policy().zero_point) {
    quantize_affine(operand.quantizer, x, n, {scale, operand.zero_point}, {}, codes);
  } else {
    quantize_tensor(operand.quantizer, x, n, {scale}, {}, codes);
  }
  codes.scales = {1};
  Slopes slopes{std::vector<float>(static_cast<std::size_t>(n)),
                std::vector<std::uint8_t>(static_cast<std::size_t>(n))};
  codes.values(slopes.of.data());
  const LevelRange range = levels_of(operand);
  net::for_each_element(n, [&](std::int64_t i) {
    const double value = double{x[i]} / double{scale};
    slopes.of[i] = static_cast<float>(slope(value, double{slopes.of[i]}, range));
    slopes.passes[i] = value >= range.low && value <= range.high;
  });
  return slopes;
}

void LearnedRange::product(const net::Step& step, const net::Product& product) {
  const auto found = layers_.find(product.layer);
  if (found == layers_.end() || step.phase == net::Phase::inference)
    return Forwarding::product(step, product);
  Layer& layer = found->second;
  if (product.kind == net::GemmKind::fprop) {
    const net::Section section(net::SectionKind::quantize, product.layer, "learn");
    for (const net::ProductSide* side : {&product.a, &product.b}) {
      std::optional<Operand>& operand =
          side->role == net::Role::weight ? layer.weight : layer.activation;
      if (operand) begin(found->first, *operand, *side->source);
    }
    if (layer.activation) {
      const net::Tensor& x = *product.a.source;
      layer.activation->elements = x.size() / std::max<std::int64_t>(1, x.dim(0));
      layer.waiting[step.part].push_back(
          slopes_of(*layer.activation, x.data.data(), x.size(), layer.activation->scales[0]));
    }
  }
  Forwarding::product(step, product);
  if (product.kind == net::GemmKind::dgrad && layer.activation) take_gradient(layer, step, product);
}

void LearnedRange::take_gradient(Layer& layer, const net::Step& step, const net::Product& p) {
  const std::int64_t n = p.d_stack.count() * p.m * p.n;
  // Backward meets the products of a part in the opposite order.
  std::vector<Slopes>& waiting = layer.waiting[step.part];
  if (waiting.empty() || std::ssize(waiting.back().of) != n)
    throw Error(
        fmt::format("layer {}: learn: a gradient of {} elements for another operand", p.layer, n));
  const Slopes& slopes = waiting.back();
  float* const d = p.d;
  layer.activation->gradient[0] +=
      pairwise_sum(n, [&](std::int64_t i) { return double{d[i]} * double{slopes.of[i]}; }) /
      (double{loss_scale_} * static_cast<double>(std::max<std::int64_t>(1, parts_)));
  net::for_each_element(n, [&](std::int64_t i) { d[i] = slopes.passes[i] != 0 ? d[i] : 0.0f; });
  waiting.pop_back();
}

double LearnedRange::penalty(const net::Step& step, std::string_view parameter,
                             const net::Tensor& value, net::Tensor& gradient) {
  const double loss = Forwarding::penalty(step, parameter, value, gradient);
  for (const BoundProduct& product : binding().recipe.products()) {
    const auto found = layers_.find(product.gemm.name);
    if (product.gemm.weight != &value || found == layers_.end() || !found->second.weight) continue;
    Operand& weight = *found->second.weight;
    const auto groups = static_cast<std::int64_t>(weight.scales.size());
    if (groups == 0) continue;  // no product read it
    const std::int64_t size = value.size() / groups;
    weight.elements = size;
    for (std::int64_t g = 0; g < groups; ++g) {
      const Slopes slopes = slopes_of(weight, value.data.data() + g * size, size, weight.scales[g]);
      float* const d = gradient.data.data() + g * size;
      weight.gradient[g] =
          pairwise_sum(size, [&](std::int64_t i) { return double{d[i]} * double{slopes.of[i]}; });
      for (std::int64_t i = 0; i < size; ++i) d[i] = slopes.passes[i] != 0 ? d[i] : 0.0f;
    }
    break;
  }
  return loss;
}

void LearnedRange::move(const std::string& layer, Operand& operand) {
  const LearnOptions& how = options(layer);
  const LevelRange range = levels_of(operand);
  const double unit_of = unit(range), rate = rate_ * how.rate;
  ++operand.steps;
  const double first_power = power(kMomentum, operand.steps),
               second_power = power(kSquares, operand.steps);
  for (std::size_t i = 0; i < operand.scales.size(); ++i) {
    const double p = double{operand.scales[i]} * unit_of;
    const double gradient =
        operand.gradient[i] / unit_of * gradient_factor(operand.elements, range) + decay(how) * p;
    if (!std::isfinite(gradient)) continue;
    double change = 0;
    if (how.method == "sgd") {
      operand.momentum[i] = static_cast<float>(kMomentum * double{operand.momentum[i]} + gradient);
      change = -rate * double{operand.momentum[i]};
    } else {
      // Of the logarithm of p, whose gradient is p times that of p.
      const double g = gradient * p;
      operand.momentum[i] =
          static_cast<float>(kMomentum * double{operand.momentum[i]} + (1 - kMomentum) * g);
      operand.square[i] =
          static_cast<float>(kSquares * double{operand.square[i]} + (1 - kSquares) * g * g);
      const double m = double{operand.momentum[i]} / (1 - first_power);
      const double v = double{operand.square[i]} / (1 - second_power);
      change = p * std::clamp(-rate * m / (std::sqrt(v) + kEpsilon), -kMostChange, kMostChange);
    }
    operand.scales[i] =
        std::max(static_cast<float>((p + change) / unit_of), operand.first[i] * kLeast);
  }
  use(layer, operand);
}

void LearnedRange::end_step(const net::Step& step) {
  if (step.phase == net::Phase::training && accepted_) {
    for_each_operand([&](const std::string& layer, Operand& operand) {
      if (!operand.scales.empty() &&
          std::ranges::any_of(operand.gradient, [](double g) { return g != 0; }))
        move(layer, operand);
    });
  }
  Forwarding::end_step(step);
}

void LearnedRange::require_options(const std::string& where,
                                   const net::TrainOptions& options) const {
  if (options.local_steps > 0)
    throw Error(
        fmt::format("{}: learn: expected no local steps: workers with weights of their own share "
                    "the scales",
                    where));
}

void LearnedRange::end_epoch(const net::Epoch& epoch) {
  // As `patience` chooses the weights.
  if (!best_loss_ || epoch.validation_loss < *best_loss_) {
    best_loss_ = epoch.validation_loss;
    for_each_operand([](const std::string&, Operand& operand) { operand.best = operand.scales; });
  }
  Forwarding::end_epoch(epoch);
}

FixedRanges LearnedRange::learned(bool best) const {
  FixedRanges ranges;
  for (const auto& [name, layer] : layers_) {
    LayerRanges of;
    const auto scales = [best](const Operand& operand) -> const std::vector<float>& {
      return best && !operand.best.empty() ? operand.best : operand.scales;
    };
    if (layer.weight) {
      for (const float scale : scales(*layer.weight))
        of.weight.push_back(range_of(layer.weight->quantizer.policy(), {scale}));
    }
    if (layer.activation && !layer.activation->scales.empty())
      of.activation = range_of(layer.activation->quantizer.policy(),
                               {scales(*layer.activation)[0], layer.activation->zero_point});
    if (!of.empty()) ranges[name] = std::move(of);
  }
  return ranges;
}

namespace {

constexpr std::string_view kBestLoss = "best loss";

/// A float64 number as a sum of float32 ones, exactly.
std::vector<float> as_floats(double x) {
  std::vector<float> parts;
  for (int i = 0; i < 3; ++i) {
    parts.push_back(static_cast<float>(x));
    x -= double{parts.back()};
  }
  return parts;
}

}  // namespace

void LearnedRange::save_state(net::NamedState& state) const {
  StateTensors tensors;
  for (const auto& [name, layer] : layers_) {
    for (const std::optional<Operand>* operand : {&layer.weight, &layer.activation}) {
      if (!*operand || (*operand)->scales.empty()) continue;
      const Operand& of = **operand;
      const std::string key = key_of(name, of.part);
      tensors[key + "/scales"] = of.scales;
      tensors[key + "/first"] = of.first;
      tensors[key + "/momentum"] = of.momentum;
      tensors[key + "/square"] = of.square;
      if (!of.best.empty()) tensors[key + "/best"] = of.best;
      tensors[key + "/counts"] = {static_cast<float>(of.zero_point), static_cast<float>(of.steps)};
    }
  }
  if (best_loss_) tensors[std::string(kBestLoss)] = as_floats(*best_loss_);
  save_tensors(prefix_, tensors, state);
  Forwarding::save_state(state);
}

void LearnedRange::load_state(const net::NamedState& state) {
  StateTensors tensors;
  load_tensors(prefix_, state, tensors);
  if (const auto found = tensors.find(std::string(kBestLoss)); found != tensors.end()) {
    best_loss_ = 0;
    for (const float part : found->second) *best_loss_ += double{part};
  }
  for_each_operand([&](const std::string& name, Operand& operand) {
    const std::string key = key_of(name, operand.part);
    if (!tensors.contains(key + "/scales")) return;
    operand.scales = tensors.at(key + "/scales");
    const std::size_t size = operand.scales.size();
    const auto take = [&](const char* what, std::size_t expected) {
      const auto found = tensors.find(key + what);
      if (found == tensors.end() || found->second.size() != expected)
        throw Error(fmt::format("state {}/{}{}: expected {} float32 numbers", prefix_, key, what,
                                expected));
      return found->second;
    };
    if (tensors.contains(key + "/best")) operand.best = take("/best", size);
    operand.first = take("/first", size);
    operand.momentum = take("/momentum", size);
    operand.square = take("/square", size);
    const std::vector<float> counts = take("/counts", 2);
    operand.zero_point = static_cast<std::int32_t>(counts[0]);
    operand.steps = static_cast<std::int64_t>(counts[1]);
    operand.gradient.assign(size, 0);
    use(name, operand);
  });
  Forwarding::load_state(state);
}

}  // namespace numemu::policies
