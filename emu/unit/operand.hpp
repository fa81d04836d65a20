// Reading an operand: its container, its range, its source decoded and padded once per product.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "emu/unit/unit.hpp"
#include "formats/value.hpp"

namespace numemu::unit {

enum class Container : std::uint8_t { bytes, halves, floats, doubles };

/// How codes of this format are stored, or nothing where no operand can have it: uint8 up to 8
/// bits, uint16 up to 16, float for formats that are the top bits of a float32, double for float64.
std::optional<Container> container_of(const Format&);

/// Every finite non-zero value v is a multiple of 2^low, and |v| < 2^top. Empty (low > top) when
/// there is none.
struct Exponents {
  int low = 1, top = 0;
  bool empty() const { return low > top; }
  void include(const Value&);
};

/// Of a format, from its parameters alone.
Exponents exponents_of(const Format&);
/// The exponent of the smallest normal number of a floating format.
int smallest_normal_exponent(const Format&);
/// Whether every value of the format is a float32.
bool fits_float32(const Format&);

/// The double equal to a value, NaN where it has none.
double double_or_nan(const Value&);

/// The code of element `index` of the unpadded source; bits above the format's width are ignored.
std::uint64_t code_at(const Operand&, std::int64_t index);

/// Number of elements in the source of an operand of `rows` x `depth` elements (without padding: as
/// many as the gather reaches). Throws Error when the gather has other numbers of offsets or
/// reaches outside its padded source.
std::int64_t source_size(const Operand&, std::int64_t rows, std::int64_t depth);

/// An operand ready to be gathered: element (r, k) = values[row[r] + depth[k]]. Padding reads as
/// +0.
template <class T>
struct Source {
  const T* values = nullptr;
  const std::int32_t* row = nullptr;
  const std::int32_t* depth = nullptr;
  std::shared_ptr<const T[]> storage;  ///< empty where the operand is read in place
};

/// Decodes and pads an operand, every element through `map`. T is float, double, int16 or Value
/// (T{} is the padding).
template <class T>
Source<T> decode_source(const Operand&, std::int64_t rows, std::int64_t depth,
                        const std::function<T(const Value&)>& map);
/// decode_source() as float32, for formats that fit; float32 operands without padding are read in
/// place. Like decode_numbers() and scan(), it reads a prepared operand once only.
Source<float> decode_floats(const Operand&, std::int64_t rows, std::int64_t depth);
/// decode_source() as float or double, NaN for values that T does not hold.
template <class T>
Source<T> decode_numbers(const Operand&, std::int64_t rows, std::int64_t depth);

/// Every finite non-zero value present in the source, and whether NaN or infinity is.
struct Present {
  Exponents exponents;
  bool specials = false;
};
Present scan(const Operand&, std::int64_t rows, std::int64_t depth);

}  // namespace numemu::unit
