#include "experiments/predict/injected_noise.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "emu/net/gemm_layers.hpp"
#include "experiments/predict/block_noise.hpp"
#include "formats/digest.hpp"
#include "formats/scaling/quantize_columns.hpp"
#include "policies/calibrate/static_scale.hpp"
#include "policies/numerics/block_lines.hpp"
#include "policies/numerics/operand_scales.hpp"
#include "policies/numerics/quantized_tensor.hpp"
#include "policies/numerics/scale_groups.hpp"

namespace numemu::experiments {

std::vector<float> input_sizes(const net::Tensor& inputs, const net::Tensor& weight) {
  const std::int64_t k = weight.size() / weight.dim(0), channels = inputs.shape.back();
  std::vector<float> sizes(static_cast<std::size_t>(k), 1.0f);
  if (channels == 0 || inputs.size() == 0 || weight.shape.back() % channels != 0) return sizes;
  std::vector<double> squares(static_cast<std::size_t>(channels));
  const std::int64_t lines = inputs.size() / channels;
  const float* x = inputs.data.data();
  for (std::int64_t line = 0; line < lines; ++line, x += channels) {
    for (std::int64_t c = 0; c < channels; ++c) squares[c] += double{x[c]} * x[c];
  }
  for (std::int64_t i = 0; i < k; ++i)
    sizes[i] = static_cast<float>(std::sqrt(squares[i % channels] / static_cast<double>(lines)));
  return sizes;
}

ErrorParts error_parts(const float* x, const float* r, const float* e, std::int64_t n) {
  constexpr double kParallel = 1e-6;  // squared sine below which x and r have one direction
  double xx = 0, xr = 0, rr = 0, xe = 0, re = 0, ee = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const double a = x[i], b = r[i], c = e[i];
    xx += a * a;
    xr += a * b;
    rr += b * b;
    xe += a * c;
    re += b * c;
    ee += c * c;
  }
  ErrorParts parts;
  const double area = xx * rr - xr * xr;
  if (area > kParallel * xx * rr) {
    parts.along = (xe * rr - re * xr) / area;
    parts.common = (re * xx - xe * xr) / area;
  } else if (xx > 0) {
    parts.along = xe / xx;
  }
  parts.rest = std::max(0.0, ee - parts.along * xe - parts.common * re);
  return parts;
}

void add_error_parts(const float* x, const float* r, const ErrorParts& drawn,
                     const ErrorParts& wanted, double ratio, std::int64_t n, float* error) {
  const auto along = static_cast<float>(wanted.along - ratio * drawn.along);
  const auto common = static_cast<float>(wanted.common - ratio * drawn.common);
  const auto share = static_cast<float>(ratio);
  for (std::int64_t i = 0; i < n; ++i)
    error[i] = x[i] + (along * x[i] + common * r[i] + share * error[i]);
}

