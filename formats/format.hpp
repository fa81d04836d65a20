// A number format is one record; nothing that decodes, encodes or rounds names a format.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace numemu {

class Codebook;

/// How a code becomes a number.
enum class Kind : std::uint8_t {
  floating,  ///< sign, exponent, mantissa
  integer,   ///< two's complement or unsigned
  sign,      ///< the sign bit alone: code 0 is +1, code 1 is -1
  codebook,  ///< an index into a list of numbers
};

/// Which codes are not finite numbers (the encoding rules of formats.def, column `specials`).
enum class Specials : std::uint8_t {
  ieee,    ///< all-ones exponent: Inf (fraction 0) and NaN
  nan1,    ///< only the all-ones code of each sign is NaN, no Inf (float8_e4m3fn)
  fnuz,    ///< NaN at the -0 slot, no Inf, no -0
  finite,  ///< every code is a number
  top,     ///< all-ones code of each sign is one NaN-or-Inf symbol, read as NaN; written for both
           ///< (dlfloat16)
  p3109_extended,  ///< signed: NaN at the -0 slot, +-Inf the largest code of each sign; unsigned:
                   ///< NaN on top, +Inf below
  p3109_finite,    ///< signed: NaN at the -0 slot; unsigned: NaN is the top code
};

/// What a zero exponent field means.
enum class FieldZero : std::uint8_t {
  subnormal,  ///< m * 2^(1 - bias - M)
  normal,     ///< one more binade of normal numbers; codes 0 and sign-only still read as zeros
  scale,      ///< one more binade, and no zero at all (float8_e8m0fnu: code 0 is 2^-127)
  flush,      ///< subnormal codes read as zero; results below the smallest normal become zero after
              ///< rounding
};

/// One scalar format; a code has the layout of `kind` in the low `bits` bits. The columns from
/// `exponent_bits` to `specials` are for floating formats. Source of each row: see formats.def.
struct Format {
  std::string name;  ///< canonical name
  Kind kind = Kind::floating;
  bool is_signed = true;
  int bits = 0;  ///< stored bits of one code (19 for tfloat32)
  int exponent_bits = 0;
  int mantissa_bits = 0;
  int bias = 0;
  Specials specials = Specials::finite;
  FieldZero field_zero = FieldZero::subnormal;
  int container_shift =
      0;               ///< low container bits that are always zero (13 for tfloat32 in 32 bits)
  std::string source;  ///< where the row comes from
  std::string doc;     ///< what it is, in one line
  /// The numbers of a codebook, else empty. A codebook counts as signed: whatever its entries are,
  /// every number has a nearest one.
  std::shared_ptr<const Codebook> codebook = {};

  /// 0 where a code has no sign bit.
  std::uint64_t sign_bit() const {
    return is_signed && kind != Kind::codebook ? std::uint64_t{1} << (bits - 1) : 0;
  }
  std::uint64_t code_mask() const {
    return bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
  }
  /// The largest bit pattern that is a code: code_mask(), but a codebook ends with its last entry.
  std::uint64_t last_code() const;
  /// Some code means infinity (for `top` it is the NaN-or-Inf symbol, which reads as NaN).
  bool has_infinity() const;
  bool has_nan() const;
  bool has_negative_zero() const;
  bool has_zero() const {
    return field_zero != FieldZero::scale || (kind == Kind::codebook && codebook_has_zero());
  }
  /// Code of the largest finite value. Negative: the most negative one; integers: -2^(bits-1); a
  /// codebook's first entry.
  std::uint64_t largest_code(bool negative = false) const;
  /// Code of an infinity; only if has_infinity() (and, when negative, is_signed).
  std::uint64_t infinity_code(bool negative = false) const;
  /// Canonical (quiet) NaN code; only if has_nan(). The sign is dropped where NaN has none.
  std::uint64_t nan_code(bool negative = false) const;

  /// All that decides what codes mean; a codebook by its record.
  auto key() const {
    return std::make_tuple(kind, is_signed, bits, exponent_bits, mantissa_bits, bias, specials,
                           field_zero, container_shift, codebook);
  }
  /// Whether all codes mean the same numbers, whatever the formats are called.
  friend bool operator==(const Format&, const Format&);

 private:
  bool codebook_has_zero() const;
};

/// The largest finite value of the format, exact in a double for every format up to float64.
/// These four throw Error for described formats whose values leave the range of a double (e15m2).
double largest_value(const Format&);
/// The smallest positive normal value; 1 for integers and the sign, for a codebook as below.
double smallest_normal(const Format&);
/// The smallest positive value; 1 for integers and the sign. Throws Error for a codebook without
/// positive entries.
double smallest_value(const Format&);
/// Every finite value in ascending order (-0 and +0 once). For formats of at most 16 bits.
std::vector<double> finite_values(const Format&);

/// The format of that name, alias or descriptor ("float8_e4m3fn", "e4m3fn", "e3m2+finite",
/// "binary8p3se", "codebook(FILE.npy)", "posit(8,2)": codebooks/named_codebooks.hpp). A codebook's
/// file is read at every call; the same name and entries give the same record. The reference stays
/// valid for the life of the program or, of a described format, of the scope in which it was first
/// found (interned.hpp). Thread-safe. Throws Error with the nearest known name, or with what is
/// wrong in the file.
const Format& find_format(std::string_view name);
/// find_format("float32")
const Format& float32();
/// The rows of formats.def, in its order.
const std::vector<const Format*>& named_formats();
/// Other names of a row; empty for a described format. The canonical name is not among them.
std::vector<std::string> aliases_of(const Format&);

/// eXmY[bB][+ieee|+nan1|+fnuz|+finite][+nosub|+ftz][+unsigned]: 1 <= X <= 15, 0 <= Y <= 23, |B| <=
/// 32767; default bias 2^(X-1)-1, default +ieee; the parts after '+' in any order.
/// binary{K}p{P}{s|u}{e|f} (IEEE P3109): 3 <= K <= 15, signed 1 <= P < K, unsigned 1 <= P <= K.
/// int{N}, uint{N}: 9 <= N <= 16, 32 and 64 (narrower ones are rows), and uint1. The record's name
/// is the canonical spelling. Empty if `text` has neither shape. Throws Error naming the offending
/// part if it has the shape but is out of range.
std::optional<Format> parse_descriptor(std::string_view text);

}  // namespace numemu
