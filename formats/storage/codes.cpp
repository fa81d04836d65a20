// Checks every element once: code behind this check never sees bits that are not a code.
#include "formats/storage/codes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "formats/error.hpp"
#include "formats/joined.hpp"

namespace numemu {
namespace {

/// Codes of the format, shifted into their container, are IEEE numbers of that layout.
bool is_ieee(const Format& f, int exponent_bits, int mantissa_bits) {
  return f.kind == Kind::floating && f.is_signed && f.exponent_bits == exponent_bits &&
         f.mantissa_bits + f.container_shift == mantissa_bits &&
         f.bias == (1 << (exponent_bits - 1)) - 1 && f.specials == Specials::ieee &&
         f.field_zero == FieldZero::subnormal;
}

std::vector<ArrayType> accepted_types(const Format& f) {
  std::vector<ArrayType> types = {container_type(f)};
  if (f.kind == Kind::integer && f.is_signed)
    types.push_back(f.bits <= 8    ? ArrayType::int8
                    : f.bits <= 16 ? ArrayType::int16
                    : f.bits <= 32 ? ArrayType::int32
                                   : ArrayType::int64);
  if (is_ieee(f, 5, 10)) types.push_back(ArrayType::float16);
  if (types[0] == ArrayType::float32) types.push_back(ArrayType::uint32);
  if (types[0] == ArrayType::float64) types.push_back(ArrayType::uint64);
  return types;
}

/// The source of an array, and the file that names f as its format.
struct Origin {
  const std::string& path;
  const Format& f;
  const std::string& said_by;
};

[[noreturn]] void refuse_element(const Origin& o, std::int64_t i, const std::string& range,
                                 const std::string& found) {
  throw Error(fmt::format("{}: element {}: expected a code of {} within {}, found {}", o.path, i,
                          named_by(o.f.name, o.said_by), range, found));
}

/// Sign-extended integers become zero-extended codes.
template <class Signed>
void zero_extend(const Origin& origin, Array& array) {
  const Format& f = origin.f;
  const std::int64_t most = static_cast<std::int64_t>(f.largest_code()), least = -most - 1;
  array.data.own();
  auto* codes = array.as<Signed>();
  for (std::int64_t i = 0; i < array.elements(); ++i) {
    if (codes[i] < least || codes[i] > most)
      refuse_element(origin, i, fmt::format("{}..{}", least, most), fmt::format("{}", codes[i]));
    codes[i] = static_cast<Signed>(static_cast<std::uint64_t>(codes[i]) & f.code_mask());
  }
}

template <class Word>
void check_codes(const Origin& origin, const Array& array) {
  const Format& f = origin.f;
  const auto last = static_cast<Word>(f.last_code() << f.container_shift);
  const auto below = static_cast<Word>((std::uint64_t{1} << f.container_shift) - 1);
  const Word* codes = array.as<Word>();
  const auto bad = [=](Word code) { return (code > last) | ((code & below) != 0); };
  // Reduced without a branch first: nearly every array is fine, and then this runs at memory speed.
  bool any = false;
  for (std::int64_t i = 0; i < array.elements(); ++i) any |= bad(codes[i]);
  if (!any) return;
  for (std::int64_t i = 0; i < array.elements(); ++i) {
    if (!bad(codes[i])) continue;
    refuse_element(origin, i,
                   fmt::format("0..{:#x}{}", last,
                               below == 0 ? "" : fmt::format(" in steps of {:#x}", below + 1)),
                   fmt::format("{:#x}", codes[i]));
  }
}

void check_codes(const Origin& origin, const Array& array) {
  const Format& f = origin.f;
  switch (bytes_of(array.type)) {
    case 1:
      return f.last_code() == 0xff ? void() : check_codes<std::uint8_t>(origin, array);
    case 2:
      return f.last_code() == 0xffff ? void() : check_codes<std::uint16_t>(origin, array);
    case 4:
      return f.last_code() == 0xffffffff ? void() : check_codes<std::uint32_t>(origin, array);
    default:
      return check_codes<std::uint64_t>(origin, array);
  }
}

}  // namespace

ArrayType container_type(const Format& f) {
  const int bits = f.bits + f.container_shift;
  if (bits <= 8) return ArrayType::uint8;
  if (bits <= 16) return ArrayType::uint16;
  if (bits <= 32) return is_ieee(f, 8, 23) ? ArrayType::float32 : ArrayType::uint32;
  return is_ieee(f, 11, 52) ? ArrayType::float64 : ArrayType::uint64;
}

void require_type(const std::string& path, ArrayType found, const std::vector<ArrayType>& accepted,
                  const std::string& what) {
  if (std::find(accepted.begin(), accepted.end(), found) != accepted.end()) return;
  std::vector<std::string_view> names;
  for (const ArrayType type : accepted) names.push_back(to_string(type));
  throw Error(fmt::format("{}: dtype: expected {} {}, found {}", path, joined(names, " or "), what,
                          to_string(found)));
}

Codes checked_codes(const std::string& path, const Format& f, Array array,
                    const std::string& said_by) {
  if (array.type != container_type(f))
    require_type(path, array.type, accepted_types(f), "codes of " + named_by(f.name, said_by));
  const Origin origin{path, f, said_by};
  if (array.type == ArrayType::int8) {
    zero_extend<std::int8_t>(origin, array);
  } else if (array.type == ArrayType::int16) {
    zero_extend<std::int16_t>(origin, array);
  } else if (array.type == ArrayType::int32) {
    zero_extend<std::int32_t>(origin, array);
  } else if (array.type == ArrayType::int64) {
    zero_extend<std::int64_t>(origin, array);
  } else {
    check_codes(origin, array);
  }
  array.type = container_type(f);
  return {&f, std::move(array)};
}

std::string named_by(const std::string& name, const std::string& said_by) {
  return said_by.empty() ? name : fmt::format("{} (from {})", name, said_by);
}

}  // namespace numemu
