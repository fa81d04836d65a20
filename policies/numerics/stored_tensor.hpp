// Whole tensors under a role's policy: rewritten in place, or packed away and restored; their bits.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "emu/net/tensor.hpp"
#include "policies/recipe/role_quantizer.hpp"

namespace numemu::policies {

/// Every x becomes RNE_f32(element * scale). Blocks run along the last axis of `shape`; a scale of
/// a channel serves an index of axis 0, that of a row a line of the last axis, that of the tensor
/// (also the tensor scale of a block format) each of `samples` equal shares. Uses threads.
FlagCounts fake_quantize(const RoleQuantizer&, const net::Shape&, float* x, std::int64_t samples,
                         const RandomPiece&);

/// How many scales the elements of such a tensor have without blocks, each of as many neighbours.
std::int64_t stored_groups(const RolePolicy&, const net::Shape&, std::int64_t samples);

/// The tensor as scales and codes, those of at most 8 bits packed bit after bit. Blocks run along
/// each sample, all its axes taken as one: a last axis of 6 channels would leave groups of 6.
/// restore_packed() gives what fake_quantize() would have left, bit for bit.
std::vector<std::uint8_t> pack(const RoleQuantizer&, const net::Tensor&, const RandomPiece&,
                               FlagCounts& flags);
net::Tensor restore_packed(const RoleQuantizer&, const net::Shape&,
                           const std::vector<std::uint8_t>& packed);

/// The signs of a tensor: a bit each where none is negative or NaN, as behind a ReLU, else (and up
/// to 4 elements) 2 bits each. restore_signs() gives 1, -1, +0 or NaN.
std::vector<std::uint8_t> pack_signs(const net::Tensor&);
net::Tensor restore_signs(const net::Shape&, const std::vector<std::uint8_t>& packed);

/// Elements of a line that the blocks of a role cut in such a tensor: its last axis, or with axis
/// `reduction` the depth of the products that read it; 0: that of a weight's rows.
std::int64_t line_length(const RolePolicy&, const net::Shape&, std::int64_t depth = 0);

/// Stored bits of one tensor under a role, all of its elements; 32 an element without one. Along
/// the reduction an element that products read several times (convolutions) counts as once, with
/// its share of the scales of the lines as they are read.
double stored_bits(const std::optional<RolePolicy>&, const net::Shape&, std::int64_t depth = 0);

}  // namespace numemu::policies
