// Drawn errors of a weight that keep what rounding does to the sums of its outputs.
#pragma once
#include <cstdint>
#include <vector>

#include "emu/net/tensor.hpp"

namespace numemu::experiments {

/// The root mean square of every input that an output with k weights reads, from the layer's
/// float32 inputs [..., channels]; the taps of a convolution repeat the channels. All 1 where
/// outputs read different channels (groups).
std::vector<float> input_sizes(const net::Tensor& inputs, const net::Tensor& weight);

/// What the errors e of one output's weights x have in common with x and with the sizes r of the
/// inputs: e = along x + common r + a rest that is orthogonal to both.
struct ErrorParts {
  double along = 0, common = 0;
  double rest = 0;  ///< sum of squares
};
ErrorParts error_parts(const float* x, const float* r, const float* e, std::int64_t n);

/// `error` becomes x + e, where e has the first two parts of `wanted` and the rest of the drawn
/// errors, whose parts are `drawn`, times `ratio`.
void add_error_parts(const float* x, const float* r, const ErrorParts& drawn,
                     const ErrorParts& wanted, double ratio, std::int64_t n, float* error);

}  // namespace numemu::experiments
