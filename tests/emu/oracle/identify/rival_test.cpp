// Rivals: one parameter away, valid, and told apart by some question.
#include <algorithm>

#include "emu/oracle/identify/candidates.hpp"
#include "emu/oracle/identify/questions.hpp"
#include "emu/unit/catalogue/models.hpp"
#include "emu/unit/unit.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"

namespace rival_test {

using namespace numemu;
using namespace numemu::oracle;

namespace {

const unit::UnitDescription& described(const char* name) {
  return *unit::find_unit(name).description();
}

bool has(const std::vector<Rival>& rivals, const std::string& name) {
  return std::any_of(rivals.begin(), rivals.end(),
                     [&](const Rival& rival) { return rival.name == name; });
}

struct Example {
  const char* unit;
  std::vector<const char*> rivals;
};

void check(const std::vector<Example>& examples) {
  for (const Example& example : examples) {
    const std::vector<Rival> rivals = rivals_of(described(example.unit));
    for (const char* name : example.rivals) {
      INFO(example.unit << ": " << name);
      CHECK(has(rivals, name));
    }
  }
}

}  // namespace

TEST_CASE("rival: the parameters that people doubt have rivals that results tell apart", "[fast]") {
  check({{"nvidia.v100.mma.f16.f32",
          {"22 fraction bits kept instead of 23", "24 fraction bits kept instead of 23",
           "8 products a step instead of 4", "C added after rounding", "rounds to nearest even",
           "addends cut to nearest even in the alignment", "subnormal inputs read as zero",
           "subnormal C read as zero", "NaN is written as 0x7fc00000"}},
         {"intel.emr.vpdpbusds.u8xs8.s32", {"wraps", "saturates after every addition"}}});
}

TEST_CASE("rival: other cores have theirs", "[slow]") {
  check({{"nvidia.h100.wgmma.e4m3.f32",
          {"14 fraction bits kept instead of 13",
           "the register keeps 14 fraction bits instead of 13"}},
         {"amd.mi200.mfma_1k.bf16.f32",
          {"subnormal inputs read as they are", "subnormal results written"}},
         {"intel.emr.tdpbf16ps.bf16.f32",
          {"4 chains over k mod 4", "C in the alignment, or the start of the chain",
           "products rounded before they are added", "one canonical NaN",
           "results judged tiny before rounding"}}});
}

TEST_CASE("rival: each passes the checks and has another result", "[fast]") {
  const unit::UnitDescription& u = described("arm.neoverse.fdot.e4m3.f16");
  const Ports ports = ports_of(u, telling_depth(u));
  std::vector<Dot> dots;
  for (const auto& list : {constructed_questions(ports), random_questions(ports, 0, 0, 240)}) {
    for (const AskedDot& question : list) dots.push_back(question.dot);
  }
  const auto own = evaluate(u, ports, dots);
  const std::vector<Rival> rivals = rivals_of(u);
  REQUIRE(rivals.size() > 10);
  for (const Rival& rival : rivals) {
    INFO(rival.name);
    CHECK_NOTHROW(unit::check_description(rival.description));
    CHECK_FALSE(gives(rival.description, ports, dots, own));
  }
}

TEST_CASE("dots: gives() is evaluate() compared", "[fast]") {
  const unit::UnitDescription& u = described("arm.neoverse.fdot.e4m3.f16");
  const Ports ports = ports_of(u, telling_depth(u));
  const std::vector<AskedDot> questions = random_questions(ports, 0, 0, 100);
  for (const std::size_t count : {0, 1, 8, 9, 100}) {
    std::vector<Dot> dots;
    for (std::size_t i = 0; i < count; ++i) dots.push_back(questions[i].dot);
    std::vector<std::uint64_t> codes = evaluate(u, ports, dots);
    CHECK(gives(u, ports, dots, codes));
    if (count == 0) continue;
    for (const std::size_t changed : {std::size_t{0}, count - 1}) {
      codes[changed] ^= 1;
      CHECK_FALSE(gives(u, ports, dots, codes));
      codes[changed] ^= 1;
    }
  }
}

TEST_CASE("rival: two levels of accumulation, and units that have one", "[fast]") {
  unit::UnitDescription u = described("nvidia.h100.wgmma.e4m3.f32");
  CHECK(has(patches_of(u), "sums promoted every 64 products to float32"));
  u.outer = {64, {.format = &find_format("float32")}};
  CHECK(telling_depth(u) == 128);
  // Which of them results tell apart, explain_test shows.
  const std::vector<Rival> rivals = patches_of(u);
  for (const char* name :
       {"sums promoted every 32 products instead of 64",
        "sums promoted every 128 products instead of 64", "sums never promoted",
        "the outer register rounds toward zero",
        "the outer register keeps 10 fraction bits instead of 23",
        "the register keeps 14 fraction bits instead of 13", "rounds to nearest even"}) {
    INFO(name);
    CHECK(has(rivals, name));
  }
}

TEST_CASE("rival: what no result shows is none", "[fast]") {
  // Every sum of float16 products fits float32: they never overflow at once.
  CHECK_FALSE(has(rivals_of(described("nvidia.v100.mma.f16.f32")),
                  "products of 2^128 and more are infinite"));
}

}  // namespace rival_test
