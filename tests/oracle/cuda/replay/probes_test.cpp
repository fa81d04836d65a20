// The probe file's predictions: each column holds the results of one rule.
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "tests/catch.hpp"
#include "tests/oracle/cuda/replay/example.hpp"
#include "tests/oracle/cuda/replay/index.hpp"
#include "tests/oracle/cuda/replay/number.hpp"

namespace numemu::oracle::recording::replay {
namespace {

std::uint64_t hexadecimal(const std::string& digits) { return std::stoull(digits, nullptr, 16); }

/// "mma.sync m16n8k16 f32.bf16.bf16.f32"
Example example_of(const IndexRow& row) {
  std::istringstream words(row.text("instruction"));
  std::string kind, shape, types;
  words >> kind >> shape >> types;
  REQUIRE(kind == "mma.sync");
  Example e("mma", shape + "." + types);
  for (const bool of_a : {true, false}) {
    std::istringstream list(row.text(of_a ? "a_hex" : "b_hex"));
    int k = 0;
    for (std::string code; std::getline(list, code, ','); ++k)
      of_a ? e.a(k, hexadecimal(code)) : e.b(k, hexadecimal(code));
    REQUIRE(k == e.instruction().k);
  }
  return e.c(hexadecimal(row.text("c_hex")));
}

bool same_but_for_the_sign_of_zero(Element e, std::uint64_t x, std::uint64_t y) {
  return x == y || (is_zero(e, x) && is_zero(e, y));
}

}  // namespace

TEST_CASE("three rules give the three predictions of the probe file", "[fast][shared]") {
  const char* variable = std::getenv("NUMEMU_SHARED");
  const std::string path =
      std::string(variable != nullptr ? variable : NUMEMU_SHARED) + "/golden/mma/probes_hopper.tsv";
  if (!std::filesystem::exists(path)) {
    WARN("skipped: no " << path);
    return;
  }
  std::size_t apart[2] = {0, 0};
  const std::vector<IndexRow> rows = read_index(path);
  for (const IndexRow& row : rows) {
    const Example e = example_of(row);
    const Element d = e.instruction().d;
    const Rule least = rules("H100", e.instruction()).at(0);
    Rule none = least;
    none.zero = ZeroProduct::dropped;
    Rule leeds = none;
    leeds.exponent_floor = d == Element::f32 ? -133 : -21;
    INFO(row.text("id"));
    const auto answers_as = [&](const Rule& rule, const char* column) {
      return same_but_for_the_sign_of_zero(d, e.answer(rule), hexadecimal(row.text(column)));
    };
    CHECK(answers_as(least, "pred_mmasim_zero_exp"));
    CHECK(answers_as(leeds, "pred_leeds_floor"));
    CHECK(answers_as(none, "pred_no_floor"));
    apart[0] += answers_as(least, "pred_leeds_floor") ? 0 : 1;
    apart[1] += answers_as(leeds, "pred_no_floor") ? 0 : 1;
  }
  CHECK(rows.size() == 43);
  CHECK(apart[0] == 12);
  CHECK(apart[1] == 12);
}

}  // namespace numemu::oracle::recording::replay
