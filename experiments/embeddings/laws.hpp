// Closed forms of the loss that uniform codes leave on rows of standard normal numbers.
#pragma once
#include <cstdint>

namespace numemu::experiments::embeddings {

/// E[(max - min)^2] of n standard normal numbers: the double integral of 2 P(min <= s, max >= t)
/// over s < t.
double squared_range(std::int64_t n);
/// E[max |x|^2] of n of them.
double squared_largest(std::int64_t n);

/// ||X - Q(X)|| / ||X|| with levels from end to end of a range of mean square `square`, in which
/// `exact` of n elements lie on a level and the error of all others is uniform on a step: (1 -
/// exact / n) square / (levels - 1)^2 / 12, under the root.
double uniform_loss(double square, std::int64_t n, std::int64_t exact, int levels = 16);

}  // namespace numemu::experiments::embeddings
