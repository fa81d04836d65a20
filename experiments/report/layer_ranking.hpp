// Rows that quantize one layer alone, as a ranking of layers.
#pragma once
#include <string>
#include <vector>

#include "experiments/report/record.hpp"

namespace numemu::experiments {

/// One layer (or "all layers", which stands last) and its row for each format; null where there is
/// none.
struct RankedLayer {
  std::string name;
  std::vector<const Record*> cells;
};

struct LayerRanking {
  std::vector<std::string> formats;  ///< with what else differs, units among them
  std::vector<RankedLayer> layers;   ///< the most sensitive first: by the mean output SQNR over the
                                     ///< formats, outputs that are not finite before all others
};

/// Whether most rows quantize one layer alone: the report then answers which layer breaks first.
bool asks_for_layers(const std::vector<Record>&);

LayerRanking rank_layers(const std::vector<Record>&);

/// "int4: conv2 breaks first (14.1 dB at the output, -0.42 points); all layers together: ...", one
/// a format.
std::vector<std::string> ranking_sentences(const LayerRanking&);

}  // namespace numemu::experiments
