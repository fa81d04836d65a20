// Masks of the smallest pieces that carry a constraint: of normal deviates and of weights.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "emu/net/graph.hpp"
#include "experiments/mask_diversity/mask_census.hpp"
#include "experiments/mask_diversity/patterns.hpp"
#include "formats/storage/json.hpp"

namespace numemu::experiments {

/// Layers with one weight whose channels are a multiple of kLargestGroup, in order: every pattern
/// keeps exactly half of it. Throws Error where the network has none.
std::vector<std::string> evenly_masked_layers(const net::Graph&);

/// The whole pieces of a weight [out, ..., in], one after the other: groups along the channels, or
/// M x M tiles of outputs and channels of one tap. Outputs that fill no tile are left out.
std::vector<float> pieces_of(const net::Tensor& weight, const DiversityPattern&);

/// 1 where the pattern's rule keeps an element of these pieces.
std::vector<std::uint8_t> masks_of(const std::vector<float>& pieces, const DiversityPattern&);

/// The masks of `pieces` pieces of independent standard normal deviates: stream probe, tensor
/// "mask-diversity/" and the pattern's name, element i the quantile of u + 2^-33.
MaskCensus normal_census(const DiversityPattern&, std::int64_t pieces, std::uint64_t seed);

/// A census as the result of a trial: pieces, distinct, kept; plug_in, corrected, low, high (bits),
/// coverage; collisions, collision_low, collision_bits, collision_high. `p` of the chi-square test
/// that all masks are equally likely, null where fewer than 5 pieces per mask were seen.
///
/// Of transposable masks up to 8 x 8 and `exchangeable` elements also `kinds` (mask_kinds.hpp): how
/// many are distinct, their coverage, the entropy of masks that follows with low and high, `p` that
/// kinds are as likely as they are large, `within_p` that masks of one kind are equally likely.
Json to_json(const MaskCensus&, const DiversityPattern&, bool exchangeable);

}  // namespace numemu::experiments
