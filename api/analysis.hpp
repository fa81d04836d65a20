// What a format does to numbers of a law or a file: errors predicted beside measured, the best
// scale.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "formats/analysis/best_scale.hpp"
#include "formats/analysis/comparison.hpp"
#include "formats/conversion.hpp"
#include "formats/storage/array.hpp"
#include "formats/storage/json.hpp"

namespace numemu::api {

struct AnalysisRequest {
  std::string format;  ///< a scalar one of at most 16 bits
  /// normal, laplace, uniform, lognormal:S, lognormal:S:log2, or a .npy file.
  std::string numbers;
  const Array* sample = nullptr;  ///< in place of the file: float16, float32 or float64
  std::string rounding = "rne", overflow = "saturate";
  std::string scale = "1";             ///< S: x / S is rounded
  std::string rule = {};               ///< the scale rule that chooses S
  std::optional<std::int64_t> n = {};  ///< draws of a law; else a million
  std::uint64_t seed = 0;
  bool best_scale = false;
};

/// A figure of docs/formats.md, with the verdict on its prediction.
struct AnalyzedFigure {
  const char *key, *label;
  Figure predicted, measured;
  numemu::Comparison comparison;
};

struct Analysis {
  Conversion conversion;
  double scale = 1;
  std::optional<std::string> law;  ///< its name; nothing: numbers of a file or an array
  std::string numbers;             ///< the law's name, or that of the file
  std::string rule;                ///< canonical name of the rule that chose the scale; else empty
  std::int64_t n = 0;
  std::vector<AnalyzedFigure> figures;
  std::optional<BestScale> best;

  bool fails() const;  ///< some prediction does
};

/// `slow` is told the number of conversions where they take longer than a moment. Throws Error
/// naming the option or the file.
Analysis analyze(const AnalysisRequest&, const std::function<void(std::int64_t)>& slow = {});
/// What `numemu analyze --json` prints.
Json analysis_json(const Analysis&);

}  // namespace numemu::api
