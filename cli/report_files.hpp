// The rows of a report on the terminal.
#pragma once
#include <string>
#include <vector>

#include "api/studies.hpp"

namespace numemu::cli {

/// The meaning of the star at a predicted figure.
inline constexpr const char* kUnitLeftOut =
    "* predicted for exact sums, without the rounding noise of the unit";

/// `format` of a number times `factor`, "-" for null.
std::string number_text(const Json& value, const char* format, double factor = 1);
std::string number_text(const std::optional<double>&, const char* format, double factor = 1);
/// "[LOW, HIGH]" of a list of two, each as number_text.
std::string interval_text(const Json& pair, const char* format, double factor = 1);
std::string interval_text(const experiments::Member<experiments::Ends>&, const char* format,
                          double factor = 1);
/// "no window's figure differs from float32; at 95 % at most 24.7 % of blocks of 4 windows do
/// (Clopper-Pearson)", of a score of which no resample differs; "" of others, of `auc`, and of 0
/// samples. The exact interval of such a difference supposes that a window that differs does so in
/// every target.
std::string none_differs(const experiments::RowScore&, std::int64_t samples);

/// One line a row: numerics, bits, accuracy, its change from float32, SQNR measured and predicted;
/// then lines about what is not finite, why something is not predicted, and notes. Rows of
/// different points never have the same line.
std::string summary_table(const std::vector<experiments::Row>& rows,
                          const std::string& unfinished = "");

/// The gate's sentences alone, a line each; nothing without a gate.
std::string gate_lines(const api::WrittenReport&);

}  // namespace numemu::cli