namespace {

/// Channels with fewer elements in a pass are matched together, as one tensor (of a weight: in
/// power only): the sums that a channel is matched by must be small beside what is drawn.
constexpr std::int64_t kChannelElements = 128;
/// Phases of operands that share none are drawn for so many elements at a time.
constexpr std::int64_t kElementsAtOnce = 1 << 16;
/// Of so many sampled results next to an output's one lends its error.
constexpr std::int64_t kNearResults = 4;
constexpr double kMostGrowth = 4;

/// The value whose elements a value has: operators that only show another shape are passed over.
/// Constants are views without inputs.
int origin(const net::Graph& graph, int value) {
  const int inputs = static_cast<int>(graph.inputs.size());
  while (value >= inputs) {
    const net::Node& node = graph.nodes[value - inputs];
    if (node.op->result() != net::ResultKind::view || node.inputs.empty()) break;
    value = node.inputs[0];
  }
  return value;
}

/// Scales of the elements of an operand without blocks, in its order.
void plain_scales(const InjectedRoles::Operand& operand, const net::Product& p,
                  const net::ProductSide& side, float* scales) {
  const std::int64_t n = side.source->size();
  if (operand.scale) {
    std::fill_n(scales, n, operand.scale->scale);
    return;
  }
  const std::int64_t samples =
      side.role == net::Role::weight ? 1 : policies::separable_samples(p, side);
  const policies::ScaleGroups groups =
      policies::scale_groups(operand.quantizer.policy(), operand.role, p, side, samples);
  thread_local std::vector<float> copy;
  const float* const x = policies::in_groups(groups, side, copy);
  const std::vector<float> chosen = policies::choose_scales(operand.quantizer, x, n, groups.count);
  const std::int64_t each = n / groups.count;
  std::vector<float> expanded(static_cast<std::size_t>(n));
  for (std::int64_t g = 0; g < groups.count; ++g)
    std::fill_n(expanded.data() + g * each, each, chosen[g]);
  policies::from_groups(groups, side, expanded);
  std::copy(expanded.begin(), expanded.end(), scales);
}

/// The factor of its block for every element.
void expand(const BlockLayout& layout, const std::vector<double>& factors, float* scales) {
  for (std::int64_t b = 0; b < layout.blocks; ++b) {
    const BlockElements block = layout.block(b);
    const auto factor = static_cast<float>(factors[b]);
    if (block.contiguous()) {
      std::fill_n(scales + block.first, block.size(), factor);
    } else {
      block.for_each([&](std::int64_t i) { scales[i] = factor; });
    }
  }
}

/// The same of one in blocks, which run along the lines that the product reduces.
void line_scales(const InjectedRoles::Operand& operand, const net::Product& p,
                 const net::ProductSide& side, float* scales) {
  const policies::RolePolicy& policy = operand.quantizer.policy();
  const bool in_order = policy.axis == policies::BlockAxis::reduction &&
                        side.role == net::Role::weight && policies::reads_in_order(p, side);
  const policies::Lines lines = in_order ? policies::Lines(side, p.k) : policies::Lines(p, side);
  const bool turned = lines.transposed && lines.across != 1;
  const float* x = side.source->data.data();
  thread_local std::vector<float> copy, factors;
  if (turned) {
    copy.resize(static_cast<std::size_t>(lines.elements()));
    factors.resize(copy.size());
    transpose(x, lines.outer, lines.length, lines.across, copy.data());
    x = copy.data();
  }
  float* const to = turned ? factors.data() : scales;
  const std::int64_t samples = policy.block->tensor_scale && side.role != net::Role::weight
                                   ? policies::separable_samples(p, side)
                                   : 1;
  const std::int64_t share = lines.lines / samples;
  const BlockLayout layout = block_layout(*policy.block, {share, lines.length}, 1);
  for (std::int64_t s = 0; s < samples; ++s)
    expand(layout, block_factors(policy, layout, x + s * share * lines.length),
           to + s * share * lines.length);
  if (turned) transpose(to, lines.outer, lines.across, lines.length, scales);
}

/// Gives the errors of `y`, which are drawn, the coherent part and the power that the rounding
/// itself has in every channel, and adds x: lines of one element per channel.
void match(const PhaseNoise& noise, const float* x, const float* scales, std::int64_t lines,
           std::int64_t channels, float* y) {
  ErrorSums drawn(channels), own(channels);
  drawn.add(x, y, lines);
  const std::int64_t at_once = std::max<std::int64_t>(1, 1024 / channels);
  thread_local std::vector<float> phases, errors;
  errors.resize(static_cast<std::size_t>(at_once * channels));
  phases.assign(errors.size(), noise.own_phase());
  for (std::int64_t line = 0; line < lines; line += at_once) {
    const std::int64_t first = line * channels, count = std::min(at_once, lines - line);
    noise.errors({.x = x + first,
                  .scale = scales + first,
                  .phase = phases.data(),
                  .second = nullptr,
                  .n = count * channels,
                  .error = errors.data()});
    own.add(x + first, errors.data(), count);
  }
  add_errors(x, drawn, own, lines, y);
}

/// The same of a weight of `outputs` lines, with a third sum for every output: errors times the
/// sizes of the inputs.
void match_weight(const InjectedRoles::Operand& operand, const float* x, const float* scales,
                  std::int64_t n, std::int64_t outputs, float* y) {
  const std::int64_t size = n / outputs;
  const float* const inputs = operand.input_sizes.data();
  const std::vector<float> phases(static_cast<std::size_t>(size), operand.noise.own_phase());
  std::vector<float> errors(phases.size());
  std::vector<ErrorParts> drawn(static_cast<std::size_t>(outputs)), own(drawn);
  double drawn_rest = 0, own_rest = 0;
  for (std::int64_t c = 0; c < outputs; ++c) {
    const std::int64_t first = c * size;
    operand.noise.errors({.x = x + first,
                          .scale = scales + first,
                          .phase = phases.data(),
                          .second = nullptr,
                          .n = size,
                          .error = errors.data()});
    drawn[c] = error_parts(x + first, inputs, y + first, size);
    own[c] = error_parts(x + first, inputs, errors.data(), size);
    drawn_rest += drawn[c].rest;
    own_rest += own[c].rest;
  }
  for (std::int64_t c = 0; c < outputs; ++c) {
    const bool alone = size >= kChannelElements;
    const double from = alone ? drawn[c].rest : drawn_rest, to = alone ? own[c].rest : own_rest;
    add_error_parts(x + c * size, inputs, drawn[c], own[c], from > 0 ? std::sqrt(to / from) : 1,
                    size, y + c * size);
  }
}

/// The codes nearest to disturbed numbers, as the numbers that a unit multiplies.
net::Tensor nearest_codes(const PhaseNoise& noise, const net::Tensor& y,
                          const std::vector<float>& scales) {
  net::Tensor codes(y.shape);
  const auto at_once = static_cast<std::size_t>(std::min(y.size(), kElementsAtOnce));
  const std::vector<float> phases(at_once, noise.own_phase()), ones(at_once, 1.0f);
  const std::vector<float> none(noise.stochastic() ? at_once : 0);
  std::vector<float> errors(at_once);
  for (std::int64_t at = 0; at < y.size(); at += kElementsAtOnce) {
    const std::int64_t count = std::min(kElementsAtOnce, y.size() - at);
    float* const to = codes.data.data() + at;
    for (std::int64_t i = 0; i < count; ++i)
      to[i] = scales[at + i] == 0 ? 0 : y.data[at + i] / scales[at + i];
    noise.errors({.x = to,
                  .scale = ones.data(),
                  .phase = phases.data(),
                  .second = none.data(),
                  .n = count,
                  .error = errors.data()});
    for (std::int64_t i = 0; i < count; ++i) to[i] += errors[i];
  }
  return codes;
}

}  // namespace

