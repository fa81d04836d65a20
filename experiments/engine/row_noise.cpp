#include "experiments/engine/row_noise.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "emu/net/gemm_layers.hpp"
#include "emu/stats/interval.hpp"
#include "experiments/predict/tensor_noise.hpp"
#include "experiments/predict/version.hpp"
#include "formats/joined.hpp"
#include "formats/scaling/scale_rule.hpp"
#include "policies/recipe/role_quantizer.hpp"

namespace numemu::experiments {

namespace {

constexpr net::GemmKind kForward = net::GemmKind::fprop;

/// Share `i` of `shares` of a tensor, whole where it cannot be shared out.
bool finite_share(const net::Tensor& x, std::int64_t i, std::int64_t shares) {
  if (x.shape.empty() || x.dim(0) != shares || x.size() % shares != 0)
    return stats::count_finite(x.data.data(), x.size()).all_finite();
  const std::int64_t each = x.size() / shares;
  return stats::count_finite(x.data.data() + i * each, each).all_finite();
}

/// "float8_e5m2, overflow ieee".
std::string overflow_of(const policies::RolePolicy& role) {
  return fmt::format("{}, overflow {}", role.format->name, to_string(role.overflow));
}

double largest_of(const net::Tensor& x) { return largest_magnitude(x.data.data(), x.size()); }

/// The largest finite magnitude of an operand as the unit reads it, whose numbers are at most
/// `own`: under a scale the format's, else that of the numbers; those of a block differ from its
/// numbers by less than a factor of two.
double magnitude(const std::optional<policies::RolePolicy>& role, double own) {
  if (!role) return own;
  if (role->block != nullptr) return role->block->tensor_scale ? HUGE_VAL : 2 * own;
  const double largest = largest_value(*role->format);
  return role->stores_scale() ? largest : std::min(own, largest);
}

void raise_to(std::atomic<double>& most, double value) {
  double old = most;
  while (old < value && !most.compare_exchange_weak(old, value)) {
  }
}

/// "float16, at most 6.55e+04".
std::string limit(const Format& format) {
  return fmt::format("{}, at most {:.3g}", format.name, largest_value(format));
}

}  // namespace

NotFinite::NotFinite(const net::Graph& graph, const policies::RecipeNumerics& numerics)
    : graph_(graph), numerics_(numerics) {
  for (const net::GemmLayer& gemm : net::gemm_layers(graph)) layers_[gemm.name].right = gemm.right;
}

void NotFinite::reset() {
  for (auto& [name, layer] : layers_) {
    for (auto* count :
         {&layer.of, &layer.nan, &layer.infinite, &layer.inherited, &layer.born_infinite,
          &layer.born_nan, &layer.stored_nan, &layer.stored_infinite})
      *count = 0;
    layer.reach = 0;
  }
}

double NotFinite::reach(const net::Product& p, const Layer& layer) const {
  const policies::LayerRecipe& recipe = numerics_.roles().recipe(p.layer);
  double reach = static_cast<double>(p.k);
  reach *= magnitude(recipe.role(p.a.role, p.kind), largest_of(*p.a.source));
  const bool weight = p.b.role == net::Role::weight;
  const double right = weight ? layer.largest_weight : largest_of(*p.b.source);
  return reach * magnitude(recipe.role(layer.right, p.kind), right);
}

void NotFinite::add_stored(const net::Product& p) {
  const auto found = layers_.find(p.layer);
  if (found == layers_.end() || !numerics_.roles().recipe(p.layer)[policies::RolePart::output])
    return;
  const stats::FiniteCounts all = stats::count_finite(p.d, p.d_stack.count() * p.m * p.n);
  found->second.stored_nan += all.nan;
  found->second.stored_infinite += all.infinite;
}

void NotFinite::add(const net::Product& p) {
  const auto found = layers_.find(p.layer);
  if (found == layers_.end()) return;
  Layer& layer = found->second;
  const std::int64_t size = p.d_stack.count() * p.m * p.n;
  const stats::FiniteCounts all = stats::count_finite(p.d, size);
  const bool weight = p.b.role == net::Role::weight;
  if (weight) {
    std::call_once(layer.saw_weight, [&] {
      layer.finite_weight = finite_share(*p.b.source, 0, 1);
      layer.largest_weight = largest_of(*p.b.source);
    });
  }
  layer.of += size;
  if (all.all_finite()) return;
  layer.nan += all.nan;
  layer.infinite += all.infinite;
  raise_to(layer.reach, reach(p, layer));
  // The samples of a batch share the result out equally; one whose operands were not finite
  // inherits.
  const net::Tensor &a = *p.a.source, &b = *p.b.source;
  const std::int64_t batch = a.shape.empty() ? 1 : a.dim(0);
  const std::int64_t shares = batch > 0 && size % batch == 0 ? batch : 1, each = size / shares;
  for (std::int64_t i = 0; i < shares; ++i) {
    const stats::FiniteCounts own = stats::count_finite(p.d + i * each, each);
    if (own.all_finite()) continue;
    if (finite_share(a, i, shares) && (weight ? layer.finite_weight : finite_share(b, i, shares))) {
      layer.born_nan += own.nan;
      layer.born_infinite += own.infinite;
    } else {
      layer.inherited += own.nan + own.infinite;
    }
  }
}

std::vector<std::string> NotFinite::causes(const std::string& name, const Layer& layer) const {
  std::vector<std::string> out;
  const policies::LayerRecipe& recipe = numerics_.roles().recipe(name);
  if (layer.born_nan + layer.born_infinite > 0) {
    const unit::Unit& unit = *recipe.fprop;
    const Format* const d = unit.d_format();
    const Format* const sum =
        unit.description() != nullptr ? unit.description()->accumulator.format : d;
    std::vector<std::string> possible;
    // Operands that a conversion made infinite or NaN are not seen apart from sums that overflow.
    bool nan_operand = false, infinite_operand = false;
    for (const net::Role role : {net::Role::weight, net::Role::activation}) {
      const std::optional<policies::RolePolicy>& policy = recipe.role(role, kForward);
      if (!policy || policy->overflow != Overflow::ieee ||
          numerics_.roles().operand_counts(name, kForward, role).overflow == 0)
        continue;
      possible.push_back(
          fmt::format("operand overflow ({} {})", net::to_string(role), overflow_of(*policy)));
      (policy->format->has_infinity() ? infinite_operand : nan_operand) = true;
    }
    double most = HUGE_VAL;  // what neither accumulator nor result exceeds
    for (const Format* format : {sum, d}) {
      if (format != nullptr) most = std::min(most, largest_value(*format));
    }
    // Twice: sums may round up.
    const bool sums = possible.empty() || d == nullptr || 2 * layer.reach > most;
    if (sums && sum != nullptr && d != nullptr && d != sum) {
      possible.push_back(fmt::format("accumulator or result overflow (accumulator {}; result {})",
                                     limit(*sum), limit(*d)));
    } else if (sums && d != nullptr) {
      possible.push_back(fmt::format("accumulator overflow ({})", limit(*d)));
    } else if (sums) {
      possible.emplace_back("overflow of the scaled result (float32)");
    }
    out.push_back(joined(possible, " or "));
    if (layer.born_nan > 0 && !nan_operand) {
      if (infinite_operand) {
        out.emplace_back("inf - inf or 0 x inf");
      } else if (sums && sum != nullptr && sum->has_infinity()) {
        out.emplace_back("inf - inf");
      }
    }
  }
  if (layer.output_overflowed())
    out.push_back(fmt::format("overflow of the role output ({})",
                              overflow_of(*recipe[policies::RolePart::output])));
  if (layer.inherited > 0) out.emplace_back("operands that were not finite before");
  return out;
}

std::optional<LostNumbers> NotFinite::lost(std::int64_t samples,
                                           const stats::FiniteCounts& outputs) const {
  LostNumbers out{samples, {outputs.of, outputs.nan, outputs.infinite}, {}};
  for (const std::string& name : net::gemm_layer_names(graph_)) {
    const Layer& layer = net::at_layer(layers_, name);
    const bool stored = layer.output_overflowed();
    const std::int64_t nan = stored ? layer.stored_nan : layer.nan;
    const std::int64_t infinite = stored ? layer.stored_infinite : layer.infinite;
    if (nan + infinite == 0) continue;
    out.layers.push_back({.name = name,
                          .of = layer.of.load(),
                          .nan = nan,
                          .infinite = infinite,
                          .inherited = layer.inherited.load(),
                          .causes = causes(name, layer)});
  }
  if (out.layers.empty() && outputs.all_finite()) return std::nullopt;
  return out;
}

void NotFinite::add_overflows(LayerPrediction& prediction) const {
  for (const std::string& name : net::gemm_layer_names(graph_)) {
    const Layer& layer = net::at_layer(layers_, name);
    const policies::SaturationCounts counts = numerics_.roles().saturation(name);
    const std::int64_t born = layer.born_nan + layer.born_infinite;
    if (!counts.any() && born == 0) continue;
    const unit::Unit& unit = *numerics_.roles().recipe(name).fprop;
    UnitError& error = prediction.units[name];
    error.unit = unit.row().name;
    if (unit.description() != nullptr) error.words = policies::overflow_words(*unit.description());
    error.overflowed = error.of_noise = true;
    error.counts = counts;
    error.results = layer.of;
    error.not_finite = born;
  }
}

void NotFinite::count_overflows(LayerPrediction& prediction) const {
  for (auto& [name, error] : prediction.units) {
    if (!error.overflowed && !error.overflows) continue;
    const Layer& layer = net::at_layer(layers_, name);
    const policies::SaturationCounts counts = numerics_.roles().saturation(name);
    const std::int64_t born = layer.born_nan + layer.born_infinite;
    if (error.overflowed && !counts.any() && born == 0) continue;
    error.of_noise = false;
    error.counts = counts;
    error.results = layer.of;
    error.not_finite = born;
  }
}

namespace {

constexpr int kErrorDigits = 12;  // of mean squared errors, which are compared to 1e-9
constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

/// The 95 % interval of a figure in decibels; null for null.
Member<Ends> interval(double db, double error) {
  const double half = stats::kNormal95 * error;
  if (!std::isfinite(db) || !std::isfinite(half)) return Member<Ends>::null();
  return row_ends(db - half, db + half);
}

Member<Verdict> row_verdict(Verdict verdict) {
  return verdict == Verdict::none ? Member<Verdict>::null() : verdict;
}

RowSaturation row_counts(const policies::SaturationCounts& counts) {
  RowSaturation out;
  out.sampled = counts.sampled;
  out.on_the_way = counts.overflowed;
  if (counts.results > 0) {
    out.results = counts.results;
    out.at_end = counts.at_end;
  }
  return out;
}

RowTensor row_tensor(const TensorNoise& noise) {
  const Verdict verdict = noise.empirical_verdict();
  const bool withheld = verdict == Verdict::withheld;
  Member<RowFit> fitted = Member<RowFit>::null();
  if (noise.fitted) {
    const double db = decibels(noise.empirical.signal, noise.fitted->moments.mse);
    fitted = RowFit{.family = noise.fitted->family,
                    .ks = row_number(noise.fitted->ks_distance),
                    .threshold = row_number(noise.fitted->threshold),
                    .accepted = noise.fitted->accepted,
                    .db = row_number(withheld ? kUnknown : db),
                    .verdict = row_verdict(noise.fitted_verdict())};
  }
  return {.layer = noise.source.layer,
          .role = std::string(net::to_string(noise.source.role)),
          .format = std::string(noise.policy.block != nullptr ? noise.policy.block->name
                                                              : noise.policy.format->name),
          .n = noise.n,
          .measured_mse = row_number(noise.measured_mse, kErrorDigits),
          .measured_db = row_number(noise.measured_db()),
          .standard_error = row_number(noise.standard_error),
          .empirical_mse = row_number(withheld ? kUnknown : noise.empirical.mse, kErrorDigits),
          .empirical_db = row_number(withheld ? kUnknown : noise.empirical.sqnr_db()),
          .verdict = row_verdict(verdict),
          .fitted = std::move(fitted)};
}

RowPrediction row_prediction(const NoiseFigures& noise) {
  RowPrediction out;
  const OutputFidelity &predicted = noise.predicted.output, &measured = noise.measured.output;
  if (noise.predictions) {
    out.version = kPredictionVersion;
    out.sqnr_db = row_number(predicted.db);
    out.sqnr_error_db = row_number(noise.predicted.output_error);
    out.sqnr_gained_db = row_number(predicted.gained_db);
    out.gain = row_number(predicted.gain);
    out.verdict = row_verdict(layer_verdict(predicted.db, measured.db, noise.measured.samples,
                                            noise.measured.output_error));
  } else {
    out.sqnr_db = Member<double>::null();
    out.verdict = Member<Verdict>::null();
  }
  for (const TensorNoise& tensor : noise.tensors) out.tensors.push_back(row_tensor(tensor));
  out.left_out = noise.predicted.output_left_out;
  return out;
}

}  // namespace

void add_noise(Row& row, const NoiseFigures& noise, const net::Graph& graph,
               const policies::RecipeNumerics& numerics) {
  const LayerMeasurement& measured = noise.measured;
  row.metrics.sqnr_db = row_number(measured.output.db);
  row.metrics.sqnr_error_db = row_number(measured.output_error);
  row.metrics.sqnr_ci95 = interval(measured.output.db, measured.output_error);
  row.metrics.sqnr_samples = measured.samples;
  row.metrics.sqnr_without_mean_db = row_number(measured.output_centred_db);
  row.metrics.sqnr_gained_db = row_number(measured.output.gained_db);
  row.metrics.gain = row_number(measured.output.gain);
  row.predicted = row_prediction(noise);
  const std::vector<std::string> names = net::gemm_layer_names(graph);
  const bool saturated = std::ranges::any_of(
      names, [&](const std::string& name) { return numerics.roles().saturation(name).any(); });
  for (const std::string& name : names) {
    const policies::OperandCounts counts =
        numerics.roles().operand_counts(name, net::GemmKind::fprop);
    const double elements = static_cast<double>(std::max<std::int64_t>(1, counts.elements));
    const auto share = [elements](std::int64_t count) {
      return row_number(static_cast<double>(count) / elements);
    };
    const double db = net::at_layer(measured.db, name), error = net::at_layer(measured.error, name),
                 predicted = noise.predictions ? net::at_layer(noise.predicted.db, name) : kUnknown;
    row.layers.push_back(
        {.name = name,
         .gemm = "fprop",
         .unit = numerics.roles().recipe(name).fprop->row().name,
         .sqnr_db = row_number(db),
         .sqnr_ci95 = interval(db, error),
         .predicted_db = row_number(predicted),
         .verdict = row_verdict(layer_verdict(predicted, db, measured.samples, error)),
         .overflow = share(counts.overflow),
         .underflow = share(counts.underflow),
         .invalid = share(counts.invalid),
         .saturated = {},
         .saturated_counts = {},
         .left_out = {}});
    const policies::SaturationCounts results = numerics.roles().saturation(name);
    if (results.any()) row.layers.back().saturated = row_number(results.share());
    if (saturated && results.looked()) row.layers.back().saturated_counts = row_counts(results);
    if (const auto why = noise.predicted.left_out.find(name); why != noise.predicted.left_out.end())
      row.layers.back().left_out = why->second;
    if (numerics.roles().gives_fused(name))
      row.layers.back().left_out = "codes behind the operator that is fused with the layer (edges)";
  }
}

}  // namespace numemu::experiments
