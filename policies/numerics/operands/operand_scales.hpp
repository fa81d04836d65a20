// The scales that belong to a product's operands, applied to its results.
#pragma once
#include <cstdint>
#include <vector>

#include "emu/net/graph.hpp"
#include "emu/net/numerics.hpp"

namespace numemu::policies {

/// The scales of one operand as its results see them. Empty: 1.
struct OperandScales {
  enum class Kind : std::uint8_t {
    one,     ///< of the whole operand
    line,    ///< of each line of D, which is seen as outer x m x inner lines of n
    column,  ///< of each column of every matrix: [1 or count][1 or n]
  };
  Kind kind = Kind::one;
  std::vector<float> values;
  std::int64_t matrices = 1;  ///< column: 1, or one row of values per matrix

  bool none() const { return values.empty(); }
};

/// D = RNE_f32(alpha * D), alpha = RNE_f32(scale of A * scale of B). Uses threads.
void apply_scales(const net::Product&, const OperandScales& a, const OperandScales& b);

/// Whether each row of the operand is one line of its source, or one column where `along_rows`.
/// Rows may be any of them in any order.
bool reads_whole_lines(const net::Product&, const net::ProductSide&);
/// Scales of A's rows, or of B's, one per line of the source. Throws Error where an operand's row
/// reads more or less than one line of its source (a convolution with several taps), `what` naming
/// the key.
OperandScales row_scales(const net::Product&, net::Side, std::vector<float> scales,
                         const char* what);
/// Scales per index of axis 0 of a weight that is the right operand.
OperandScales channel_scales(const net::Product&, net::Side, std::vector<float> scales,
                             const char* what);
/// Scales of equal shares of the source along axis 0 (samples), each of which gives an equal share
/// of D's lines.
OperandScales sample_scales(const net::Product&, const std::vector<float>& scales);

/// How many samples along axis 0 of the side's source have results of their own: dim(0), or 1 where
/// they do not, and in a network that takes_one_sample().
std::int64_t separable_samples(const net::Product&, net::Side, bool one_sample = false);
/// Whether the graph's shapes are those of one sample, so that no axis has several.
bool takes_one_sample(const net::Graph&);

}  // namespace numemu::policies
