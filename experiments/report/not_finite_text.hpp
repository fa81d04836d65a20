// Rows whose outputs are NaN or infinite, in words.
#pragma once
#include <string>
#include <vector>

#include "experiments/engine/row.hpp"

namespace numemu::experiments {

/// Whether some outputs are NaN or infinite: the row counts them (`not_finite`), or, in rows that
/// do not count, its loss is null.
bool is_not_finite(const Row&);

/// "5,000 of 5,000 outputs are NaN (500 test samples)" and "conv2: 1,200 of 4,000 results infinite:
/// accumulator overflow (...)": the outputs, then each layer where such numbers arise, then those
/// that pass them on. Empty for rows that are finite. One sentence each, without a full stop.
std::vector<std::string> not_finite_sentences(const Row&);

/// NaN and infinite results of that layer's products; 0 where the row has none or does not count.
double not_finite_results(const Row&, const std::string& layer);

}  // namespace numemu::experiments
