// The quantization noise of a tensor in blocks: from its float32 values, and in closed form from
// one density.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "emu/net/tensor.hpp"
#include "experiments/predict/fitted_noise.hpp"
#include "formats/analysis/error_moments.hpp"
#include "formats/blocks/block_layout.hpp"
#include "policies/recipe/role_policy.hpp"

namespace numemu::experiments {

// A weight [outputs, taps, inputs] in tiles is laid out tap by tap, [taps, outputs, inputs], whose
// last two axes the tiles cut. Layouts of blocks leave a tensor in its order.

/// The layout of a weight of that shape under a role with granularity tile.
BlockLayout tile_layout(const policies::RolePolicy&, const net::Shape&);
/// The elements of a tensor in the order of the layout: x itself, or `copy` where that is another.
const float* in_layout(const BlockLayout&, const float* x, std::vector<float>& copy);
/// Back from that of tiles.
void from_layout(const BlockLayout& tiles, const float* elements, float* x);

/// The factor of every block of a tensor, in the order of the layout: its scale, times the
/// tensor's, times 2^(the format's element exponent). For symmetric codes.
std::vector<double> block_factors(const policies::RolePolicy&, const BlockLayout&, const float* x);

/// The mean over all elements: each block's scale by the role's rule, which never quantizes, then
/// the cells of the element format. x has the layout's elements. Throws Error for block formats
/// with zero points or minima, whose cells move with them. (Here and below in the order of the
/// layout.)
ErrorMoments block_moments(const policies::RolePolicy&, const BlockLayout&, const float* x);

/// The same in closed form: the lines of `width` elements differ in their root mean square
/// (FitCache::mixture()), and the elements of lines with one follow one density. A block of B
/// elements has its largest magnitude between a and b with probability F(b)^(i B) - F(a)^(i B), F
/// the distribution of |x| and i the tensor's extremal index, 1 for independent elements. For rules
/// that read the largest magnitude only (of real scales absmax); nullopt for others, for shifted
/// codes and for a constant tensor. Tiles lie in lines that whole tiles cut: bands of outputs, or
/// all outputs of a tap where the last band is short.
std::optional<FittedNoise> fitted_block_noise(const policies::RolePolicy&, const BlockLayout&,
                                              std::int64_t width, const TensorSource&,
                                              const float* x, FitCache&);

}  // namespace numemu::experiments
