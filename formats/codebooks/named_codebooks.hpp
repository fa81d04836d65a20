// Codebooks that have a name: nf4, af4, posit(N,ES), log(B,F), lloyd(LAW,N).
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "formats/format.hpp"

namespace numemu {

/// The text names a codebook, or would but for what its parentheses hold.
bool is_named_codebook(std::string_view text);
/// The format that such a text names:
///   nf4            the 16 numbers of NormalFloat, largest magnitude 1
///   af4            the 16 numbers of AbnormalFloat for blocks of 64, largest magnitude 1
///   posit(N[,ES])  the numbers of N-bit posits, N 3 to 16, ES 0 to 5 (the standard's 2 by default)
///                  within the range of normal doubles; without NaR
///   log(B[,F])     0 and +-2^(e / 2^F), e from -(2^(B-2) - 1) to 2^(B-2) - 1, each the nearest
///                  float32; B 3 to 16, F 0 to 8 (0 by default), exponents within float32
///   lloyd(LAW,N)   the N Lloyd-Max levels of a law (lloyd_max.hpp), each the nearest float32
/// Codes are indices in ascending order, as of every codebook. Throws Error naming the part.
Format parse_named_codebook(std::string_view text);

/// What such names look like, for lists and messages.
struct NamedCodebook {
  std::string_view shape, source, doc;
};
const std::vector<NamedCodebook>& named_codebooks();

/// The value of an N-bit posit with ES exponent bits, by its bits; they are not NaR.
double posit_value(std::uint32_t bits, int n, int es);

}  // namespace numemu
