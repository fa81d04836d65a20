// Blocks along the lines of a product's source: its width, or its rows where the product reduces
// along those.
#pragma once
#include <cstdint>
#include <vector>

#include "emu/net/numerics.hpp"
#include "policies/recipe/role_quantizer.hpp"

namespace numemu::policies {

/// Whether the inner matrices of the side are the groups of a convolution, whose channels are one
/// axis of the source: blocks run across groups. (Heads of attention, which multiply no weight, are
/// tensors of their own.)
bool groups_share_blocks(const net::Product&, net::Side);

/// How the source of a side is cut: `lines` lines of `length` elements along which it is reduced.
/// Not transposed: [outer, rows, inner] lines of `width` elements, as the source lies, or [outer,
/// rows] lines of `inner` x `width` where groups share blocks. Transposed: [outer, inner, width]
/// lines of `rows` elements.
struct Lines {
  std::int64_t lines = 0, length = 0;
  bool transposed = false;
  /// transposed: the source is `outer` matrices of `length` x `across`.
  std::int64_t outer = 1, across = 1;

  Lines(const net::Product&, net::Side);
  /// Lines of `depth` neighbours: the rows of an operand that reads its source in order.
  Lines(const net::ProductSide&, std::int64_t depth);
  std::int64_t elements() const { return lines * length; }
};

/// What quantizing the lines gives. Codes are bytes, scales lie in the container of their format.
struct LineCodes {
  std::vector<std::uint8_t> codes;   ///< [lines, length]
  std::vector<std::uint8_t> scales;  ///< [lines, blocks of a line], of bytes or more
  std::vector<float> tensor_scales;  ///< one per sample
};

/// Quantizes a source by blocks along its lines, the last one of a line short if need be. Blocks
/// never cross lines. With `samples` > 1 each of so many equal shares is a tensor of its own
/// (formats with a tensor scale). Random bits count elements in the order of the lines. Uses
/// threads.
/// y, grown to the source's size where it is smaller, receives the float32 values in the order of
/// the source.
FlagCounts quantize_lines(const RoleQuantizer&, const net::ProductSide&, const Lines&,
                          const RandomPiece&, std::int64_t samples, std::vector<float>& y);
/// quantize_lines() to codes and scales, for block formats of bytes with a scale per `size`
/// elements.
FlagCounts quantize_lines(const RoleQuantizer&, const net::ProductSide&, const Lines&,
                          const RandomPiece&, std::int64_t samples, LineCodes& out);

/// Whether the rows of the operand, one after another, are the source in its order: the weights of
/// a layer, [outputs, ...], and the activations of one without windows.
bool reads_in_order(const net::Product&, net::Side);

}  // namespace numemu::policies
