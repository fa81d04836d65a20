#include "experiments/stochastic_pruning/watcher.hpp"

#include <fmt/format.h>

#include <cmath>

#include "formats/digest.hpp"

namespace numemu::experiments::stochastic_pruning {

void Watcher::see(const net::Product& product, std::int64_t step) {
  if (product.kind != net::GemmKind::wgrad) return;
  const std::string layer(product.layer);
  const std::vector<float>& g = product.a.source->data;
  const auto n = static_cast<std::int64_t>(g.size());
  policies::ThresholdHistory& history = histories_[layer];
  const MagnitudeLaw normal = fit_law(ThresholdLaw::normal, g.data(), n);
  const double own = threshold_below(normal, plan_.share);
  if (plan_.observes(step) && normal.usable()) {
    Json record = {{"step", step}, {"layer", layer}, {"n", n}, {"nonzero", normal.nonzero}};
    const RandomSource random{plan_.seed, Stream::mask,
                              tensor_word(fmt::format("{}/observed/{}", layer, step)), 0};
    for (const Model& model : kModels) record[model.name] = of_model(model, g, random);
    if (const auto predicted = history.prediction(plan_.history)) {
      const PrunedTensor t =
          prune_and_measure(Pruning::stochastic, g.data(), n, *predicted, random);
      record["history"] = {{"threshold", *predicted}, {"own", own}, {"zeros", t.zero_share()}};
    }
    records_.push_back(std::move(record));
  }
  history.push(own, plan_.history);
}

Json Watcher::of_model(const Model& model, const std::vector<float>& g,
                       const RandomSource& random) const {
  const auto n = static_cast<std::int64_t>(g.size());
  MagnitudeLaw fitted = fit_law(model.law, g.data(), n);
  if (model.cut) fitted = with_cut(fitted, g.data(), n);
  const double threshold = threshold_below(fitted, plan_.share);
  const PruningEffect effect = stochastic_pruning::effect(Pruning::stochastic, fitted, threshold);
  const PrunedTensor t = prune_and_measure(Pruning::stochastic, g.data(), n, threshold, random);
  const double count = static_cast<double>(n), squares = t.squares;
  return {
      {"scale", fitted.scale},
      {"spread", fitted.spread},
      {"cut", std::isfinite(fitted.cut) ? Json(fitted.cut) : Json(nullptr)},
      {"threshold", threshold},
      {"below", static_cast<double>(t.below) / (count * fitted.nonzero)},
      {"predicted", {{"zeros", effect.zeros}, {"error", effect.error}, {"cosine", effect.cosine}}},
      {"expected",
       {{"zeros", t.expected_zeros.value / count},
        {"zeros_error", t.expected_zeros.error / count},
        {"error", t.expected_error.value / squares},
        {"error_error", t.expected_error.error / squares}}},
      {"measured",
       {{"zeros", t.zero_share()}, {"error", t.relative_error()}, {"cosine", t.cosine()}}}};
}

}  // namespace numemu::experiments::stochastic_pruning
