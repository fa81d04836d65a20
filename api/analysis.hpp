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
  /// normal, laplace, uniform, student-t:NU, lognormal:S, lognormal:S:log2, or a .npy file.
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
  FigureComparison comparison;
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

/// Many formats under many laws, one row each.
struct AnalysisTableRequest {
  /// Scalar and block formats, each a list with braces for alternatives, which makes a grid:
  /// "e{2,3}m1,nf4", "group(int{3,4},{32,64},float16)". "all:B": every scalar format of 3 to B bits
  /// that has a description (ExMy, P3109, intN, posits, logarithmic), B at most 8.
  std::vector<std::string> formats;
  std::vector<std::string> numbers;  ///< laws and files, lists as above
  /// Scale rules, lists as above. best (scalar formats: the real scale with the least MSE under the
  /// law itself), power-of-two (the same of powers of two), or a rule by name, which sees the
  /// draws. Empty: best for scalar formats, the format's own rule for block formats.
  std::vector<std::string> rules;
  std::string rounding = "rne";        ///< overflow saturates
  std::optional<std::int64_t> n = {};  ///< draws of a law; else kTableDraws
  std::uint64_t seed = 0;
};
inline constexpr std::int64_t kTableDraws = std::int64_t{1} << 17;
/// Draws lie in lines of so many, along which blocks run; tiles have lines as rows.
inline constexpr std::int64_t kTableLine = 4096;

struct AnalyzedFormat {
  enum class Kind : std::uint8_t {
    exact,     ///< an integral over the law
    measured,  ///< of the draws or the numbers of the file
    limit,     ///< of any format
    reached,   ///< by Lloyd's algorithm over levels and scales: no bound
  };
  std::string format;     ///< canonical name; of a limit what it is
  double bits = 0;        ///< stored for an element; of a limit the rate
  std::string rule = {};  ///< canonical; empty for a limit
  std::string law;        ///< "|normal|" for formats without sign, which have limits of their own
  Kind kind = Kind::exact;
  std::optional<double> scale = {};  ///< of a scalar format
  double sqnr_db = 0;
  /// Half of its 95 % interval over draws; nothing for integrals, numbers of a file, one scale for
  /// all, block limits, and where `heavy_tails`.
  std::optional<double> half_db = {};
  bool heavy_tails = false;  ///< of draws that show too little of their law (heavy_tails())
  std::optional<double> to_lloyd_db = {};  ///< SQNR above Lloyd-Max levels of as many element codes
};
/// "exact", "measured", "limit", "reached".
const char* to_string(AnalyzedFormat::Kind);

/// The rows of each law in the order of the request, then its limits: Lloyd-Max levels and
/// Shannon's bound for every width of elements and every rate (of x, and of |x| for formats without
/// sign; not for a file, whose law is not known), and what block_limit()
/// (formats/analysis/limits.hpp) reaches for every width, block size and kind of scale, E8M0 or
/// E4M3, of the block formats.
struct AnalysisTable {
  Rounding rounding;
  std::int64_t n = 0;  ///< draws
  std::uint64_t seed = 0;
  bool files = false;  ///< no law is there
  std::vector<AnalyzedFormat> rows = {};
  /// Sentences: formats without a row, which no rule of the request serves; numbers of a file that
  /// were rounded to float32; blocks that their rule clips.
  std::vector<std::string> notes = {};
};
/// Throws Error naming the option, the format or the file, also where the rules of the request
/// serve no format at all. Numbers of files are rounded to float32 (rne).
AnalysisTable analyze_table(const AnalysisTableRequest&);
Json analysis_table_json(const AnalysisTable&);
/// A line a row, the columns those of the JSON.
std::string analysis_table_csv(const AnalysisTable&);

}  // namespace numemu::api
