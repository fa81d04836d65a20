// Vectors, verification and identification by calls: what is made holds, a fault is explained, a
// device's rule is found.
#include "api/oracle.hpp"

#include <algorithm>

#include "api/formats.hpp"
#include "emu/oracle/dots/dots.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"

namespace oracle_test {

using namespace numemu;

namespace {

/// 6 x 32 and 32 x 5 codes of e4m3fn.
api::Operands operands() {
  std::vector<std::uint8_t> a(6 * 32), b(32 * 5);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<std::uint8_t>(0x20 + i * 7 % 40);
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<std::uint8_t>(0x20 + i * 11 % 41);
  return {.a = api::codes_of("e4m3fn", api::array_of(ArrayType::uint8, {6, 32}, a)),
          .b = api::codes_of("e4m3fn", api::array_of(ArrayType::uint8, {32, 5}, b))};
}

}  // namespace

TEST_CASE("api verify: a kernel's results, right, transposed and with a bit wrong", "[fast]") {
  const api::UnitPtr unit = api::open_unit("nvidia.h100.wgmma.e4m3.f32");
  const auto right = api::gemm(unit, operands());
  const auto* d = right->d.as<float>();
  const auto verify = [&](const std::vector<float>& results) {
    return api::verify_product(api::make_product(unit, operands()),
                               api::array_of(ArrayType::float32, {6, 5}, results), "d", {});
  };
  std::vector<float> results(d, d + 30);
  CHECK(verify(results).holds());
  std::vector<float> transposed(30);
  for (std::size_t i = 0; i < 30; ++i) transposed[i] = results[i % 6 * 5 + i / 6];
  const api::Verified moved = verify(transposed);
  CHECK_FALSE(moved.holds());
  REQUIRE_FALSE(moved.explanation.of_results.fits.empty());
  CHECK(moved.explanation.of_results.fits[0].rule.name == "D is transposed");
  results[7] = -results[7];
  const api::Verified wrong = verify(results);
  CHECK(wrong.judge.judged().tally.mismatches() == 1);
  CHECK(wrong.judge.judged().first->one.number[0] == 7);
  CHECK(verify(results).judge.judged().first->one.number[0] == 7);
}

TEST_CASE("api vectors: records by number, whatever the batch", "[fast]") {
  const api::Vectors vectors({.unit = "h100.wgmma.e4m3.f32", .n = 100, .seed = 3});
  CHECK(vectors.size() == 100);
  oracle::Records all(vectors.layout(), 100), one(vectors.layout(), 1);
  vectors.fill(0, all);
  vectors.fill(42, one);
  for (std::size_t f = 0; f < vectors.layout().size(); ++f) {
    for (std::int64_t e = 0; e < vectors.layout()[f].count; ++e)
      CHECK(all.columns[f][static_cast<std::size_t>(42 * vectors.layout()[f].count + e)] ==
            one.columns[f][static_cast<std::size_t>(e)]);
  }
  std::string text;
  vectors.write(oracle::FileForm::text, [&](const std::string& piece) { text += piece; });
  CHECK(std::count(text.begin(), text.end(), '\n') == 101);
  CHECK_THROWS_AS(api::Vectors({.op = "mul"}), Error);
  CHECK_THROWS_AS(api::Vectors({.unit = "f32.sequential", .op = "mul"}), Error);
}

TEST_CASE("api identify: a function is the device", "[fast]") {
  const api::UnknownUnit unknown = api::unknown_unit({.like = "h100.wgmma.e4m3.f32", .k = 8});
  const unit::UnitDescription u = *api::open_unit("h100.wgmma.e4m3.f32")->description();
  const api::Identified identified =
      api::identify(unknown,
                    [&](const oracle::Dot& dot) {
                      return oracle::evaluate(u, unknown.ports, {&dot, 1})[0];
                    },
                    false, {.confirmations = 200});
  CHECK(identified.found());
  CHECK_FALSE(identified.records());
  CHECK(identified.asked > 200);
  CHECK(std::ranges::find(identified.finding.presets, "nvidia.h100.wgmma.e4m3.f32") !=
        identified.finding.presets.end());
  CHECK(api::own_description(identified).name == "identified");
  CHECK_THROWS_AS(api::unknown_unit({.a = "e4m3fn"}), Error);
}

}  // namespace oracle_test
