// One random sign for each element, whose mean is the element: what one bit carries of it.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "formats/random.hpp"
#include "policies/exchange/base/rule.hpp"

namespace numemu::policies {

/// Replaces each x in [-1, 1] by +1 with probability (1 + x) / 2 and else by -1: element i is +1
/// where its uniform number is below. A NaN stays, so that a training that diverged is seen.
void draw_signs(const RandomSource&, std::span<float> x);

/// The draws of a message of the run with that seed: tensor PARAMETER/exchange/STEP.SENDER/USE.
RandomSource sign_random(std::uint64_t seed, const Message&, std::string_view use);

}  // namespace numemu::policies