InjectedRoles::Operand::Operand(const policies::RolePolicy& policy, std::int32_t zero_point)
    : quantizer(policy),
      noise(policy.zero_point ? PhaseNoise(quantizer.conversion(), zero_point)
                              : PhaseNoise(quantizer.conversion())) {}

InjectedRoles::InjectedRoles(const policies::BoundRecipe& recipe,
                             const policies::FloatReference& reference,
                             const policies::StaticScales& static_scales)
    : seed_(recipe->seed()) {
  const net::Graph& graph = recipe.graph();
  const policies::CalibrationPolicy& calibration = recipe->calibration();
  for (const policies::BoundProduct& product : recipe.products()) {
    const net::GemmLayer& gemm = product.gemm;
    const policies::LayerRecipe& roles = product.roles;
    // From a layer with other roles on nothing is predicted (left_out.hpp).
    const auto followed = [](const std::optional<policies::RolePolicy>& policy) {
      return policy && (policy->block == nullptr || policy->block->affine == Affine::sym);
    };
    Layer& layer = layers_[gemm.name];
    const bool whole = gemm.name == gemm.node->name;
    const auto activation = [&](std::size_t input, const policies::RolePolicy& policy,
                                const policies::LayerTensors& recorded,
                                const policies::StaticScales& known) {
      std::optional<policies::TensorScale> scale;
      if (policies::has_static_scale(calibration, policy)) {
        const auto found = known.find(gemm.name);
        scale = found != known.end() ? found->second
                                     : policies::static_scale(calibration, policy, reference,
                                                              net::at_layer(recorded, gemm.name));
      }
      auto operand = std::make_unique<Operand>(policy, scale ? scale->zero_point : 0);
      operand->scale = scale;
      const int value = whole ? origin(graph, gemm.node->inputs.at(input)) : -1;
      operand->name = fmt::format("{}/activation",
                                  whole ? graph.value_name(value) : std::string_view(gemm.name));
      operand->input = whole && value < static_cast<int>(graph.inputs.size());
      return operand;
    };
    if (followed(roles[policies::RolePart::activation]))
      layer.left =
          activation(0, *roles[policies::RolePart::activation], reference.inputs, static_scales);
    if (gemm.weight == nullptr) {
      const auto& right = roles.role(gemm.right, net::GemmKind::fprop);
      if (followed(right)) {
        layer.right = activation(1, *right, reference.seconds, {});
        layer.right->role = gemm.right;
      }
    } else if (followed(roles[policies::RolePart::weight])) {
      layer.right = std::make_unique<Operand>(*roles[policies::RolePart::weight]);
      layer.right->role = net::Role::weight;
      layer.right->name = gemm.name + "/weight";
      layer.right->input_sizes =
          input_sizes(net::at_layer(reference.inputs, gemm.name), *gemm.weight);
    }
  }
  for (const net::Node& node : graph.nodes) {
    if (net::table_of(node) == nullptr) continue;
    const std::optional<policies::RolePolicy>& policy =
        recipe.layer(node.name)[policies::RolePart::embedding];
    if (!policy || (policy->block != nullptr && policy->block->affine != Affine::sym)) continue;
    Operand& operand = tables_.try_emplace(node.name, *policy).first->second;
    operand.role = net::Role::embedding;
    operand.name = node.name + "/embedding";
  }
}

