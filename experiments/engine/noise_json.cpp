#include "experiments/engine/noise_json.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "emu/net/at_layer.hpp"
#include "emu/net/gemm_layers.hpp"
#include "emu/stats/interval.hpp"
#include "experiments/predict/noise_power.hpp"
#include "experiments/predict/version.hpp"

namespace numemu::experiments {
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
  out.ignores = noise.predicted.ignores;
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
  for (const std::string& name : net::gemm_layer_names(graph)) {
    const policies::OperandCounts counts = numerics.counts(name, net::GemmKind::fprop);
    const double elements = static_cast<double>(std::max<std::int64_t>(1, counts.elements));
    const auto share = [elements](std::int64_t count) {
      return row_number(static_cast<double>(count) / elements);
    };
    const double db = net::at_layer(measured.db, name), error = net::at_layer(measured.error, name),
                 predicted = noise.predictions ? net::at_layer(noise.predicted.db, name) : kUnknown;
    row.layers.push_back(
        {.name = name,
         .gemm = "fprop",
         .unit = numerics.recipe(name).fprop->row().name,
         .sqnr_db = row_number(db),
         .sqnr_ci95 = interval(db, error),
         .predicted_db = row_number(predicted),
         .verdict = row_verdict(layer_verdict(predicted, db, measured.samples, error)),
         .overflow = share(counts.overflow),
         .underflow = share(counts.underflow),
         .invalid = share(counts.invalid),
         .saturated = {},
         .left_out = {}});
    const policies::SaturationCounts results = numerics.saturation(name);
    if (results.any()) row.layers.back().saturated = row_number(results.share());
    if (const auto why = noise.predicted.left_out.find(name); why != noise.predicted.left_out.end())
      row.layers.back().left_out = why->second;
  }
}

}  // namespace numemu::experiments
