// Figures of errors measured: numbers are drawn and go through the codec.
#pragma once
#include <cstdint>

#include "formats/analysis/distribution.hpp"
#include "formats/analysis/error_figures.hpp"
#include "formats/conversion.hpp"

namespace numemu {

/// Draws numbers 0..n-1 of the distribution (stream `data`, tensor 0, draw 0), rounds each exact
/// quotient x / scale with encode_element() and decodes. Figures with the sample's variances.
/// `scale` is finite and positive; formats of at most 16 bits. The same bits for any number of
/// threads.
ErrorFigures monte_carlo(const Conversion&, double scale, const Distribution&, std::uint64_t seed,
                         std::int64_t n);
/// monte_carlo() with the numbers x[0..n) themselves.
ErrorFigures measure(const Conversion&, double scale, const double* x, std::int64_t n);

}  // namespace numemu
