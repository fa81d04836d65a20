// Eight codes at a time are one 64-bit word: three shift-and-merge steps make them contiguous.
#include "formats/storage/packing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>

#include "formats/error.hpp"
#include "formats/storage/array.hpp"
#include "formats/suggest.hpp"

namespace numemu {
namespace {

static_assert(std::endian::native == std::endian::little, "words are loaded as they lie");

using Word = std::uint64_t;

constexpr std::int64_t kGroup = 8;             // codes of one word
constexpr std::int64_t kTask = 1 << 15;        // codes one thread takes at a time; a multiple of 8
constexpr std::int64_t kSequential = 1 << 17;  // codes below which threads cost more than they save

/// Every byte's low `bits` bits.
constexpr Word low_bits(int bits) { return 0x0101010101010101u * ((1u << bits) - 1); }

/// Eight codes, one per byte, to the low 8 * Bits bits.
template <int Bits>
Word compress(Word w) {
  w &= low_bits(Bits);
  w = (w & 0x00ff00ff00ff00ffu) | (w & 0xff00ff00ff00ff00u) >> (8 - Bits);
  w = (w & 0x0000ffff0000ffffu) | (w & 0xffff0000ffff0000u) >> 2 * (8 - Bits);
  return (w & 0x00000000ffffffffu) | (w & 0xffffffff00000000u) >> 4 * (8 - Bits);
}

template <int Bits>
Word expand(Word w) {
  constexpr Word kQuarter = (Word{1} << 4 * Bits) - 1;
  constexpr Word kPair = 0x0000000100000001u * ((Word{1} << 2 * Bits) - 1);
  constexpr Word kOne = 0x0001000100010001u * ((Word{1} << Bits) - 1);
  w = (w & kQuarter) | (w & ~kQuarter) << 4 * (8 - Bits);
  w = (w & kPair) | (w & ~kPair) << 2 * (8 - Bits);
  w = (w & kOne) | (w & ~kOne) << (8 - Bits);
  return w & low_bits(Bits);
}

/// The fields of every byte in the opposite order; its own inverse.
template <int Bits>
Word mirror(Word w) {
  if constexpr (Bits <= 4) w = (w & low_bits(4)) << 4 | (w >> 4 & low_bits(4));
  if constexpr (Bits <= 2) w = (w & 0x3333333333333333u) << 2 | (w >> 2 & 0x3333333333333333u);
  if constexpr (Bits <= 1) w = (w & 0x5555555555555555u) << 1 | (w >> 1 & 0x5555555555555555u);
  return w;
}

/// So many codes left take at least the 8 bytes of a word: moves of 3 or 5 bytes are several times
/// slower.
template <int Bits>
constexpr std::int64_t kWhole = (64 + Bits - 1) / Bits;

/// `length` codes that start on a byte.
template <int Bits, bool kMirror>
void pack_run(const std::uint8_t* codes, std::int64_t length, std::uint8_t* out) {
  std::int64_t i = 0;
  const auto one = [&] {
    Word w;
    std::memcpy(&w, codes + i, sizeof w);
    w = compress<Bits>(w);
    if constexpr (kMirror) w = mirror<Bits>(w);
    return w;
  };
  // A whole word is stored; what it has too much, the next group overwrites.
  for (; i + kWhole<Bits> <= length; i += kGroup, out += Bits) {
    const Word w = one();
    std::memcpy(out, &w, sizeof w);
  }
  for (; i + kGroup <= length; i += kGroup, out += Bits) {
    const Word w = one();
    std::memcpy(out, &w, Bits);
  }
  if (i == length) return;
  Word w = 0;
  std::memcpy(&w, codes + i, static_cast<std::size_t>(length - i));
  w = compress<Bits>(w);
  if constexpr (kMirror) w = mirror<Bits>(w);
  std::memcpy(out, &w, static_cast<std::size_t>(packed_row_bytes(length - i, Bits)));
}

/// Whether the bits after the last code are zero.
template <int Bits, bool kMirror>
bool unpack_run(const std::uint8_t* packed, std::int64_t length, std::uint8_t* out) {
  std::int64_t i = 0;
  const auto one = [&](Word w) {
    if constexpr (kMirror) w = mirror<Bits>(w);
    w = expand<Bits>(w);
    std::memcpy(out + i, &w, sizeof w);
  };
  for (; i + kWhole<Bits> <= length; i += kGroup, packed += Bits) {
    Word w;
    std::memcpy(&w, packed, sizeof w);
    one(w & (~Word{0} >> 8 * (8 - Bits)));
  }
  for (; i + kGroup <= length; i += kGroup, packed += Bits) {
    Word w = 0;
    std::memcpy(&w, packed, Bits);
    one(w);
  }
  const std::int64_t rest = length - i;
  if (rest == 0) return true;
  Word w = 0;
  std::memcpy(&w, packed, static_cast<std::size_t>(packed_row_bytes(rest, Bits)));
  if constexpr (kMirror) w = mirror<Bits>(w);
  const bool clean = w >> rest * Bits == 0;
  w = expand<Bits>(w);
  std::memcpy(out + i, &w, static_cast<std::size_t>(rest));
  return clean;
}

/// run(row, first, count) over all codes: rows are cut into tasks of whole groups.
template <class Run>
void for_each_run(std::int64_t rows, std::int64_t length, const Run& run) {
  if (length == 0) return;
  const std::int64_t tasks_of_row = (length + kTask - 1) / kTask;
  const std::int64_t tasks = rows * tasks_of_row;
  // A task covers many short rows.
  const std::int64_t chunk = std::max<std::int64_t>(1, kTask / length);
#pragma omp parallel for schedule(static) if (rows * length >= kSequential)
  for (std::int64_t begin = 0; begin < tasks; begin += chunk) {
    for (std::int64_t task = begin; task < std::min(tasks, begin + chunk); ++task) {
      const std::int64_t row = task / tasks_of_row, first = task % tasks_of_row * kTask;
      run(row, first, std::min(kTask, length - first));
    }
  }
}

template <int Bits, bool kMirror>
void pack_all(const std::uint8_t* codes, std::int64_t rows, std::int64_t length,
              std::uint8_t* out) {
  const std::int64_t row_bytes = packed_row_bytes(length, Bits);
  for_each_run(rows, length, [=](std::int64_t row, std::int64_t first, std::int64_t count) {
    pack_run<Bits, kMirror>(codes + row * length + first, count,
                            out + row * row_bytes + first / kGroup * Bits);
  });
}

template <int Bits, bool kMirror>
std::int64_t unpack_all(const std::uint8_t* packed, std::int64_t rows, std::int64_t length,
                        std::uint8_t* out) {
  const std::int64_t row_bytes = packed_row_bytes(length, Bits);
  std::atomic<std::int64_t> first_bad{rows};
  for_each_run(rows, length,
               [=, &first_bad](std::int64_t row, std::int64_t first, std::int64_t count) {
                 if (unpack_run<Bits, kMirror>(packed + row * row_bytes + first / kGroup * Bits,
                                               count, out + row * length + first)) {
                   return;
                 }
                 std::int64_t seen = first_bad.load();
                 while (row < seen && !first_bad.compare_exchange_weak(seen, row)) {
                 }
               });
  return first_bad == rows ? -1 : first_bad.load();
}

/// use(width, order) with both as compile-time constants.
template <class Use>
auto with_constants(int bits, BitOrder order, const Use& use) {
  check_bit_order(order, bits);
  using std::bool_constant;
  using std::integral_constant;
  const bool high = order == BitOrder::high_first;
  switch (bits) {
    case 1:
      return high ? use(integral_constant<int, 1>(), bool_constant<true>())
                  : use(integral_constant<int, 1>(), bool_constant<false>());
    case 2:
      return high ? use(integral_constant<int, 2>(), bool_constant<true>())
                  : use(integral_constant<int, 2>(), bool_constant<false>());
    case 3:
      return use(integral_constant<int, 3>(), bool_constant<false>());
    case 4:
      return high ? use(integral_constant<int, 4>(), bool_constant<true>())
                  : use(integral_constant<int, 4>(), bool_constant<false>());
    case 5:
      return use(integral_constant<int, 5>(), bool_constant<false>());
    case 6:
      return use(integral_constant<int, 6>(), bool_constant<false>());
    case 7:
      return use(integral_constant<int, 7>(), bool_constant<false>());
    default:
      return use(integral_constant<int, 8>(), bool_constant<false>());
  }
}

}  // namespace

BitOrder parse_bit_order(std::string_view name) {
  if (name == "low-first") return BitOrder::low_first;
  if (name == "high-first") return BitOrder::high_first;
  throw Error(unknown_name("bit order", name, {"low-first", "high-first"}));
}

std::string to_string(BitOrder order) {
  return order == BitOrder::low_first ? "low-first" : "high-first";
}

void check_bit_order(BitOrder order, int bits) {
  if (bits < 1 || bits > 8)
    throw Error(
        fmt::format("codes of {} cannot be packed: expected 1 to 8 bits", counted(bits, "bit")));
  if (order == BitOrder::high_first && 8 % bits != 0) {
    throw Error(fmt::format("order high-first needs codes of 1, 2 or 4 bits, found {}",
                            counted(bits, "bit")));
  }
}

std::int64_t packed_row_bytes(std::int64_t length, int bits) {
  return length / 8 * bits + (length % 8 * bits + 7) / 8;
}

PackedRows::PackedRows(const ArrayShape& shape) {
  const std::int64_t elements = element_count_of(shape).value();
  if (!shape.empty()) length = shape.back();
  count = elements == 0 ? 0 : elements / length;
}

ArrayShape packed_shape(ArrayShape shape, int bits) {
  if (shape.empty()) shape.push_back(1);
  shape.back() = packed_row_bytes(shape.back(), bits);
  return shape;
}

void pack_codes(const std::uint8_t* codes, std::int64_t rows, std::int64_t length, int bits,
                BitOrder order, std::uint8_t* out) {
  with_constants(bits, order, [&](auto width, auto mirrored) {
    pack_all<width, mirrored>(codes, rows, length, out);
  });
}

std::int64_t unpack_codes(const std::uint8_t* packed, std::int64_t rows, std::int64_t length,
                          int bits, BitOrder order, std::uint8_t* out) {
  return with_constants(bits, order, [&](auto width, auto mirrored) {
    return unpack_all<width, mirrored>(packed, rows, length, out);
  });
}

}  // namespace numemu
