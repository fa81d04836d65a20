// Packing against a bit-by-bit model, and the layouts that other programs write.
#include "formats/storage/packing.hpp"

#include <omp.h>

#include <algorithm>
#include <vector>

#include "formats/random.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace numemu::packing_test {
namespace {

using Octets = std::vector<std::uint8_t>;

Octets random_codes(std::int64_t n, int bits) {
  Octets codes(static_cast<std::size_t>(n));
  const RandomSource source{.seed = 7};
  for (std::int64_t i = 0; i < n; ++i)
    codes[i] = static_cast<std::uint8_t>(source.bits(static_cast<std::uint64_t>(i), bits));
  return codes;
}

/// The definition: bit k of element i of a row is bit i b + k of the row's stream (from the low end
/// of each byte), or the fields of a byte in the opposite order.
Octets model(const Octets& codes, std::int64_t rows, std::int64_t length, int bits,
             BitOrder order) {
  const std::int64_t row_bytes = (length * bits + 7) / 8;
  Octets out(static_cast<std::size_t>(rows * row_bytes));
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t i = 0; i < length; ++i) {
      for (int k = 0; k < bits; ++k) {
        const std::int64_t bit = i * bits + k, byte = row * row_bytes + bit / 8;
        std::int64_t place = bit % 8;
        if (order == BitOrder::high_first) place = 8 - bits - (i * bits % 8) + k;
        out[byte] |= static_cast<std::uint8_t>((codes[row * length + i] >> k & 1) << place);
      }
    }
  }
  return out;
}

void check(std::int64_t rows, std::int64_t length, int bits, BitOrder order) {
  const Octets codes = random_codes(rows * length, bits);
  const Octets expected = model(codes, rows, length, bits, order);
  REQUIRE(static_cast<std::int64_t>(expected.size()) == rows * packed_row_bytes(length, bits));
  // A guard byte on each side: neither direction writes beyond its array.
  Octets packed(expected.size() + 2, 0xa5), again(codes.size() + 2, 0xa5);
  pack_codes(codes.data(), rows, length, bits, order, packed.data() + 1);
  CHECK(std::equal(expected.begin(), expected.end(), packed.begin() + 1));
  CHECK(unpack_codes(expected.data(), rows, length, bits, order, again.data() + 1) == -1);
  CHECK(std::equal(codes.begin(), codes.end(), again.begin() + 1));
  CHECK((packed.front() == 0xa5 && packed.back() == 0xa5));
  CHECK((again.front() == 0xa5 && again.back() == 0xa5));
}

TEST_CASE("every width, order and row length matches the definition", "[fast]") {
  for (int bits = 1; bits <= 8; ++bits) {
    for (const BitOrder order : {BitOrder::low_first, BitOrder::high_first}) {
      if (order == BitOrder::high_first && 8 % bits != 0) continue;
      for (std::int64_t length = 0; length <= 33; ++length) check(3, length, bits, order);
    }
  }
}

TEST_CASE("large arrays are cut among threads without a trace", "[fast]") {
  const int before = omp_get_max_threads();
  for (const int threads : {1, 2, 3}) {
    omp_set_num_threads(threads);
    for (const int bits : {1, 3, 4, 6}) {
      check(1, 200'003, bits, BitOrder::low_first);
      check(50'000, 3, bits, BitOrder::low_first);
      check(5, 40'001, bits, BitOrder::low_first);
    }
    check(3, 70'001, 4, BitOrder::high_first);
  }
  omp_set_num_threads(before);
}

TEST_CASE("published layouts", "[fast]") {
  // Two 4-bit codes a byte, the low nibble first (docs of torch.float4_e2m1fn_x2), and mirrored.
  const Octets nibbles = {0x1, 0x2, 0x3};
  Octets out(2);
  pack_codes(nibbles.data(), 1, 3, 4, BitOrder::low_first, out.data());
  CHECK(out == Octets{0x21, 0x03});
  pack_codes(nibbles.data(), 1, 3, 4, BitOrder::high_first, out.data());
  CHECK(out == Octets{0x12, 0x30});
  // Four 6-bit codes in three bytes, little-endian.
  const Octets sixes = {0b000001, 0b000010, 0b000100, 0b111000};
  Octets three(3);
  pack_codes(sixes.data(), 1, 4, 6, BitOrder::low_first, three.data());
  CHECK(three == Octets{0b10000001, 0b01000000, 0b11100000});
}

TEST_CASE("padding bits that are not zero are found in the first row that has them", "[fast]") {
  for (const BitOrder order : {BitOrder::low_first, BitOrder::high_first}) {
    const std::uint8_t padding = order == BitOrder::low_first ? 0x10 : 0x08;
    Octets packed(8, 0), codes(12);
    CHECK(unpack_codes(packed.data(), 4, 3, 4, order, codes.data()) == -1);
    packed[5] = packed[7] = padding;
    CHECK(unpack_codes(packed.data(), 4, 3, 4, order, codes.data()) == 2);
  }
}

TEST_CASE("orders and widths that do not exist", "[fast]") {
  CHECK(test::message_of([] { check_bit_order(BitOrder::high_first, 6); }) ==
        "order high-first needs codes of 1, 2 or 4 bits, found 6 bits");
  CHECK(test::message_of([] { check_bit_order(BitOrder::low_first, 9); }) ==
        "codes of 9 bits cannot be packed: expected 1 to 8 bits");
  CHECK(test::message_of([] { check_bit_order(BitOrder::high_first, 8); }).empty());
  CHECK(test::message_of([] { parse_bit_order("hi-first"); }) ==
        "unknown bit order 'hi-first'; did you mean 'high-first'?");
  CHECK(parse_bit_order(to_string(BitOrder::high_first)) == BitOrder::high_first);
  CHECK(parse_bit_order(to_string(BitOrder::low_first)) == BitOrder::low_first);
}

}  // namespace
}  // namespace numemu::packing_test
