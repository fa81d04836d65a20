// The rows of a report on the terminal.
#pragma once
#include <string>
#include <vector>

#include "api/studies.hpp"

namespace numemu::cli {

/// The meaning of the star at a predicted figure.
inline constexpr const char* kUnitLeftOut =
    "* predicted for exact sums, without the rounding noise of the unit";

/// `format` of a number times `factor`, "-" for none.
std::string number_text(const std::optional<double>&, const char* format, double factor = 1);
/// "[LOW, HIGH]", each as number_text.
std::string interval_text(const experiments::Member<experiments::Ends>&, const char* format,
                          double factor = 1);
/// One line a row: numerics, bits, accuracy, its change from float32, SQNR measured and predicted;
/// then lines about what is not finite, why something is not predicted, and notes. Rows of
/// different points never have the same line.
std::string summary_table(const std::vector<experiments::Row>& rows,
                          const std::string& unfinished = "");

/// The gate's sentences alone, a line each; nothing without a gate.
std::string gate_lines(const api::WrittenReport&);

}  // namespace numemu::cli
