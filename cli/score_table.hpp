// The scores of a row, and the noise of its layers, as tables.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "experiments/engine/row.hpp"

namespace numemu::cli {

/// Prints experiments::scores_of() of so many samples, with the reasons of figures that are
/// missing.
void print_scores(const std::vector<experiments::RowScore>&, std::int64_t samples);

/// "31.42", "inf" without noise, "-" without a figure.
std::string decibels(const std::optional<double>&);

/// Prints the layers of a row, and the output's fidelity, measured and predicted. `of_noise`: the
/// samples of SQNR and predictions; `of_counts`: those of overflow, underflow and invalid.
void print_noise(const experiments::Row&, const std::string& of_noise,
                 const std::string& of_counts);

}  // namespace numemu::cli
