// Every length around the borders of vectors and words, on every instruction set of this machine.
#include "emu/unit/sparse/nonzero_bits.hpp"

#include <hwy/targets.h>

#include <bit>
#include <memory>
#include <string>
#include <vector>

#include "formats/codebooks/codebook.hpp"
#include "formats/codec.hpp"
#include "formats/containers.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/unit/problem.hpp"

namespace nonzero_bits_test {

using namespace numemu;
using namespace numemu::unit;

namespace {

template <class T>
void check(const Format& format) {
  test::Dice dice(7);
  const ZeroCodes zeros = zero_codes(format);
  for (std::int64_t count = 0; count <= 200; ++count) {
    std::int64_t wrong_bits = 0, wrong_parts = 0;
    std::vector<T> codes(count);
    for (T& code : codes) code = dice.below(3) == 0 ? T(1) : T(0);
    std::vector<std::uint64_t> words(bit_words(count), ~std::uint64_t{0});
    nonzero_bits(zeros, codes.data(), count, words.data());
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(words.size()) * 64; ++i)
      wrong_bits += (words[i / 64] >> (i % 64) & 1) != (i < count && codes[i] != T(0));
    for (std::int64_t first = 0; first + 16 <= count; ++first)
      for (int size = 1; size <= 16; ++size) {
        std::uint32_t expected = 0;
        for (int i = 0; i < size; ++i) expected |= (codes[first + i] != T(0) ? 1u : 0u) << i;
        wrong_parts += bits_at(words.data(), first, size) != expected;
      }
    INFO(format.name << ", " << count << " codes");
    REQUIRE(wrong_bits == 0);
    REQUIRE(wrong_parts == 0);
  }
}

}  // namespace

TEST_CASE("sparse bits: every length, container and instruction set", "[fast]") {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    check<std::uint8_t>(find_format("float8_e4m3fn"));
    check<std::uint16_t>(find_format("float16"));
    check<float>(find_format("float32"));
    // First, count and never all take part: fnuz and ftz.
    const ZeroCodes zeros = zero_codes(find_format("e4m3+fnuz+ftz"));
    std::vector<std::uint8_t> codes(256);
    for (int i = 0; i < 256; ++i) codes[i] = static_cast<std::uint8_t>(i);
    std::vector<std::uint64_t> words(bit_words(256));
    nonzero_bits(zeros, codes.data(), 256, words.data());
    for (int i = 0; i < 256; ++i) REQUIRE((words[i / 64] >> (i % 64) & 1) == !zeros.zero(codes[i]));
  }
  hwy::SetSupportedTargetsForTest(0);
}

namespace {

bool reads_as_zero(const Format& f, std::uint64_t code) {
  return code <= f.last_code() && decode(f, code).kind == Class::zero;
}

/// Every bit pattern of the container, those with stray bits above the code included.
template <class T>
void check_all(const Format& f) {
  INFO(f.name);
  const ZeroCodes zeros = zero_codes(f);
  bool any = false, same = true;
  for (std::uint32_t c = 0; c <= static_cast<T>(~T{0}); ++c) {
    const bool zero = reads_as_zero(f, c & f.code_mask());
    any |= zero;
    same &= zeros.zero(static_cast<T>(c)) == zero;
  }
  CHECK(same);
  const auto plus = zero_container(f);
  CHECK(plus.has_value() == any);
  if (plus) {
    const Value value = decode(f, *plus);
    CHECK(value.kind == Class::zero);
    CHECK_FALSE(value.negative);
  }
}

void check_format(const Format& f) {
  if (container_bytes(f) == 1) check_all<std::uint8_t>(f);
  if (container_bytes(f) == 2) check_all<std::uint16_t>(f);
}

Format codebook(const std::vector<double>& entries, int bits) {
  Format f;
  f.name = "codebook";
  f.kind = Kind::codebook;
  f.bits = bits;
  f.field_zero = FieldZero::scale;
  f.codebook = std::make_shared<const Codebook>(entries, "test");
  return f;
}

/// Of 6 shapes x 4 specials x 3 rules x 2 signs those that exist.
constexpr int kDescribed = 124;

}  // namespace

TEST_CASE("sparse zeros: every code of every named format", "[fast]") {
  for (const Format* f : named_formats()) check_format(*f);
}

TEST_CASE("sparse zeros: described formats, all specials and rules for field 0", "[fast]") {
  int checked = 0;
  for (const char* shape : {"e2m1", "e4m3", "e5m2", "e1m6", "e3m8", "e5m10"})
    for (const char* specials : {"+ieee", "+nan1", "+fnuz", "+finite"})
      for (const char* field : {"", "+nosub", "+ftz"})
        for (const char* sign : {"", "+unsigned"}) {
          const std::string name = std::string(shape) + specials + field + sign;
          const Format* format = nullptr;
          try {
            format = &find_format(name);
          } catch (const Error&) {  // fnuz without a sign, nothing left but zero
          }
          if (format == nullptr) continue;
          check_format(*format);
          ++checked;
        }
  CHECK(checked == kDescribed);
  for (const char* name :
       {"binary8p3se", "binary8p3sf", "binary8p3ue", "binary8p3uf", "binary3p1se", "binary15p9uf"})
    check_format(find_format(name));
}

TEST_CASE("sparse zeros: codebooks with zero first, inside, last, absent", "[fast]") {
  check_format(codebook({0, 1, 2, 3}, 2));
  check_format(codebook({-1, 0, 1}, 2));
  check_format(codebook({-3, -2, -1, 0}, 2));
  check_format(codebook({-1, 1}, 1));
  std::vector<double> entries(256);
  for (int i = 0; i < 256; ++i) entries[i] = i - 255;
  check_format(codebook(entries, 8));
}

TEST_CASE("sparse zeros: 32-bit containers", "[fast]") {
  const ZeroCodes f32 = zero_codes(find_format("float32"));
  const ZeroCodes tf32 = zero_codes(find_format("tfloat32"));
  for (const float x : {0.0f, -0.0f}) {
    CHECK(f32.zero(std::bit_cast<std::uint32_t>(x)));
    CHECK(tf32.zero(std::bit_cast<std::uint32_t>(x)));
  }
  for (const std::uint32_t bits : {1u, 0x80000001u, 0x1fffu, 0x80001fffu}) {
    CHECK_FALSE(f32.zero(bits));
    CHECK(tf32.zero(bits));  // the low 13 bits are ignored
  }
  for (const std::uint32_t bits : {0x2000u, 0x80002000u, 0x3f800000u, 0x7fc00000u, 0xffffffffu}) {
    CHECK_FALSE(f32.zero(bits));
    CHECK_FALSE(tf32.zero(bits));
  }
  CHECK_THROWS_WITH(zero_codes(find_format("float64")), Catch::Contains("at most 32 bits"));
}

}  // namespace nonzero_bits_test
