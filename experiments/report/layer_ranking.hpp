// Rows that change one layer alone, as a ranking of layers.
#pragma once
#include <string>
#include <vector>

#include "experiments/report/report_row.hpp"

namespace numemu::experiments {

/// One layer (or "all layers", which is last) and its row for each format; null where there is
/// none.
struct RankedLayer {
  std::string name;
  std::vector<const ReportRow*> cells;
};

struct LayerRanking {
  std::vector<std::string> formats;  ///< with what else differs, units among them
  std::vector<bool> wide;            ///< by format: it is float32 in a quantized recipe
  std::vector<RankedLayer> layers;   ///< in the order for the first format (comes_first)
  const ReportRow* base = nullptr;   ///< the recipe as it is that layers change; null: float32
  std::string unit;                  ///< of all rows; "" where they differ
};

/// Whether its outputs are NaN or infinite, some at least: its SQNR then means nothing.
bool loses_numbers(const ReportRow&);

/// The order of layers at one format: NaN or infinite outputs first, the larger loss of top-1 (or
/// rise of bits per character) before the smaller, then the larger share of such outputs; after
/// them the lowest SQNR first. Reversed where the format is the wide one of a quantized recipe.
bool comes_first(const ReportRow& a, const ReportRow& b, bool wide);

/// Whether most rows change one layer alone, of float32 or of one recipe that is among the rows.
bool asks_for_layers(const std::vector<ReportRow>&);

LayerRanking rank_layers(const std::vector<ReportRow>&);

/// "which layer breaks first": the question behind such rows.
std::string ranking_question(const std::vector<ReportRow>&);
/// "Layers, the most sensitive first".
std::string ranking_title(const LayerRanking&);
/// What the numbers of the table are, and the order of its rows. Full sentences.
std::string ranking_rule(const LayerRanking&);

/// "int4 on f32.sequential: lowest SQNR: conv2 (14.1 dB, -0.42 points), not distinguishable from
/// fc1; all layers: ...", one a format.
std::vector<std::string> ranking_sentences(const LayerRanking&);

}  // namespace numemu::experiments