const InjectedRoles::Layer& InjectedRoles::layer(std::string_view name) const {
  return net::at_layer(layers_, name);
}

const InjectedRoles::Operand* InjectedRoles::table(std::string_view node) const {
  const auto found = tables_.find(node);
  return found == tables_.end() ? nullptr : &found->second;
}

InjectedNoise::InjectedNoise(const InjectedRoles& roles, int probe, const UnitErrors* units)
    : roles_(roles), probe_(probe), units_(units) {}

void InjectedNoise::product(const net::Step& step, const net::Product& p) {
  const InjectedRoles::Layer& layer = roles_.layer(p.layer);
  net::Product changed = p;
  Disturbed left, right;
  if (layer.left != nullptr) {
    left = disturbed(*layer.left, p, p.a);
    changed.a.source = &left.values;
  }
  if (layer.right != nullptr) {
    right = disturbed(*layer.right, p, p.b);
    changed.b.source = &right.values;
  }
  net::Numerics::product(step, changed);
  if (units_ == nullptr || !units_->reads(p.layer)) return;
  if (!left.codes.empty()) changed.a.source = &left.codes;
  if (!right.codes.empty()) changed.b.source = &right.codes;
  const UnitErrors::Result result = units_->sample(changed, left.scales, right.scales, probe_);
  samples_[std::string(p.layer)].add(result.sample);
  add_unit_errors(p, result.errors);
}

void InjectedNoise::add_unit_errors(const net::Product& p, const std::vector<ResultError>& errors) {
  if (errors.empty()) return;
  const std::int64_t size = p.d_stack.count() * p.m * p.n, most = std::ssize(errors);
  const std::int64_t near = std::min(kNearResults, most);
  std::vector<float> phases(static_cast<std::size_t>(std::min(size, kElementsAtOnce)));
  const RandomSource draws = {.seed = roles_.seed(),
                              .stream = Stream::probe,
                              .tensor = tensor_word(fmt::format("{}/{}/unit/{}", p.layer, probe_,
                                                                calls_[std::string(p.layer)]++)),
                              .draw = 0};
  for (std::int64_t first = 0; first < size; first += kElementsAtOnce) {
    const std::int64_t count = std::min(kElementsAtOnce, size - first);
    fill_phases(draws, first, count, phases.data());
    for (std::int64_t i = 0; i < count; ++i) {
      const double y = p.d[first + i];
      const std::int64_t place =
          std::ranges::lower_bound(errors, y, {}, &ResultError::result) - errors.begin();
      const std::int64_t begin = std::clamp<std::int64_t>(place - near / 2, 0, most - near);
      const auto drawn = static_cast<std::int64_t>((phases[i] + 0.5f) * static_cast<float>(near));
      // Beyond the sample, errors grow with the results, as steps of registers do.
      const double end = y < errors.front().result  ? errors.front().result
                         : y > errors.back().result ? errors.back().result
                                                    : y;
      const double growth = end != 0 ? std::clamp(y / end, 1.0, kMostGrowth) : 1;
      const double error = errors[begin + std::min(drawn, near - 1)].error;
      p.d[first + i] += static_cast<float>(growth * error);
    }
  }
}

RandomSource InjectedNoise::source(const InjectedRoles::Operand& operand, const char* use) const {
  return {.seed = roles_.seed(),
          .stream = Stream::probe,
          .tensor = tensor_word(fmt::format("{}/{}/{}", operand.name, probe_, use)),
          .draw = 0};
}

