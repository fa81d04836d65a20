// The rows in sentences, to read before any chart.
#pragma once
#include <string>
#include <vector>

#include "experiments/report/verdicts.hpp"

namespace numemu::experiments {

/// The headline paragraph, sentence by sentence, in plain text, and its sentences on predictions.
std::vector<std::string> headline(const std::vector<ReportRow>&);
std::vector<std::string> prediction_sentences(const Verdicts&);

/// "Rounding rne; overflow saturate; scale ..." over all quantized rows: the text of captions about
/// the axes.
std::string conditions(const std::vector<ReportRow>&);

}  // namespace numemu::experiments
