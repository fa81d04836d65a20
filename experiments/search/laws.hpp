// The best formats for numbers of a law or a file, beside the limits of any quantizer.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "experiments/engine/experiment_file.hpp"
#include "experiments/search/space.hpp"

namespace numemu::experiments {

/// Draws of a law.
inline constexpr std::int64_t kLawDraws = std::int64_t{1} << 17;
/// Rows of a table.
inline constexpr std::size_t kLawRows = 30;

/// The options that store at most `bits` bits, the least noise first: SQNR over draws of the law
/// (numbers of the .npy file), whose blocks are neighbours; without blocks one scale serves all.
/// Last, where it is known, the Lloyd-Max limit of each whole number of bits (lloyd(LAW,N)).
/// Throws Error naming law or file: an unknown law, one without variance, numbers that are not
/// finite or all zero.
ResultTable law_table(const std::string& law, const std::vector<SearchOption>& options, double bits,
                      std::uint64_t seed);

}  // namespace numemu::experiments