net::SharedTensor InjectedNoise::table(const net::Step&, std::string_view node,
                                       const net::Tensor& parameter) {
  const InjectedRoles::Operand* const operand = roles_.table(node);
  if (operand == nullptr || parameter.empty()) return nullptr;
  const policies::RolePolicy& policy = operand->quantizer.policy();
  const std::int64_t n = parameter.size();
  const float* const x = parameter.data.data();
  std::vector<float> scales(parameter.data.size()), phases(scales.size()), second;
  if (operand->quantizer.blocks()) {
    const BlockLayout layout = block_layout(*policy.block, parameter.shape, -1);
    expand(layout, block_factors(policy, layout, x), scales.data());
  } else {
    const std::int64_t groups =
        policy.granularity == policies::Granularity::channel ? parameter.dim(0) : 1;
    const std::vector<float> chosen = policies::choose_scales(operand->quantizer, x, n, groups);
    for (std::int64_t g = 0; g < groups; ++g)
      std::fill_n(scales.data() + g * (n / groups), n / groups, chosen[g]);
  }
  fill_phases(source(*operand, "phase"), 0, n, phases.data());
  const PhaseNoise& noise = operand->noise;
  if (noise.stochastic()) {
    second.resize(phases.size());
    fill_phases(source(*operand, "second"), 0, n, second.data());
  }
  auto y = std::make_shared<net::Tensor>(parameter.shape);
  noise.errors({.x = x,
                .scale = scales.data(),
                .phase = phases.data(),
                .second = second.data(),
                .n = n,
                .error = y->data.data()});
  if (noise.stochastic()) {
    for (std::int64_t i = 0; i < n; ++i) y->data[i] += x[i];
  } else {
    match(noise, x, scales.data(), n, 1, y->data.data());
  }
  return y;
}

InjectedNoise::Disturbed InjectedNoise::disturbed(const InjectedRoles::Operand& operand,
                                                  const net::Product& p,
                                                  const net::ProductSide& side) const {
  const net::Tensor& x = *side.source;
  const PhaseNoise& noise = operand.noise;
  const std::int64_t n = x.size();
  Disturbed out{.values = net::Tensor(x.shape), .codes = {}, .scales = {}};
  net::Tensor& y = out.values;
  // Not kept between calls: a network's largest weight would stay in memory twice per thread.
  std::vector<float> scales(x.data.size()), phases, second;
  if (operand.quantizer.blocks()) {
    line_scales(operand, p, side, scales.data());
  } else {
    plain_scales(operand, p, side, scales.data());
  }
  const bool weight = side.role == net::Role::weight;
  if (n == 0 || x.shape.empty()) {
    y = x;
    return out;
  }
  // The lines of a sample share the phases of a line.
  const bool alone = weight || noise.stochastic();
  const std::int64_t samples = alone ? 1 : x.dim(0);
  const std::int64_t line = alone ? std::min(n, kElementsAtOnce) : x.shape.back();
  const std::int64_t each = n / samples;
  phases.resize(static_cast<std::size_t>(samples * line));
  if (operand.input && !alone) {
    thread_local std::vector<float> of_sample;
    of_sample.resize(static_cast<std::size_t>(samples));
    fill_phases(source(operand, "phase"), 0, samples, of_sample.data());
    for (std::int64_t s = 0; s < samples; ++s)
      std::fill_n(phases.data() + s * line, line, of_sample[s]);
  } else if (!alone) {
    fill_phases(source(operand, "phase"), 0, samples * line, phases.data());
  }
  if (noise.stochastic()) second.resize(phases.size());
  for (std::int64_t s = 0; s < samples; ++s) {
    for (std::int64_t at = s * each; at < (s + 1) * each; at += line) {
      const std::int64_t count = std::min(line, (s + 1) * each - at);
      if (alone) fill_phases(source(operand, "phase"), at, count, phases.data());
      if (noise.stochastic()) fill_phases(source(operand, "second"), at, count, second.data());
      noise.errors({.x = x.data.data() + at,
                    .scale = scales.data() + at,
                    .phase = phases.data() + s * line,
                    .second = second.data(),
                    .n = count,
                    .error = y.data.data() + at});
    }
  }
  const float* const from = x.data.data();
  float* const to = y.data.data();
  const std::int64_t channels = x.shape.back();
  if (noise.stochastic()) {  // whose errors are independent of the numbers
    for (std::int64_t i = 0; i < n; ++i) to[i] += from[i];
  } else if (weight) {
    match_weight(operand, from, scales.data(), n, x.dim(0), to);
  } else if (n / channels < kChannelElements) {
    match(noise, from, scales.data(), n, 1, to);
  } else {
    match(noise, from, scales.data(), n / channels, channels, to);
  }
  if (units_ == nullptr || !units_->reads(p.layer)) return out;
  out.codes = nearest_codes(noise, y, scales);
  if (operand.quantizer.blocks()) {
    for (std::int64_t i = 0; i < n; ++i) out.codes.data[i] *= scales[i];
  } else {
    out.scales = {std::move(scales),
                  operand.scale ? static_cast<double>(operand.scale->zero_point) : 0.0};
  }
  return out;
}

}  // namespace numemu::experiments
