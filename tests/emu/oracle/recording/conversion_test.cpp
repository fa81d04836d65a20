// The conversions: the table, its inputs and its records.
#include "emu/oracle/recording/conversion.hpp"

#include <algorithm>
#include <bit>
#include <set>
#include <utility>

#include "emu/oracle/recording/batch.hpp"
#include "emu/oracle/recording/data.hpp"
#include "emu/oracle/replay/conversion_judge.hpp"
#include "formats/format.hpp"
#include "tests/catch.hpp"

namespace numemu::oracle::recording::conversion_test {
namespace {

const Conversion& named(std::string_view name) {
  const int row = find_conversion(std::string(name));
  INFO(name);
  REQUIRE(row >= 0);
  return conversions()[static_cast<std::size_t>(row)];
}

TEST_CASE("conversions: names are unique and say what the columns say", "[fast]") {
  std::set<std::string> names;
  for (const Conversion& c : conversions()) {
    const std::string name = c.name, dotted = "." + name + ".";
    INFO(name);
    CHECK(names.insert(name).second);
    CHECK(&named(name) == &c);
    const auto says = [&](const std::string& word) {
      return dotted.find("." + word + ".") != std::string::npos;
    };
    CHECK(says("satfinite") == c.satfinite);
    CHECK(says("relu") == c.relu);
    const char* const kRoundings[] = {"", "rn", "rz", "rna", "rp", "rs"};
    if (c.rounding == CvtRounding::exact)
      CHECK((says("rn") || c.d == Element::f32));
    else
      CHECK(says(kRoundings[static_cast<int>(c.rounding)]));
    // The last two words are the types, target first, "x2" and "x4" for packed ones.
    const std::size_t last = name.rfind('.'), before = name.rfind('.', last - 1);
    const std::string target = name.substr(before == std::string::npos ? 0 : before + 1,
                                           last - (before == std::string::npos ? 0 : before + 1));
    CHECK(target.rfind(info(c.d).name, 0) == 0);
    CHECK(name.substr(last + 1).rfind(info(c.a).name, 0) == 0);
    const int lanes = target.ends_with("x4") ? 4 : target.ends_with("x2") ? 2 : 1;
    CHECK(c.lanes() == lanes);
    CHECK(answer_bits(c) >= slot(c.d));
    CHECK(c.chips.first <= c.chips.last);
    // PTX has FP8, FP6 and FP4 with .satfinite only.
    if (info(c.d).bits <= 8 && c.d != Element::ue8m0) CHECK(c.satfinite);
  }
}

TEST_CASE("conversions: narrow inputs are exhaustive", "[fast]") {
  for (const Conversion& c : conversions()) {
    if (c.a == Element::f32) continue;
    const std::vector<std::uint32_t> in = conversion_inputs(c, 1);
    CHECK(in.size() == std::size_t{1} << info(c.a).bits);
    CHECK(std::set<std::uint32_t>(in.begin(), in.end()).size() == in.size());
  }
}

TEST_CASE("conversions: float32 inputs hold each number, midpoint and neighbour", "[fast]") {
  const std::pair<const char*, const char*> kTargets[] = {
      {"rn.satfinite.e4m3x2.f32", "float8_e4m3fn"},
      {"rn.satfinite.e5m2x2.f32", "float8_e5m2"},
      {"rn.satfinite.e2m1x2.f32", "float4_e2m1fn"},
      {"rp.satfinite.ue8m0x2.f32", "float8_e8m0fnu"}};
  for (const auto& [name, target] : kTargets) {
    const Conversion& c = named(name);
    INFO(name);
    const std::vector<std::uint32_t> all = conversion_inputs(c, 1);
    // The numbers and midpoints stand before the random codes.
    std::vector<std::uint32_t> in(all.begin(), all.end() - (1 << 20));
    std::sort(in.begin(), in.end());
    const auto holds = [&](std::uint32_t code) {
      return std::binary_search(in.begin(), in.end(), code);
    };
    int missing = 0;
    const std::vector<double> values = finite_values(find_format(target));
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::vector<double> wanted = {values[i]};
      if (i + 1 < values.size()) wanted.push_back((values[i] + values[i + 1]) / 2);
      for (const double x : wanted) {
        const auto narrow = static_cast<float>(x);
        REQUIRE(narrow == x);
        const std::uint32_t code = std::bit_cast<std::uint32_t>(narrow);
        missing += !holds(code) || !holds(code + 1);
        missing += (code & 0x7fffffffU) != 0 && !holds(code - 1);
      }
    }
    CHECK(missing == 0);
    for (const std::uint32_t special : {0x80000000U, 0xff800000U, 0x7fc00000U, 0xffffffffU})
      CHECK(holds(special));
  }
}

TEST_CASE("conversions: overflow thresholds are among the inputs", "[fast]") {
  const auto holds = [](const char* name, float x) {
    const std::vector<std::uint32_t> in = conversion_inputs(named(name), 1);
    const std::uint32_t code = std::bit_cast<std::uint32_t>(x);
    return std::count(in.begin(), in.end(), code) >= 1 &&
           std::count(in.begin(), in.end(), code - 1) >= 1;
  };
  CHECK(holds("rn.f16.f32", 65520.0F));
  CHECK(holds("rn.satfinite.e4m3x2.f32", 464.0F));
  CHECK(holds("rn.satfinite.e5m2x2.f32", 61440.0F));
  CHECK(holds("rn.satfinite.e2m1x2.f32", 7.0F));
}

TEST_CASE("conversions: random codes depend on seed and name alone", "[fast]") {
  const Conversion &e4m3 = named("rn.satfinite.e4m3x2.f32"),
                   &e5m2 = named("rn.satfinite.e5m2x2.f32");
  CHECK(conversion_inputs(e4m3, 1) == conversion_inputs(e4m3, 1));
  CHECK(conversion_inputs(e4m3, 1).back() != conversion_inputs(e4m3, 2).back());
  CHECK(conversion_inputs(e4m3, 1).back() != conversion_inputs(e5m2, 1).back());
  // The last code but one is word 2 of the last block of the row's tensor.
  const std::uint32_t tensor = tensor_of("cvt rn.satfinite.e4m3x2.f32");
  CHECK(conversion_inputs(e4m3, 1).rbegin()[1] ==
        philox(1, {{(1U << 18) - 1, 0, tensor, kVectorStream}}).word[2]);
}

TEST_CASE("conversions: an answer is split by lanes", "[fast]") {
  const Conversion &one = named("rn.tf32.f32"), &two = named("rn.f16x2.f32"),
                   &four = named("rs.satfinite.e4m3x4.f32");
  CHECK(lane_code(one, 0x12345678, 0) == 0x12345678);
  CHECK(lane_code(two, 0x12345678, 0) == 0x5678);
  CHECK(lane_code(two, 0x12345678, 1) == 0x1234);
  CHECK(lane_code(four, 0x12345678, 2) == 0x34);
}

TEST_CASE("conversions: random bits of rs stay in their field and reach its ends", "[fast]") {
  const Conversion &f16 = named("rs.f16x2.f32"), &e2m1 = named("rs.satfinite.e2m1x4.f32");
  std::set<std::uint32_t> halves, bytes;
  for (std::uint32_t in = 0; in < 1U << 17; ++in) {
    const std::uint32_t half = random_bits(f16, in * 0x9e3779b9U) & 0xffffU;
    CHECK_FALSE(half > 0x1fffU);
    halves.insert(half);
    bytes.insert(random_bits(e2m1, in) & 0xffU);
  }
  CHECK(halves.size() > 8180);  // of 8192; 16 draws each leave e^-16 of them out
  CHECK(bytes.size() == 256);
  CHECK(random_bits(e2m1, 77) == (random_bits(e2m1, 77) & 0xffU) * 0x01010101U);
}

}  // namespace
}  // namespace numemu::oracle::recording::conversion_test
