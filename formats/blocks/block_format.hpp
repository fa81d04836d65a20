// A block format is one record: elements that share a scale; nothing that quantizes names one.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/format.hpp"
#include "formats/value.hpp"

namespace numemu {

/// Which elements share one scale.
enum class Span : std::uint8_t {
  block,    ///< `size` neighbours along an axis; the last block of a line may be short
  tensor,   ///< all
  channel,  ///< all with the same index on the axis
  row,      ///< all along the last axis
  tile,     ///< `rows` x `size` neighbours along the last two axes; those at the ends may be short
};

/// The value of a code q under the scale s.
enum class Affine : std::uint8_t {
  sym,  ///< q s
  zp,   ///< (q - z) s, z a code of the element format
  min,  ///< q s + m, m a float32
};

/// One block format. Named rows: blocks.def; described ones: find_block_format().
struct BlockFormat {
  std::string name;  ///< canonical name
  const Format* element = nullptr;
  /// An element is the value of its code times 2^element_exponent (mxint8: -6).
  int element_exponent = 0;
  const Format* scale = nullptr;
  Span span = Span::block;
  std::int64_t size = 0;  ///< elements per scale along the axis; 0 unless `span` is block or tile
  std::int64_t rows = 1;  ///< of a tile, along the last axis but one
  bool tensor_scale = false;  ///< a float32 for the whole tensor multiplies every scale
  Affine affine = Affine::sym;
  std::string default_rule;  ///< name of the default scale rule
  std::string source, doc;

  /// The scales are powers of two that a rule chooses by their exponent.
  bool power_of_two_scale() const;
  /// Stored bits of one scale with its zero point or minimum.
  int scale_bits() const;
  /// Stored bits per element of full blocks; scales of whole tensors, channels and rows and the
  /// tensor scale are left out, they depend on the shape (stored_bits() of block_layout.hpp).
  double bits_per_element() const;
};

/// The largest element that a conversion gives without saturating, positive, its exponent included.
Value largest_element(const BlockFormat&);

std::string to_string(Span);
std::string to_string(Affine);
/// "tensor", "channel", "row", "block", "tile". Throws Error with the nearest known name.
Span parse_span(std::string_view text);

inline constexpr std::int64_t kLargestBlock = std::int64_t{1} << 30;

/// The block format of that name: a row of blocks.def, or
///   mx(ELEM,SIZE[,tensor-scale])   e8m0 scale; ELEM a floating format with a zero, at most 16
///                   bits, at most 8 of them exponent, a codebook of float32 numbers, or int8
///                   (times 2^-6, as mxint8)
///   bfp(K,SIZE)     K-bit two's complement, K 2..8, e8m0 scale
///   group(ELEM,SIZE|tensor|channel|row,SCALE[,sym|zp|min][,tensor-scale])   ELEM intK, uintK, or
///                   (sym) a floating format or codebook as above; SCALE float32 or a floating
///                   format of at most 16 bits. A tensor scale needs sym and another scale than
///                   float32
///   nvfp4(SIZE)     group(float4_e2m1fn,SIZE,float8_e4m3fn,tensor-scale)
/// SIZE 1..2^30, or RxC: tiles of R rows and C columns. Spaces around the parts are ignored; a
/// description equal to a row is that row. The reference stays valid as that of find_format() does.
/// Thread-safe. Throws Error naming the part or offering the nearest known name.
const BlockFormat& find_block_format(std::string_view name);
/// group(F,SPAN,float32): what `--format F --granularity SPAN` means; `size` matters for blocks and
/// tiles, `rows` for tiles.
const BlockFormat& scaled_format(const Format& element, Span span, std::int64_t size,
                                 std::int64_t rows = 1);
/// The rows of blocks.def, in its order.
const std::vector<const BlockFormat*>& named_block_formats();

/// How a text that is meant as a block format is written: the row whose name it is without regard
/// to case, or the text itself where it has the shape of a description; "" for any other. Never
/// throws.
std::string block_format_meant(std::string_view text);

}  // namespace numemu
