// The specification's table of scalar formats, typed in again: oracles read it, never formats.def.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace numemu::oracle {

/// Which codes are not finite numbers, in the words of the specification.
enum class Reserved {
  nothing,
  inf_and_nan,     ///< exponent field all ones: m = 0 Inf, else NaN
  all_ones,        ///< all bits below the sign: NaN, no Inf
  nan_or_inf,      ///< the same code stands for NaN and Inf, read as NaN; -0 reads as 0
  negative_zero,   ///< NaN in the place of -0, no Inf
  p3109_extended,  ///< NaN at 2^(K-1) or (unsigned) on top; Inf the next largest codes
  p3109_finite     ///< NaN as above, no Inf
};

/// What the codes with exponent field 0 are.
enum class Lowest { subnormals, normals_and_zero, normals, zeros };

struct Specified {
  std::string name;
  int e = 0, m = 0, bias = 0;
  Reserved reserved = Reserved::nothing;
  Lowest lowest = Lowest::subnormals;
  bool is_signed = true;
  bool integer = false;
  bool sign_only = false;  ///< sign1: code 0 is +1, code 1 is -1
  /// The limits as the specification prints them; 0 where it prints none.
  double max = 0, min_normal = 0, min_positive = 0;

  int bits = 0;
  bool symmetric = false;  ///< intN without its most negative code
};

/// The rows, in the order of the specification; integers last.
const std::vector<Specified>& specified_rows();
/// A row, a P3109 name or a descriptor; throws std::invalid_argument for anything else.
Specified specified(std::string_view name);
/// The names binary{K}p{P}{s,u}{e,f} of one width K: signed P < K, unsigned P <= K.
std::vector<std::string> p3109_names(int k);
/// Every descriptor eXmY{specials}{field 0}{sign} of at most `bits` bits that has a finite value
/// besides zero (see docs/formats.md).
std::vector<std::string> descriptor_names(int bits);

}  // namespace numemu::oracle
