// convert_codes() on long arrays against its reference: every path, flags, positions, threads.
#include "formats/convert.hpp"

#include <omp.h>

#include <cstring>
#include <random>
#include <vector>

#include "formats/error.hpp"
#include "tests/catch.hpp"

namespace numemu::convert_test {
namespace {

// Random codes of the format, in containers.
std::vector<std::byte> random_codes(const Format& f, std::int64_t n, std::uint32_t seed) {
  std::mt19937_64 generator(seed);
  std::vector<std::byte> codes(static_cast<std::size_t>(n * container_bytes(f)));
  for (std::int64_t i = 0; i < n; ++i)
    store_code(f, codes.data(), i, (generator() & f.code_mask()) % (f.last_code() + 1));
  return codes;
}

// 64-bit formats have no last_code() + 1.
std::vector<std::byte> random_doubles(std::int64_t n) {
  std::mt19937_64 generator(5);
  std::normal_distribution<double> normal;
  std::vector<std::byte> codes(static_cast<std::size_t>(n) * sizeof(double));
  for (std::int64_t i = 0; i < n; ++i) {
    const double x = normal(generator) * 100;
    std::memcpy(codes.data() + i * 8, &x, sizeof x);
  }
  return codes;
}

void check_equal(const Conversion& c, const Format& from, const std::vector<std::byte>& in,
                 std::int64_t first) {
  const std::int64_t n = static_cast<std::int64_t>(in.size()) / container_bytes(from);
  const auto bytes = static_cast<std::size_t>(n * container_bytes(*c.format));
  std::vector<std::byte> want(bytes), got(bytes), bare(bytes);
  std::vector<std::uint8_t> want_flags(static_cast<std::size_t>(n)), got_flags(want_flags);
  const FlagCounts counts =
      convert_codes_reference(c, from, in.data(), n, want.data(), want_flags.data(), first);
  INFO(from.name << " to " << c.format->name << " " << to_string(c.rounding) << " "
                 << to_string(c.overflow) << " first " << first);
  CHECK(convert_codes(c, from, in.data(), n, got.data(), got_flags.data(), first) == counts);
  CHECK((got == want));
  CHECK((got_flags == want_flags));
  CHECK(convert_codes(c, from, in.data(), n, bare.data(), nullptr, first) == counts);
  CHECK((bare == want));
}

TEST_CASE("convert: long arrays agree with the reference on every path", "[fast]") {
  constexpr std::int64_t kLong = 70'001;  // more than one task, more than the codes of 16 bits
  const char* sources[] = {"float8_e4m3fn", "float8_e5m2", "float4_e2m1fn", "int8",   "uint5",
                           "sign1",         "float16",     "bfloat16",      "float32"};
  const char* targets[] = {"float8_e4m3fnuz", "int4",     "float8_e8m0fnu", "float16",
                           "bfloat16",        "tfloat32", "float32",        "float64"};
  for (const char* source : sources) {
    const Format& from = find_format(source);
    const std::vector<std::byte> in = random_codes(from, kLong, 3);
    for (const char* target : targets)
      for (const char* rounding : {"rne", "rdn", "sr(8)"})
        for (const Overflow overflow : {Overflow::saturate, Overflow::ieee})
          check_equal({.format = &find_format(target),
                       .rounding = parse_rounding(rounding),
                       .overflow = overflow},
                      from, in, 77);
  }
}

TEST_CASE("convert: signalling NaNs raise NV on every path, long and short", "[fast]") {
  for (const char* source :
       {"float8_e5m2", "e4m3+unsigned", "float16", "bfloat16", "float32", "float64"}) {
    const Format& from = find_format(source);
    const std::uint64_t infinity = from.infinity_code();
    for (const std::int64_t n : {5, 700, 70'001}) {
      std::vector<std::byte> in(static_cast<std::size_t>(n * container_bytes(from)));
      for (std::int64_t i = 0; i < n; ++i)
        store_code(from, in.data(), i, i % 61 == 3 ? infinity + 1 : i % 67 == 1 ? infinity : 0);
      const std::int64_t signalling = (n - 4) / 61 + 1;
      for (const char* target :
           {"float8_e4m3fn", "int8", "float16", "bfloat16", "tfloat32", "float32", "float64"}) {
        const Conversion c{.format = &find_format(target),
                           .rounding = parse_rounding(n == 700 ? "sr(8)" : "rne"),
                           .overflow = Overflow::saturate};
        check_equal(c, from, in, 0);
        std::vector<std::byte> out(static_cast<std::size_t>(n * container_bytes(*c.format)));
        INFO(source << " to " << target << " " << n);
        CHECK(convert_codes(c, from, in.data(), n, out.data()).invalid == signalling);
      }
      const Conversion stochastic{.format = &find_format("float8_e4m3fn"),
                                  .rounding = parse_rounding("sr(3)")};
      check_equal(stochastic, from, in, 0);
    }
  }
}

TEST_CASE("convert: float64 sources have one rounding on long arrays", "[fast]") {
  const std::vector<std::byte> in = random_doubles(20'000);
  for (const char* target : {"float8_e4m3fn", "int8", "float16", "float32"})
    check_equal({.format = &find_format(target)}, find_format("float64"), in, 0);
}

TEST_CASE("convert: the same bits for any number of threads and from any element on", "[fast]") {
  constexpr std::int64_t kLong = 200'000, kFirst = 33'333;
  const Format& from = find_format("float32");
  const std::vector<std::byte> in = random_codes(from, kLong, 9);
  Conversion c{.format = &find_format("float8_e5m2"), .rounding = parse_rounding("sr(5)")};
  c.random.seed = 11;
  std::vector<std::uint8_t> whole(kLong), part(kLong - kFirst);
  const int threads = omp_get_max_threads();
  omp_set_num_threads(1);
  convert_codes(c, from, in.data(), kLong, whole.data());
  omp_set_num_threads(3);
  convert_codes(c, from, in.data() + kFirst * 4, kLong - kFirst, part.data(), nullptr, kFirst);
  omp_set_num_threads(threads);
  CHECK(std::equal(part.begin(), part.end(), whole.begin() + kFirst));
}

TEST_CASE("convert: what is no code is refused with its position", "[fast]") {
  constexpr std::int64_t kLong = 100'000, kBad = 70'007;
  std::vector<std::uint8_t> codes(kLong, 3);
  std::vector<float> y(kLong);
  codes[kBad] = 0x1f;
  for (const char* target : {"float32", "float16", "int8"})
    CHECK_THROWS_WITH(convert_codes({.format = &find_format(target)}, find_format("float4_e2m1fn"),
                                    codes.data(), kLong, y.data()),
                      "element 70007: 0x1f is not a code of float4_e2m1fn");
  const std::uint32_t low_bits = 0x3f800001;  // tfloat32 leaves 13 bits zero
  CHECK_THROWS_AS(convert_codes({.format = &find_format("float32")}, find_format("tfloat32"),
                                &low_bits, 1, y.data()),
                  Error);
}

TEST_CASE("convert: exact_in knows which values another format holds", "[fast]") {
  const auto exact = [](const char* narrow, const char* wide) {
    return exact_in(find_format(narrow), find_format(wide));
  };
  CHECK(exact("float8_e4m3fn", "float16"));
  CHECK(exact("float16", "float32"));
  CHECK(exact("float32", "float64"));
  CHECK(exact("tfloat32", "float32"));
  CHECK(exact("int8", "bfloat16"));
  CHECK(exact("float8_e8m0fnu", "float32"));
  CHECK_FALSE(exact("float8_e8m0fnu", "float16"));
  CHECK_FALSE(exact("float16", "bfloat16"));
  CHECK_FALSE(exact("float64", "float32"));
  CHECK_FALSE(exact("int8", "float8_e4m3fn"));
}

TEST_CASE("convert: exact_in says what every value by itself says", "[fast]") {
  const auto by_value = [](const Format& narrow, const Format& wide) {
    if (narrow.name == wide.name) return true;
    for (std::uint64_t code = 0; code <= narrow.last_code(); ++code) {
      const Value v = decode(narrow, code);
      if (v.kind == Class::finite && encode(wide, v, {}, Overflow::saturate).flags != 0)
        return false;
    }
    return true;
  };
  std::vector<const Format*> narrow = named_formats();
  for (const char* name :
       {"e4m3+ftz", "e4m3+nosub", "e3m2+unsigned", "e2m5b400+finite", "e5m6", "e4m4b30+nosub",
        "e4m3b4", "e4m3b155+ftz", "e5m10b145+ftz", "binary8p1se", "binary8p7uf", "e8m2b150+finite"})
    narrow.push_back(&find_format(name));
  int holds = 0;
  for (const Format* from : narrow) {
    if (from->bits > 16) continue;
    for (const Format* to : narrow) {
      // 65,536 values of each of the others would take seconds.
      if (from->bits > 12 && to->bits < 32 && to->name != "bfloat16") continue;
      INFO(from->name << " in " << to->name);
      const bool expected = by_value(*from, *to);
      CHECK(exact_in(*from, *to) == expected);
      holds += expected;
    }
  }
  CHECK(holds > 300);
}

}  // namespace
}  // namespace numemu::convert_test
