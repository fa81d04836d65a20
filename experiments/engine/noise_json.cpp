#include "experiments/engine/noise_json.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "emu/net/at_layer.hpp"
#include "emu/net/gemm_layers.hpp"
#include "emu/stats/interval.hpp"
#include "experiments/engine/judge.hpp"
#include "experiments/predict/noise_power.hpp"
#include "experiments/predict/version.hpp"
#include "policies/recipe/canonical_json.hpp"

namespace numemu::experiments {
namespace {

constexpr int kDigits = 6;        // of decibels
constexpr int kErrorDigits = 12;  // of mean squared errors, which are compared to 1e-9
constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

/// null for infinities: float32 has no noise.
Json number(double value, int digits = kDigits) {
  if (!std::isfinite(value)) return nullptr;
  return policies::significant(value, digits);
}

/// The 95 % interval of a figure in decibels; null for null.
Json interval(double db, double error) {
  const double half = stats::kNormal95 * error;
  if (!std::isfinite(db) || !std::isfinite(half)) return nullptr;
  return Json::array({number(db - half), number(db + half)});
}

Json tensor_json(const TensorNoise& noise) {
  Json fitted = nullptr;
  const Verdict verdict = noise.empirical_verdict();
  const bool withheld = verdict == Verdict::withheld;
  if (noise.fitted) {
    fitted = {
        {"family", noise.fitted->family},
        {"ks", number(noise.fitted->ks_distance)},
        {"threshold", number(noise.fitted->threshold)},
        {"accepted", noise.fitted->accepted},
        {"db",
         withheld ? Json() : number(decibels(noise.empirical.signal, noise.fitted->moments.mse))},
        {"verdict", to_json(noise.fitted_verdict())}};
  }
  return {{"layer", noise.source.layer},
          {"role", net::to_string(noise.source.role)},
          {"format",
           noise.policy.block != nullptr ? noise.policy.block->name : noise.policy.format->name},
          {"n", noise.n},
          {"measured_mse", number(noise.measured_mse, kErrorDigits)},
          {"measured_db", number(noise.measured_db())},
          {"standard_error", number(noise.standard_error)},
          {"empirical_mse", withheld ? Json() : number(noise.empirical.mse, kErrorDigits)},
          {"empirical_db", withheld ? Json() : number(noise.empirical.sqnr_db())},
          {"verdict", to_json(verdict)},
          {"fitted", fitted}};
}

}  // namespace

void add_noise(Json& row, const NoiseFigures& noise, const net::Graph& graph,
               const policies::RecipeNumerics& numerics) {
  row["metrics"]["sqnr_db"] = number(noise.measured.output.db);
  row["metrics"]["sqnr_error_db"] = number(noise.measured.output_error);
  row["metrics"]["sqnr_ci95"] = interval(noise.measured.output.db, noise.measured.output_error);
  row["metrics"]["sqnr_samples"] = noise.measured.samples;
  row["metrics"]["sqnr_without_mean_db"] = number(noise.measured.output_centred_db);
  row["metrics"]["sqnr_gained_db"] = number(noise.measured.output.gained_db);
  row["metrics"]["gain"] = number(noise.measured.output.gain);
  if (noise.predictions) {
    row["predicted"] = {
        {"version", kPredictionVersion},
        {"sqnr_db", number(noise.predicted.output.db)},
        {"sqnr_error_db", number(noise.predicted.output_error)},
        {"sqnr_gained_db", number(noise.predicted.output.gained_db)},
        {"gain", number(noise.predicted.output.gain)},
        {"verdict", to_json(layer_verdict(noise.predicted.output.db, noise.measured.output.db,
                                          noise.measured.samples, noise.measured.output_error))}};
  } else {
    row["predicted"] = {{"sqnr_db", nullptr}, {"verdict", nullptr}};
  }
  row["predicted"]["tensors"] = Json::array();
  if (!noise.predicted.output_left_out.empty())
    row["predicted"]["left_out"] = noise.predicted.output_left_out;
  if (!noise.predicted.ignores.empty()) row["predicted"]["ignores"] = noise.predicted.ignores;
  for (const TensorNoise& tensor : noise.tensors)
    row["predicted"]["tensors"].push_back(tensor_json(tensor));
  row["layers"] = Json::array();
  for (const std::string& name : net::gemm_layer_names(graph)) {
    const policies::OperandCounts counts = numerics.counts(name, net::GemmKind::fprop);
    const double elements = static_cast<double>(std::max<std::int64_t>(1, counts.elements));
    const double layer_predicted =
        noise.predictions ? net::at_layer(noise.predicted.db, name) : kUnknown;
    const double layer_measured = net::at_layer(noise.measured.db, name);
    const double layer_error = net::at_layer(noise.measured.error, name);
    row["layers"].push_back(
        {{"name", name},
         {"gemm", "fprop"},
         {"unit", numerics.recipe(name).fprop->row().name},
         {"sqnr_db", number(layer_measured)},
         {"sqnr_ci95", interval(layer_measured, layer_error)},
         {"predicted_db", number(layer_predicted)},
         {"verdict", to_json(layer_verdict(layer_predicted, layer_measured, noise.measured.samples,
                                           layer_error))},
         {"overflow", number(static_cast<double>(counts.overflow) / elements)},
         {"underflow", number(static_cast<double>(counts.underflow) / elements)},
         {"invalid", number(static_cast<double>(counts.invalid) / elements)}});
    const policies::SaturationCounts results = numerics.saturation(name);
    if (results.any()) row["layers"].back()["saturated"] = number(results.share());
    if (const auto why = noise.predicted.left_out.find(name); why != noise.predicted.left_out.end())
      row["layers"].back()["left_out"] = why->second;
  }
}

}  // namespace numemu::experiments
