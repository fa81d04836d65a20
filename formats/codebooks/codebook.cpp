// Codebooks: reading their files, and placing exact reals among arbitrary doubles with big
// integers.
#include "formats/codebooks/codebook.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <boost/multiprecision/cpp_int.hpp>
#include <cmath>
#include <filesystem>
#include <limits>

#include "formats/digest.hpp"
#include "formats/error.hpp"
#include "formats/storage/npy.hpp"
#include "formats/storage/utf8.hpp"

namespace numemu {
namespace {

using boost::multiprecision::cpp_int;

// The exponent of the leading bit: 2^e <= |v| < 2^(e + 1).
std::int64_t exponent_of_leading_bit(const Value& v) {
  return std::int64_t{v.exponent} + static_cast<std::int64_t>(std::bit_width(v.significand)) - 1;
}

// Less than zero, zero or more as |a| is less than, equal to or more than |b|; b is not sticky.
int compare_magnitudes(const Value& a, const Value& b) {
  const std::int64_t left = exponent_of_leading_bit(a), right = exponent_of_leading_bit(b);
  if (left != right) return left < right ? -1 : 1;
  const std::uint64_t x = a.significand << std::countl_zero(a.significand);
  const std::uint64_t y = b.significand << std::countl_zero(b.significand);
  if (x != y) return x < y ? -1 : 1;
  return a.sticky ? 1 : 0;
}

int sign_of(const Value& v) { return v.kind == Class::zero ? 0 : v.negative ? -1 : 1; }

int compare(const Value& v, const Value& entry) {
  if (sign_of(v) != sign_of(entry)) return sign_of(v) < sign_of(entry) ? -1 : 1;
  return sign_of(v) == 0 ? 0 : sign_of(v) * compare_magnitudes(v, entry);
}

// v in units of 2^unit, unit <= v.exponent; the sticky part is left out.
cpp_int in_units(const Value& v, std::int64_t unit) {
  if (v.kind == Class::zero) return 0;
  cpp_int integer = v.significand;
  integer <<= static_cast<unsigned>(v.exponent - unit);
  return v.negative ? cpp_int(-integer) : integer;
}

// Gaps of doubles are at least 2^-1074 wide: what is this small is the same, seen from any of them,
// as any other number of its sign that is not zero.
Value bounded_below(const Value& v) {
  constexpr std::int32_t kTiny = -1200;
  if (v.kind == Class::zero || exponent_of_leading_bit(v) >= kTiny) return v;
  return {Class::finite, v.negative, true, kTiny, 1};
}

std::vector<double> read_entries(const std::string& path) {
  require_utf8("codebook(FILE)", path);  // sidecars, recipes and rows name it
  // A header of .npy has at most 64 KiB and a few bytes; a file this size needs not be read.
  constexpr std::uintmax_t kMostBytes = Codebook::kMostEntries * sizeof(double) + 65536 + 16;
  std::error_code none;
  const std::uintmax_t bytes = std::filesystem::file_size(path, none);
  if (!none && bytes > kMostBytes)
    throw Error(fmt::format("{}: {} bytes, expected a codebook of at most {} float64 entries", path,
                            bytes, Codebook::kMostEntries));
  const Array array = read_npy(path);
  if (array.type != ArrayType::float64)
    throw Error(
        fmt::format("{}: dtype {}, expected float64 for a codebook", path, to_string(array.type)));
  if (array.shape.size() != 1)
    throw Error(fmt::format("{}: shape {}, expected one axis for a codebook", path,
                            shape_text(array.shape)));
  return {array.as<double>(), array.as<double>() + array.elements()};
}

}  // namespace

Codebook::Codebook(const std::vector<double>& entries, const std::string& origin) {
  if (entries.empty() || entries.size() > kMostEntries)
    throw Error(fmt::format("{}: {} entries, expected 1 to {} for a codebook", origin,
                            entries.size(), kMostEntries));
  entries_.reserve(entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    Value v = value_of(entries[i]);
    if (v.kind == Class::nan || v.kind == Class::infinite)
      throw Error(fmt::format("{}: entry {} is {}, expected a finite number", origin, i,
                              v.kind == Class::nan ? "NaN" : "infinite"));
    if (v.kind == Class::zero) v.negative = false;
    if (i > 0 && compare(v, entries_.back()) <= 0)
      throw Error(fmt::format("{}: entry {} is {}, expected more than {} before it (ascending)",
                              origin, i, entries[i], entries[i - 1]));
    has_zero_ |= v.kind == Class::zero;
    entries_.push_back(shortest(v));
  }
}

bool operator==(const Codebook& a, const Codebook& b) {
  return std::ranges::equal(a.entries_, b.entries_,
                            [](const Value& x, const Value& y) { return compare(x, y) == 0; });
}

CodebookPlace Codebook::locate(const Value& real) const {
  const Value v = bounded_below(real);
  const auto after =
      std::upper_bound(entries_.begin(), entries_.end(), v,
                       [](const Value& x, const Value& entry) { return compare(x, entry) < 0; });
  const std::int64_t above = after - entries_.begin();
  if (above == 0) return {.outside = true, .below = true};
  const Value& low = entries_[static_cast<std::size_t>(above - 1)];
  if (compare(v, low) == 0) return {.down = above - 1};
  if (after == entries_.end()) return {.outside = true};
  const Value& high = *after;

  std::int64_t unit = v.kind == Class::zero ? low.exponent : v.exponent;
  for (const Value* end : {&low, &high})
    if (end->kind != Class::zero) unit = std::min<std::int64_t>(unit, end->exponent);
  const cpp_int x = in_units(v, unit), a = in_units(low, unit), b = in_units(high, unit);
  const bool negative = sign_of(v) < 0;
  const cpp_int part = (negative ? cpp_int(b - x) : cpp_int(x - a)) << 64;
  cpp_int quotient, rest;
  divide_qr(part, cpp_int(b - a), quotient, rest);
  return {.across_zero = sign_of(low) < 0 && sign_of(high) > 0,
          .down = negative ? above : above - 1,
          .fraction = static_cast<std::uint64_t>(quotient),
          .sticky = v.sticky || rest != 0};
}

Format read_codebook_format(const std::string& path) {
  const std::vector<double> entries = read_entries(path);
  const std::string_view bytes(reinterpret_cast<const char*>(entries.data()),
                               entries.size() * sizeof(double));
  auto codebook = std::make_shared<const Codebook>(entries, path);
  return {.name = "codebook(" + path + ")",
          .kind = Kind::codebook,
          .bits = std::max(1, static_cast<int>(std::bit_width(codebook->size() - 1))),
          .field_zero = FieldZero::scale,
          .source = "entries with SHA-256 " + sha256_hex(bytes),
          .doc = fmt::format("{} entries in ascending order", entries.size()),
          .codebook = std::move(codebook)};
}

}  // namespace numemu
