// Conversions of other libraries outside a format's range, and the numemu flags that match them.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/rounding.hpp"

namespace numemu {

/// What a conversion makes of an input, seen from the result.
enum class Outcome : std::uint8_t {
  largest,     ///< the largest finite value of the input's sign (of the positive one for NaN)
  infinity,    ///< of the input's sign
  nan,         ///< of any sign
  zero,        ///< +0
  minus_zero,  ///< -0
  smallest,    ///< the smallest positive value
};
std::string to_string(Outcome);

/// How a row is known: from a document, from the library's source, or from memory only.
enum class Evidence : std::uint8_t { documented, read, recalled };
std::string to_string(Evidence);

/// The library where the row comes from and how it is known.
struct Origin {
  std::string library, version, operation;
  Evidence evidence;
  std::string source;
};

/// A conversion of float32 to a format by a library.
struct ConversionClaim {
  Origin origin;
  std::string format;  ///< numemu's name
  Outcome beyond;      ///< of the largest float32 number
  Outcome infinity, nan;
  Outcome minus_zero;
  Outcome half_smallest;  ///< of half the smallest positive value
  Outcome smallest;       ///< of the smallest positive value
  /// The numemu conversion that does the same; empty if there is none.
  struct Flags {
    Rounding rounding;
    Overflow overflow;
  };
  std::optional<Flags> flags;
  /// Without flags: the library turns `input` into `output`.
  double input = 0, output = 0;
  std::string note;  ///< a remark, or why there are no flags
};

/// How a library scales blocks.
struct BlockClaim {
  Origin origin;
  std::vector<std::string> blocks;  ///< names of block formats
  std::string rule;                 ///< name of numemu's scale rule, empty if none does the same
  std::optional<Rounding> rounding;
  std::string note;  ///< where it differs, or why there is no rule
};

/// The rows of conformance.def, in its order.
const std::vector<ConversionClaim>& conversion_claims();
const std::vector<BlockClaim>& block_claims();

/// The text of docs/conformance.md.
std::string conformance_page();

}  // namespace numemu
