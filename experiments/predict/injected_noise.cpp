#include "experiments/predict/injected_noise.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "emu/net/product.hpp"
#include "experiments/predict/atoms.hpp"
#include "experiments/predict/element_scales.hpp"
#include "formats/digest.hpp"
#include "policies/numerics/operands/block_lines.hpp"
#include "policies/numerics/operands/operand_scales.hpp"

namespace numemu::experiments {

namespace {

/// Channels with fewer elements in a pass are matched together, as one tensor (of a weight: in
/// power only): the sums that a channel is matched by must be small beside what is drawn.
constexpr std::int64_t kChannelElements = 128;
/// Noise is drawn again of numbers that were rounded before under the same phases: then there is
/// next to none, a smaller share of what rounding makes than drawing alone explains.
constexpr double kOnGrid = 0.5;
/// Phases of operands that share none are drawn for so many elements at a time.
constexpr std::int64_t kElementsAtOnce = 1 << 16;
/// Of so many sampled results next to an output's one lends its error.
constexpr std::int64_t kNearResults = 4;
constexpr double kMostGrowth = 4;

/// Numbers, and as they are rounded: less the minima of their blocks.
struct Rounded {
  const float* x;
  const float* coded;
  const float* scales;
};

/// Gives the errors of `y`, which are drawn, the coherent part and the power that the rounding
/// itself has in every channel, and adds x: lines of one element per channel. Atoms get the errors
/// of the rounding itself.
void match(const PhaseNoise& noise, bool stores, const Rounded& of, std::int64_t lines,
           std::int64_t channels, float* y) {
  const std::int64_t n = lines * channels;
  const auto own_errors = [&](std::int64_t first, std::int64_t count, float* errors) {
    thread_local std::vector<float> phases;
    phases.assign(static_cast<std::size_t>(count), noise.own_phase());
    noise.errors({.x = of.coded + first,
                  .scale = of.scales + first,
                  .phase = phases.data(),
                  .second = nullptr,
                  .n = count,
                  .error = errors});
  };
  std::vector<float> others,
      rounded;  // where there are atoms: 0 in place of them; they with errors
  const Atoms atoms(of.x, lines, channels);
  if (!atoms.none()) {
    others.assign(of.x, of.x + n);
    rounded.resize(others.size());
    own_errors(0, n, rounded.data());
    for (std::int64_t i = 0; i < n; ++i) {
      const bool is_atom = atoms.has(i % channels, of.x[i]);
      rounded[i] = is_atom ? of.x[i] + rounded[i] : NAN;
      if (is_atom) others[i] = y[i] = 0;
    }
  }
  const auto is_atom = [&](std::int64_t i) { return !rounded.empty() && !std::isnan(rounded[i]); };
  const float* const x = others.empty() ? of.x : others.data();
  ErrorSums drawn(channels), own(channels);
  drawn.add(x, y, lines);
  const std::int64_t at_once = std::max<std::int64_t>(1, 1024 / channels);
  thread_local std::vector<float> errors;
  errors.resize(static_cast<std::size_t>(at_once * channels));
  for (std::int64_t line = 0; line < lines; line += at_once) {
    const std::int64_t first = line * channels, count = std::min(at_once, lines - line);
    own_errors(first, count * channels, errors.data());
    for (std::int64_t i = 0; !rounded.empty() && i < count * channels; ++i)
      if (is_atom(first + i)) errors[i] = 0;
    own.add(x + first, errors.data(), count);
  }
  double drawn_power = 0, own_power = 0;
  for (std::int64_t c = 0; c < channels; ++c) {
    drawn_power += drawn.residual(c);
    own_power += own.residual(c);
  }
  if (stores && drawn_power < kOnGrid * own_power) {  // the numbers lie on the grid of their phases
    std::copy_n(x, n, y);
  } else {
    add_errors(x, drawn, own, lines, y);
  }
  for (std::int64_t i = 0; i < std::ssize(rounded); ++i)
    if (is_atom(i)) y[i] = rounded[i];
}

/// The same of a weight of `outputs` lines, with a third sum for every output: errors times the
/// sizes of the inputs.
void match_weight(const InjectedRoles::Operand& operand, bool of_graph, const Rounded& of,
                  std::int64_t n, std::int64_t outputs, float* y) {
  const float* const x = of.x;
  const std::int64_t size = n / outputs;
  const float* const inputs = operand.input_sizes.data();
  const auto own_parts = [&] {
    const std::vector<float> phases(static_cast<std::size_t>(size), operand.noise.own_phase());
    std::vector<float> errors(phases.size());
    std::vector<ErrorParts> parts;
    for (std::int64_t first = 0; first < n; first += size) {
      operand.noise.errors({.x = of.coded + first,
                            .scale = of.scales + first,
                            .phase = phases.data(),
                            .second = nullptr,
                            .n = size,
                            .error = errors.data()});
      parts.push_back(error_parts(x + first, inputs, errors.data(), size));
    }
    return parts;
  };
  std::vector<ErrorParts> drawn(static_cast<std::size_t>(outputs)), changed;
  if (of_graph) {
    std::call_once(operand.own_once, [&] { operand.own = own_parts(); });
  } else {
    changed = own_parts();
  }
  const std::vector<ErrorParts>& own = of_graph ? operand.own : changed;
  double drawn_rest = 0, own_rest = 0;
  for (std::int64_t c = 0; c < outputs; ++c) {
    drawn[c] = error_parts(x + c * size, inputs, y + c * size, size);
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

/// The matrices that a product reads of one side, one after the other.
struct Columns {
  Columns() = default;
  Columns(const net::ProductSide& side, std::int64_t rows) {
    const auto depth = static_cast<std::int64_t>(side.gather->depth.size());
    const std::int64_t all = side.stack.count() * rows, samples = side.source->dim(0);
    values = all % samples == 0 ? net::Tensor({samples, all / samples, depth})
                                : net::Tensor({all, depth});
    gather = unit::Gather::matrix(rows, depth);
    net::StackReader read(side);
    std::vector<float> padded;
    float* to = values.data.data();
    for (std::int64_t b = 0; b < side.stack.count(); ++b) {
      const auto* from = reinterpret_cast<const float*>(read.at(b));
      if (!side.gather->padding.identity()) {
        padded.resize(static_cast<std::size_t>(side.gather->padding.padded_size()));
        unit::pad(side.gather->padding, from, padded.data(), 0.0f);
        from = padded.data();
      }
      for (std::int64_t i = 0; i < rows; ++i) {
        for (const std::int32_t k : side.gather->depth)
          *to++ = from[side.gather->row[static_cast<std::size_t>(i)] + k];
      }
    }
  }
  /// The side that reads them in order.
  net::ProductSide side(const net::ProductSide& of) const {
    net::ProductSide out = of;
    out.source = &values;
    out.gather = &gather;
    out.stack = {.outer = of.stack.count(), .inner = 1, .width = values.shape.back()};
    return out;
  }

  net::Tensor values;
  unit::Gather gather;
};

/// Whether an element has several codes: one in every line of blocks that reads it.
bool has_columns(const InjectedRoles::Operand& operand, const net::Product& p, net::Side which) {
  const policies::RolePolicy& policy = operand.quantizer.policy();
  if (operand.slices) return !policies::reads_whole_lines(p, p.side(which));
  return policy.block != nullptr && policy.axis == policies::BlockAxis::reduction &&
         !policies::reads_in_order(p, which);
}

/// How many of some results, in ascending order, are less than a number: even bins between the
/// least and the largest leave few to compare.
class Places {
 public:
  explicit Places(const std::vector<ResultError>& errors) : low_(errors.front().result) {
    results_.reserve(errors.size());
    for (const ResultError& error : errors) results_.push_back(error.result);
    const double reach = results_.back() - low_;
    per_unit_ = reach > 0 && std::isfinite(reach) ? kBins / reach : 0;
    const auto count = static_cast<std::int32_t>(results_.size());
    std::int32_t at = 0;
    for (std::int64_t bin = 0; bin <= kBins; ++bin) {
      while (at < count && bin_of(results_[static_cast<std::size_t>(at)]) < bin) ++at;
      first_[bin] = at;
    }
    first_[kBins + 1] = count;
  }

  std::int64_t of(double y) const {
    const std::int64_t bin = bin_of(y);
    const double* const results = results_.data();
    const double* const begin = results + first_[bin];
    const double* const end = results + first_[bin + 1];
    if (end - begin > kFew) return std::lower_bound(begin, end, y) - results;
    const double* at = begin;
    while (at < end && *at < y) ++at;
    return at - results;
  }

 private:
  static constexpr std::int64_t kBins = 4096;
  static constexpr std::int64_t kFew = 8;  ///< results of a bin that are compared one by one
  /// Results that compare alike with the ends of bins: monotonous. NaN is in the first.
  std::int64_t bin_of(double y) const {
    const double bin = (y - low_) * per_unit_;
    return !(bin > 0) ? 0 : bin >= kBins ? kBins : static_cast<std::int64_t>(bin);
  }

  std::vector<double> results_;
  double low_, per_unit_ = 0;
  std::array<std::int32_t, kBins + 2> first_{};
};

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

InjectedNoise::InjectedNoise(const InjectedRoles& roles, int probe, const UnitErrors* units,
                             const KnownErrors* known)
    : roles_(roles), probe_(probe), units_(units), known_(known) {}

bool InjectedNoise::samples_units(std::string_view layer) const {
  return units_ != nullptr && known_ == nullptr && units_->reads(layer);
}

void InjectedNoise::product(const net::Step& step, const net::Product& p) {
  const InjectedRoles::Layer& layer = roles_.layer(p.layer);
  net::Product changed = p;
  Columns columns;
  Disturbed left, right;
  if (layer.left != nullptr) {
    if (has_columns(*layer.left, p, net::Side::a)) {
      columns = Columns(p.a, p.m);
      changed.a = columns.side(p.a);
    }
    left = disturbed(*layer.left, changed, net::Side::a);
    changed.a.source = &left.values;
  }
  if (layer.right != nullptr) {
    right = disturbed(*layer.right, p, net::Side::b);
    changed.b.source = &right.values;
  }
  net::Numerics::product(step, changed);
  if (known_ != nullptr) {
    if (const auto found = known_->find(p.layer); found != known_->end())
      add_unit_errors(p, found->second);
  } else if (samples_units(p.layer)) {
    if (!left.codes.empty()) changed.a.source = &left.codes;
    if (!right.codes.empty()) changed.b.source = &right.codes;
    const UnitErrors::Result result = units_->sample(changed, left.scales, right.scales, probe_);
    samples_[std::string(p.layer)].add(result.sample);
    add_unit_errors(p, result.errors);
    KnownErrors::mapped_type& all = errors_[std::string(p.layer)];
    all.insert(all.end(), result.errors.begin(), result.errors.end());
  }
  if (layer.output == nullptr) return;
  const net::Shape shape = {p.d_stack.outer * p.m, p.d_stack.inner * p.n};
  disturb_stored(*layer.output, shape, samples_of(*layer.output, p, net::Side::a), p.d);
}

void InjectedNoise::add_unit_errors(const net::Product& p, const std::vector<ResultError>& errors) {
  if (errors.empty()) return;
  const std::int64_t size = p.d_stack.count() * p.m * p.n, most = std::ssize(errors);
  const std::int64_t near = std::min(kNearResults, most);
  const Places places(errors);
  const double least = errors.front().result, largest = errors.back().result;
  const std::int64_t columns = p.d_stack.inner * p.n;
  const Atoms atoms(p.d, p.d_stack.outer * p.m, columns);
  // The same in all calls of a draw.
  const RandomSource draws_of_atoms = {
      .seed = roles_.seed(),
      .stream = Stream::probe,
      .tensor = tensor_word(fmt::format("{}/{}/atoms", p.layer, probe_)),
      .draw = 0};
  const auto of_atom = [&](std::int64_t column, float result) {
    const auto place =
        static_cast<std::uint64_t>(column) << 32 | std::bit_cast<std::uint32_t>(result);
    return static_cast<std::int64_t>(draws_of_atoms.bits(place, 16)) * near >> 16;
  };
  std::vector<float> phases(static_cast<std::size_t>(std::min(size, kElementsAtOnce)));
  const RandomSource draws = {.seed = roles_.seed(),
                              .stream = Stream::probe,
                              .tensor = tensor_word(fmt::format("{}/{}/unit/{}", p.layer, probe_,
                                                                calls_[std::string(p.layer)]++)),
                              .draw = 0};
  for (std::int64_t first = 0; first < size; first += kElementsAtOnce) {
    const std::int64_t count = std::min(kElementsAtOnce, size - first);
    fill_phases(draws, first, count, phases.data());
    float* const results = p.d + first;
    for (std::int64_t i = 0; i < count; ++i) {
      const double y = results[i];
      const std::int64_t place = places.of(y);
      const std::int64_t begin = std::clamp<std::int64_t>(place - near / 2, 0, most - near);
      auto drawn = static_cast<std::int64_t>((phases[i] + 0.5f) * static_cast<float>(near));
      // Sums that are one number have one error, in every pixel and sample.
      if (const std::int64_t column = (first + i) % columns;
          !atoms.none() && atoms.has(column, results[i]))
        drawn = of_atom(column, results[i]);
      double error = errors[begin + std::min(drawn, near - 1)].error;
      if (y < least || y > largest) {
        // Beyond the sample, errors grow with the results, as steps of registers do.
        const double end = y < least ? least : largest;
        if (end != 0) error *= std::clamp(y / end, 1.0, kMostGrowth);
      }
      results[i] += static_cast<float>(error);
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
  const std::int64_t n = parameter.size();
  const float* const x = parameter.data.data();
  const std::vector<float> scales = table_scales(*operand, parameter);
  std::vector<float> phases(scales.size()), second;
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
    match(noise, roles_.stores(), {x, x, scales.data()}, n, 1, y->data.data());
  }
  return y;
}

InjectedNoise::Disturbed InjectedNoise::disturbed(const InjectedRoles::Operand& operand,
                                                  const net::Product& p, net::Side which) const {
  const net::ProductSide& side = p.side(which);
  const net::Tensor& x = *side.source;
  Disturbed out{.values = {}, .codes = {}, .scales = {}};
  if (x.size() == 0 || x.shape.empty()) {
    out.values = x;
    return out;
  }
  // Not kept between calls: a network's largest weight would stay in memory twice per thread.
  auto [scales, shifts] = operand_scales(operand, p, which);
  out.values = drawn(operand, x, scales, shifts, side.role == net::Role::weight);
  if (!samples_units(p.layer)) return out;
  if (!shifts.empty()) {  // the nearest codes are float32 numbers
    out.codes = out.values;
    return out;
  }
  out.codes = nearest_codes(operand.noise, out.values, scales);
  if (operand.quantizer.blocks()) {
    for (std::size_t i = 0; i < scales.size(); ++i) out.codes.data[i] *= scales[i];
  } else {
    out.scales = {std::move(scales),
                  operand.scale ? static_cast<double>(operand.scale->zero_point) : 0.0};
  }
  return out;
}

net::Tensor InjectedNoise::drawn(const InjectedRoles::Operand& operand, const net::Tensor& x,
                                 const std::vector<float>& scales, const std::vector<float>& shifts,
                                 bool weight) const {
  const PhaseNoise& noise = operand.noise;
  const std::int64_t n = x.size();
  net::Tensor y(x.shape);
  std::vector<float> phases, second, coded(shifts.size());
  for (std::size_t i = 0; i < coded.size(); ++i) coded[i] = x.data[i] - shifts[i];
  const float* const rounded = coded.empty() ? x.data.data() : coded.data();
  // The lines of a sample share the phases of a line.
  const bool alone = weight || noise.stochastic();
  const std::int64_t samples = alone ? 1 : x.dim(0);
  const std::int64_t width = x.shape.back();
  const bool flat = operand.channels > 0 && width % operand.channels == 0;
  const std::int64_t line = alone ? std::min(n, kElementsAtOnce) : flat ? operand.channels : width;
  const std::int64_t each = n / samples;
  const std::int64_t sharing = known_ != nullptr ? samples : 1;  // one phase
  phases.resize(static_cast<std::size_t>(samples / sharing * line));
  if (operand.input && !alone) {
    thread_local std::vector<float> of_sample;
    of_sample.resize(static_cast<std::size_t>(samples / sharing));
    fill_phases(source(operand, "phase"), 0, std::ssize(of_sample), of_sample.data());
    for (std::size_t s = 0; s < of_sample.size(); ++s)
      std::fill_n(phases.data() + static_cast<std::int64_t>(s) * line, line, of_sample[s]);
  } else if (!alone) {
    fill_phases(source(operand, "phase"), 0, std::ssize(phases), phases.data());
  }
  if (noise.stochastic()) second.resize(phases.size());
  for (std::int64_t s = 0; s < samples; ++s) {
    for (std::int64_t at = s * each; at < (s + 1) * each; at += line) {
      const std::int64_t count = std::min(line, (s + 1) * each - at);
      if (alone) fill_phases(source(operand, "phase"), at, count, phases.data());
      if (noise.stochastic()) fill_phases(source(operand, "second"), at, count, second.data());
      noise.errors({.x = rounded + at,
                    .scale = scales.data() + at,
                    .phase = phases.data() + s / sharing * line,
                    .second = second.data(),
                    .n = count,
                    .error = y.data.data() + at});
    }
  }
  const Rounded from{x.data.data(), rounded, scales.data()};
  float* const to = y.data.data();
  const std::int64_t channels = x.shape.back();
  if (noise.stochastic()) {  // whose errors are independent of the numbers
    for (std::int64_t i = 0; i < n; ++i) to[i] += from.x[i];
  } else if (weight) {
    match_weight(operand, &x == operand.weight, from, n, x.dim(0), to);
  } else if (n / channels < kChannelElements) {
    match(noise, roles_.stores(), from, n, 1, to);
  } else {
    match(noise, roles_.stores(), from, n / channels, channels, to);
  }
  return y;
}

void InjectedNoise::disturb_stored(const InjectedRoles::Operand& operand, const net::Shape& shape,
                                   std::int64_t samples, float* x) const {
  const std::int64_t n = net::element_count(shape);
  if (n == 0) return;
  const std::int64_t last = shape.empty() ? 1 : shape.back();
  const bool apart = samples > 0 && n % (samples * last) == 0;
  // What rounding passes over has no noise.
  net::Tensor finite(apart ? net::Shape{samples, n / (samples * last), last}
                           : net::Shape{n / last, last});
  for (std::int64_t i = 0; i < n; ++i) finite.data[i] = std::isfinite(x[i]) ? x[i] : 0;
  const auto [scales, shifts] = stored_scales(operand, shape, samples, finite);
  const net::Tensor y = drawn(operand, finite, scales, shifts, false);
  for (std::int64_t i = 0; i < n; ++i) x[i] = std::isfinite(x[i]) ? y.data[i] : x[i];
}

void InjectedNoise::vector_result(const net::Step&, std::string_view node, std::string_view,
                                  net::Tensor& x) {
  const InjectedRoles::Operand* const operand = roles_.vector(node);
  if (operand != nullptr)
    disturb_stored(*operand, x.shape, x.shape.empty() ? 1 : x.dim(0), x.data.data());
}

}  // namespace numemu::experiments
