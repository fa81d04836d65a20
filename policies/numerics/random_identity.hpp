// Where the random bits of a tensor come from: the identities that docs/random.md publishes.
#pragma once
#include <cstdint>
#include <string_view>

#include "emu/net/numerics.hpp"
#include "formats/random.hpp"

namespace numemu::policies {

/// Of an operand: the tensor identity is layer/role/step/gemm. The second and later products of a
/// kind in one training step (recurrence, simulated workers) have the step "7.1", "7.2".
RandomSource operand_random(std::uint64_t seed, std::string_view layer, net::Role,
                            std::int64_t step, net::GemmKind, std::int64_t repetition = 0);

/// Of a stored tensor: layer/role/step/use. The step is "STEP", or "STEP.R" for part R > 0 of a
/// training step's batch; 0 in inference.
RandomSource stored_random(std::uint64_t seed, std::string_view layer, std::string_view role,
                           const net::Step&, std::string_view use);

}  // namespace numemu::policies
