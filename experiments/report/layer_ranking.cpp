// Rows that quantize one layer alone, as a ranking of layers.
#include "experiments/report/layer_ranking.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace numemu::experiments {
namespace {

/// Below every measured ratio: such an output holds no signal.
constexpr double kNoSignal = -1e3;

double sensitivity(const Record& r) {
  return r.sqnr_db.value_or(r.not_finite ? kNoSignal : HUGE_VAL);
}

double mean_sensitivity(const RankedLayer& layer) {
  double sum = 0, n = 0;
  for (const Record* cell : layer.cells) {
    if (!cell) continue;
    sum += sensitivity(*cell);
    ++n;
  }
  return n > 0 ? sum / n : HUGE_VAL;
}

bool is_all(const RankedLayer& layer) { return layer.name == layer_words("*"); }

std::string effect(const Record& r) {
  std::string out = r.not_finite && !r.sqnr_db
                        ? "NaN or infinite outputs"
                        : fmt::format("{} dB at the output",
                                      r.sqnr_db ? fmt::format("{:.1f}", *r.sqnr_db) : "unchanged");
  if (r.bits_change()) return out + fmt::format(", {:+.4f} bits per character", *r.bits_change());
  if (r.difference) out += fmt::format(", {:+.2f} points", 100 * *r.difference);
  return out;
}

}  // namespace

bool asks_for_layers(const std::vector<Record>& records) {
  std::size_t alone = 0, quantized = 0;
  for (const Record& r : records) {
    alone += !r.only_in.empty();
    quantized += r.quantized();
  }
  return alone > 1 && 2 * alone > quantized;
}

LayerRanking rank_layers(const std::vector<Record>& records) {
  LayerRanking out;
  const auto place = [](auto& list, const auto& found, auto make) {
    if (found != list.end()) return static_cast<std::size_t>(found - list.begin());
    list.push_back(make());
    return list.size() - 1;
  };
  // A format, and the unit or seed where rows of one layer differ in them.
  const auto column = [&](const Record& r) {
    const std::string short_label = r.short_label();
    return r.formats() + (r.name.starts_with(short_label) ? r.name.substr(short_label.size()) : "");
  };
  for (const Record& r : records) {
    if (r.only_in.empty()) continue;
    const std::string format = column(r), layer = layer_words(r.only_in);
    const std::size_t c =
        place(out.formats, std::find(out.formats.begin(), out.formats.end(), format),
              [&] { return format; });
    const std::size_t l =
        place(out.layers,
              std::find_if(out.layers.begin(), out.layers.end(),
                           [&](const RankedLayer& known) { return known.name == layer; }),
              [&] {
                return RankedLayer{layer, {}};
              });
    std::vector<const Record*>& cells = out.layers[l].cells;
    if (cells.size() <= c) cells.resize(c + 1);
    cells[c] = &r;
  }
  for (RankedLayer& layer : out.layers) layer.cells.resize(out.formats.size());
  std::stable_sort(out.layers.begin(), out.layers.end(),
                   [](const RankedLayer& a, const RankedLayer& b) {
                     if (is_all(a) != is_all(b)) return is_all(b);
                     return mean_sensitivity(a) < mean_sensitivity(b);
                   });
  return out;
}

std::vector<std::string> ranking_sentences(const LayerRanking& ranking) {
  std::vector<std::string> out;
  for (std::size_t c = 0; c < ranking.formats.size(); ++c) {
    const RankedLayer* worst = nullptr;
    const Record* all = nullptr;
    for (const RankedLayer& layer : ranking.layers) {
      const Record* cell = layer.cells[c];
      if (!cell) continue;
      if (is_all(layer)) {
        all = cell;
      } else if (!worst || sensitivity(*cell) < sensitivity(*worst->cells[c])) {
        worst = &layer;
      }
    }
    if (!worst) continue;
    std::string text = fmt::format("{}: {} breaks first ({})", ranking.formats[c], worst->name,
                                   effect(*worst->cells[c]));
    if (all) text += fmt::format("; all layers together: {}", effect(*all));
    out.push_back(text + ".");
  }
  return out;
}

}  // namespace numemu::experiments
