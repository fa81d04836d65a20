// The Lloyd-Max quantizer of a law: the levels with the least squared error.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace numemu {

/// N levels of a law that is symmetric about zero, ascending and symmetric, every level the mean of
/// the numbers nearest to it (Max 1960, Lloyd 1982). `law`: normal (sigma 1), laplace (scale 1),
/// uniform (on [-1, 1]), student-t:NU (scale 1, NU from 2.5 to 1000), lognormal:S or
/// lognormal:S:log2 (of |x|, both signs equally likely, sigma of ln|x| from 0.01 to 3). Solved by
/// Newton's method from Panter and Dite's companding, by portable functions alone: the same bits
/// on every machine. Of a law with several optima (lognormal) the levels are those of the optimum
/// nearest to the companding. Throws Error for another law or for levels from 2 to kMostLevels.
std::vector<double> lloyd_max(std::string_view law, int levels);

inline constexpr int kMostLevels = 4096;

}  // namespace numemu
