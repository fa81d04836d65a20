// Identification: units hidden behind a device are recovered, with the catalogue and without it.
#include "emu/oracle/identify/identify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "emu/oracle/identify/candidates.hpp"
#include "emu/unit/unit.hpp"
#include "tests/catch.hpp"

namespace identify_test {

using namespace numemu;
using namespace numemu::oracle;
using unit::UnitDescription;

namespace {

const UnitDescription& described(std::string_view name) {
  return *unit::find_unit(name).description();
}

Device device_of(const UnitDescription& u, const Ports& ports) {
  return [&](const Dot& dot) { return evaluate(u, ports, {&dot, 1}).front(); };
}

/// Answers in which two descriptions differ, of random questions that were not asked.
std::size_t differing(const UnitDescription& x, const UnitDescription& y, const Ports& ports) {
  std::vector<Dot> dots;
  for (const AskedDot& question : random_questions(ports, 77, 0, 300)) dots.push_back(question.dot);
  const auto of_x = evaluate(x, ports, dots), of_y = evaluate(y, ports, dots);
  std::size_t count = 0;
  for (std::size_t i = 0; i < dots.size(); ++i) count += of_x[i] != of_y[i];
  return count;
}

/// Hides the unit and prints a row of the table; false where it is not recovered.
bool recover(const UnitDescription& hidden, bool catalogue, std::string& table) {
  using Clock = std::chrono::steady_clock;
  const Ports ports = ports_of(hidden, telling_depth(hidden));
  const auto start = Clock::now();
  const FoundRule finding = identify(ports, device_of(hidden, ports), {.catalogue = catalogue});
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  const bool named = !catalogue || std::find(finding.presets.begin(), finding.presets.end(),
                                             hidden.name) != finding.presets.end();
  const std::size_t wrong = finding.fits ? differing(finding.description, hidden, ports) : 300;
  table += fmt::format("| {} | {} | {} | {} | {:.1f} |\n", hidden.name,
                       finding.fits ? finding.description.name : "nothing", finding.presets.size(),
                       finding.answered.size(), seconds);
  return finding.fits && named && wrong == 0;
}

void recover_all(const std::vector<std::string>& names, bool catalogue) {
  std::string table =
      "| hidden | found | presets that fit | questions | seconds |\n|---|---|---|---|---|\n";
  for (const std::string& name : names) {
    INFO(name);
    CHECK(recover(described(name), catalogue, table));
  }
  WARN(table);
}

}  // namespace

TEST_CASE("identify: units are found by their names", "[fast]") {
  recover_all({"neutral.f32.sequential", "intel.emr.vpdpbusds.u8xs8.s32",
               "arm.neoverse.fdot.e4m3.f16", "neutral.xnor"},
              true);
}

TEST_CASE("identify: without the catalogue the parameters are found one by one", "[fast]") {
  recover_all({"intel.emr.vpdpbusds.u8xs8.s32"}, false);
}

TEST_CASE("identify: a unit that nobody described", "[slow]") {
  UnitDescription hidden = described("nvidia.ada.mma.e4m3.f32");
  hidden.name = "my.unit";
  hidden.alignment.fraction_bits = 17;
  hidden.alignment.rounding = RoundingMode::rne;
  hidden.accumulator.rounding = {};
  hidden.accumulator.overflow_to_infinity = false;
  hidden.k = hidden.group = 8;
  const Ports ports = ports_of(hidden, 16);
  const FoundRule finding = identify(ports, device_of(hidden, ports));
  REQUIRE(finding.fits);
  CHECK(finding.presets.empty());
  CHECK(finding.description.alignment.fraction_bits == 17);
  CHECK(finding.description.alignment.rounding == RoundingMode::rne);
  CHECK(finding.description.group == 8);
  CHECK(differing(finding.description, hidden, ports) == 0);
}

namespace {

void recover_two_levels(const UnitDescription& hidden, bool catalogue) {
  const Ports ports = ports_of(hidden, telling_depth(hidden));
  const FoundRule finding = identify(ports, device_of(hidden, ports), {.catalogue = catalogue});
  REQUIRE(finding.fits);
  CHECK(finding.presets.empty());
  CHECK(finding.description.outer.every == hidden.outer.every);
  CHECK(differing(finding.description, hidden, ports) == 0);
}

}  // namespace

TEST_CASE("identify: rounded dot products that are added", "[fast]") {
  UnitDescription hidden;
  hidden.name = "dots";
  hidden.core = unit::CoreKind::exact;
  hidden.k = hidden.group = 4;
  hidden.a = hidden.b = &find_format("bfloat16");
  hidden.accumulator.format = &find_format("float32");
  hidden.outer = {4, hidden.accumulator};
  recover_two_levels(hidden, false);
}

TEST_CASE("identify: blocks of any size, as the order of the sum shows them", "[fast]") {
  UnitDescription hidden = described("neutral.f32.sequential");
  hidden.name = "blocked";
  hidden.a = hidden.b = hidden.c = hidden.d = &find_format("float32");
  hidden.outer = {13, {.format = hidden.d}};
  recover_two_levels(hidden, true);
}

TEST_CASE("identify: a kernel that promotes the sums of a tensor core", "[slow]") {
  UnitDescription hidden = described("nvidia.h100.wgmma.e4m3.f32");
  hidden.name = "promoted";
  hidden.outer = {64, {.format = &find_format("float32")}};
  recover_two_levels(hidden, true);
}

TEST_CASE("identify: what fits nothing is called so, with a contradiction", "[slow]") {
  const UnitDescription& honest = described("neutral.f32.sequential");
  const Ports ports = ports_of(honest, 4);
  // The last bit of results above 1 is lost.
  const FoundRule finding = identify(ports, [&](const Dot& dot) {
    const std::uint64_t code = evaluate(honest, ports, {&dot, 1}).front();
    return (code & 0x7fffffff) > 0x3f800000 && code % 3 == 0 ? code ^ 1 : code;
  });
  CHECK_FALSE(finding.fits);
  REQUIRE(finding.contradictions > 0);
  const Answered& first = finding.answered.at(finding.contradiction);
  CHECK(evaluate(finding.description, ports, {&first.question.dot, 1}).front() == finding.expected);
  CHECK(first.code != finding.expected);
}

TEST_CASE("identify: a device that changes its mind is found out", "[slow]") {
  const UnitDescription& honest = described("neutral.f32.sequential");
  const Ports ports = ports_of(honest, 4);
  std::size_t asked = 0;
  const FoundRule finding =
      identify(ports,
               [&](const Dot& dot) {
                 return evaluate(honest, ports, {&dot, 1}).front() ^ (++asked > 20 ? 1 : 0);
               },
               {.confirmations = 30});
  CHECK_FALSE(finding.fits);
}

TEST_CASE("identify: a register is told from narrower ones by sums that carry", "[fast]") {
  UnitDescription hidden = described("nvidia.h100.wgmma.e4m3.f32");
  hidden.name = "f17";
  hidden.b = &find_format("float8_e5m2");
  hidden.alignment.fraction_bits = 17;
  hidden.accumulator = {.format = &find_format("float32"),
                        .rounding = {.mode = RoundingMode::rtz},
                        .overflow_to_infinity = true};
  const Ports ports = ports_of(hidden, 32);
  // Without the questions of carries, and without confirmations that refute it, e8m19 is found.
  const FoundRule asked = identify(ports, device_of(hidden, ports), {.confirmations = 0});
  CHECK(asked.description.accumulator.format->name == "float32");
  const FoundRule finding = identify(ports, device_of(hidden, ports), {.confirmations = 500});
  REQUIRE(finding.fits);
  CHECK(finding.description.accumulator.format->name == "float32");
  CHECK(finding.confirmed == 500);
  CHECK(finding.differing == 0);
  CHECK(finding.unseen() == 3. / 500);
}

TEST_CASE("identify: what answers one question in two ways is told after a few", "[fast]") {
  const UnitDescription& honest = described("neutral.f32.sequential");
  const Ports ports = ports_of(honest, 4);
  std::size_t asked = 0;
  const FoundRule finding = identify(ports, [&](const Dot& dot) {
    return evaluate(honest, ports, {&dot, 1}).front() ^ (++asked * 0x9e3779b1U >> 13 & 1);
  });
  CHECK_FALSE(finding.reproducible);
  CHECK_FALSE(finding.found_but());
  REQUIRE(finding.changed);
  CHECK(finding.changed->first != finding.changed->again);
  CHECK(asked < 100);
}

TEST_CASE("identify: a rule is found beside noise and beside a lost product", "[fast]") {
  const UnitDescription& honest = described("neutral.f32.sequential");
  const Ports ports = ports_of(honest, 4);
  std::size_t asked = 0;
  const FoundRule noisy =
      identify(ports,
               [&](const Dot& dot) {
                 return evaluate(honest, ports, {&dot, 1}).front() ^ (++asked % 37 == 0 ? 4 : 0);
               },
               {.confirmations = 1000});
  CHECK_FALSE(noisy.fits);
  CHECK(noisy.found_but());
  CHECK(noisy.confirmed == 1000);
  CHECK(noisy.differing > 10);
  CHECK(noisy.differing < 50);
  CHECK(noisy.changes >= noisy.differing);
  CHECK(differing(noisy.description, honest, ports) == 0);
  const FoundRule lame = identify(ports,
                                  [&](Dot dot) {
                                    dot.a[2] = dot.b[2] = 0;
                                    return evaluate(honest, ports, {&dot, 1}).front();
                                  },
                                  {.confirmations = 100});
  CHECK(lame.found_but());
  CHECK(lame.lost == std::vector<int>{2});
  CHECK(std::ranges::count(lame.presets, honest.name) == 1);
  CHECK(lame.changes == 0);
  CHECK(differing(lame.description, honest, ports) == 0);
}

TEST_CASE("identify: noise leaves the plainest of the rules with equal results", "[fast]") {
  UnitDescription hidden;
  hidden.name = "device";
  hidden.core = unit::CoreKind::chain;
  hidden.chain.fused = false;
  hidden.a = hidden.b = &find_format("bfloat16");
  hidden.c = hidden.d = hidden.accumulator.format = &find_format("float32");
  const Ports ports = ports_of(hidden, 4);
  std::size_t asked = 0;
  const auto found = [&](std::size_t every) {
    return identify(ports,
                    [&, every](const Dot& dot) {
                      const bool noise = every != 0 && ++asked % every == 0;
                      return evaluate(hidden, ports, {&dot, 1}).front() ^ (noise ? 4 : 0);
                    },
                    {.confirmations = 500, .any_nan = true});
  };
  const FoundRule clean = found(0), noisy = found(97);
  CHECK(clean.fits);
  CHECK(clean.presets.empty());
  CHECK(noisy.found_but());
  CHECK(noisy.changes > 0);
  CHECK(clean.description.core == unit::CoreKind::chain);
  CHECK(same_rule(noisy.description, clean.description));
}

TEST_CASE("identify: a plainer rule has to give the confirming vectors", "[fast]") {
  UnitDescription exact;
  exact.name = "exact";
  exact.core = unit::CoreKind::exact;
  exact.a = exact.b = &find_format("bfloat16");
  exact.c = exact.d = exact.accumulator.format = &find_format("float32");
  UnitDescription hidden = exact;
  hidden.core = unit::CoreKind::chain;
  hidden.k = 8;
  hidden.c_entry = unit::CEntry::after_rounding;
  hidden.chain.chains = 2;
  REQUIRE(plainer(exact, hidden));
  const Ports ports = ports_of(hidden, 8);
  REQUIRE(differing(exact, hidden, ports) > 0);
  // Questions that do not tell the two apart.
  IdentifyOptions options{.confirmations = 300, .catalogue = false};
  for (AskedDot& question : question_pool(ports, 0, 96)) {
    if (evaluate(exact, ports, {&question.dot, 1}) == evaluate(hidden, ports, {&question.dot, 1}))
      options.pool.push_back(std::move(question));
  }
  const FoundRule found = identify(ports, device_of(hidden, ports), options);
  REQUIRE(found.fits);
  CHECK(found.description.core == unit::CoreKind::chain);
  CHECK(differing(found.description, hidden, ports) == 0);
}

TEST_CASE("identify: dead lanes of a unit that nobody described", "[fast]") {
  UnitDescription hidden = described("neutral.f32.sequential");
  hidden.accumulator.rounding = {.mode = RoundingMode::rup};
  const Ports ports = ports_of(hidden, 6);
  const std::vector<int> dead = {1, 4};
  const FoundRule lame = identify(ports,
                                  [&](const Dot& dot) {
                                    const Dot seen = without_products(dot, dead);
                                    return evaluate(hidden, ports, {&seen, 1}).front();
                                  },
                                  {.confirmations = 200});
  CHECK(lame.found_but());
  CHECK(lame.lost == dead);
  CHECK(lame.presets.empty());
  CHECK(lame.confirmed == 200);
  CHECK(lame.differing > 50);
  CHECK(lame.steady == 0);
  CHECK(differing(lame.description, hidden, ports) == 0);
}

namespace {

/// Of a device that no description has, whose answers are the same each time.
void check_not_found(std::string_view unit, std::uint64_t every) {
  const UnitDescription& honest = described(unit);
  const Ports ports = ports_of(honest, 4);
  const FoundRule finding =
      identify(ports,
               [&](const Dot& dot) {
                 const std::uint64_t code = evaluate(honest, ports, {&dot, 1}).front();
                 return code % every == 1 ? code ^ 4 : code;
               },
               {.confirmations = 3000});
  CHECK_FALSE(finding.fits);
  CHECK_FALSE(finding.found_but());
  CHECK(finding.steady > 0);
  CHECK(finding.changes == 0);
  CHECK(finding.lost.empty());
  // Confirmations are of the rule that is named: a refuted one leaves none behind.
  CHECK(finding.steady >= finding.differing);
}

}  // namespace

TEST_CASE("identify: a rule that confirmations refute is not found", "[fast]") {
  check_not_found("intel.emr.vpdpbusds.u8xs8.s32", 40);
}

TEST_CASE("identify: nor is one of floats that few, some or most confirmations refute", "[slow]") {
  for (const std::uint64_t every : {5, 40, 400}) check_not_found("neutral.f32.sequential", every);
}

TEST_CASE("identify: described units are candidates, and time ends the work", "[fast]") {
  UnitDescription own = described("neutral.f32.sequential");
  own.name = "my.own";
  own.a = own.b = own.c = own.d = &find_format("float32");
  own.outer = {6, {.format = own.d}};
  const Ports ports = ports_of(own, 16);
  const FoundRule finding =
      identify(ports, device_of(own, ports), {.confirmations = 200, .units = {own}});
  CHECK(finding.presets == std::vector<std::string>{"my.own"});
  const FoundRule late = identify(ports, device_of(own, ports), {.stop = [] { return true; }});
  CHECK(late.too_late);
  CHECK_FALSE(late.fits);
  std::size_t asked = 0;
  const FoundRule part = identify(ports,
                                  [&](const Dot& dot) {
                                    ++asked;
                                    return evaluate(own, ports, {&dot, 1}).front();
                                  },
                                  {.units = {own}, .stop = [&] { return asked > 500; }});
  CHECK(part.too_late);
  CHECK(part.fits);
  CHECK(part.confirmed > 0);
  CHECK(part.confirmed <= 500);
}

TEST_CASE("identify: the steps inside the sums of a rule with two levels", "[fast]") {
  UnitDescription hidden = described("nvidia.h100.wgmma.e4m3.f32");
  hidden.name = "dots";
  hidden.k = hidden.group = 4;
  hidden.outer = {8, {.format = &find_format("float32")}};
  const Ports ports = ports_of(hidden, 16);
  const FoundRule finding =
      identify(ports, device_of(hidden, ports), {.confirmations = 100, .units = {hidden}});
  CHECK(finding.steps == std::vector<int>{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3});
}

namespace {

std::vector<Answered> records_of(const UnitDescription& hidden, const Ports& ports,
                                 std::size_t count) {
  std::vector<Answered> records;
  for (AskedDot& question : random_questions(ports, 5, 0, count)) {
    const std::uint64_t code = evaluate(hidden, ports, {&question.dot, 1}).front();
    records.push_back({std::move(question), code});
  }
  return records;
}

}  // namespace

TEST_CASE("identify: records decide what they can, and a question tells the rest apart", "[fast]") {
  const UnitDescription& hidden = described("nvidia.h100.mma.f16.f32");
  const Ports ports = ports_of(hidden, 16);
  const FoundRule finding = identify(ports, records_of(hidden, ports, 40));
  REQUIRE(finding.fits);
  CHECK(std::find(finding.presets.begin(), finding.presets.end(), hidden.name) !=
        finding.presets.end());
  const auto open = std::find_if(finding.undetermined.begin(), finding.undetermined.end(),
                                 [](const Undetermined& u) { return u.separating.has_value(); });
  CHECK(open != finding.undetermined.end());
}

namespace {

void check_few_and_many(std::string_view unit) {
  const UnitDescription& hidden = described(unit);
  const Ports ports = ports_of(hidden, 16);
  for (const std::size_t count : {1, 2, 30}) {
    const FoundRule few = identify(ports, records_of(hidden, ports, count));
    INFO(count);
    CHECK(few.fits);
    CHECK_FALSE(few.decided);
    CHECK(few.confirmed <= count / 2);
  }
  const FoundRule many = identify(ports, records_of(hidden, ports, 200));
  CHECK(many.fits);
  CHECK(many.decided);
  CHECK(many.confirmed >= kFewestConfirming);
  CHECK(many.confirmed <= 100);
}

void check_two_answers(std::string_view unit) {
  const UnitDescription& hidden = described(unit);
  const Ports ports = ports_of(hidden, 16);
  std::vector<Answered> records = records_of(hidden, ports, 60);
  records.push_back(records[7]);
  CHECK(identify(ports, records).reproducible);
  records.insert(records.begin() + 20, records[11]);
  records[20].code ^= 2;
  const FoundRule finding = identify(ports, records);
  CHECK_FALSE(finding.fits);
  CHECK_FALSE(finding.reproducible);
  CHECK_FALSE(finding.found_but());
  CHECK(finding.changes == 1);
  REQUIRE(finding.changed);
  CHECK(finding.changed->first_record == 11);
  CHECK(finding.changed->again_record == 20);
  CHECK(finding.changed->again == (finding.changed->first ^ 2));
}

}  // namespace

TEST_CASE("identify: few records decide nothing, others confirm", "[fast]") {
  check_few_and_many("intel.emr.vpdpbusds.u8xs8.s32");
}

TEST_CASE("identify: nor do few records of floats", "[slow]") {
  check_few_and_many("nvidia.h100.mma.f16.f32");
}

TEST_CASE("identify: records that answer a question in two ways are named", "[fast]") {
  check_two_answers("intel.emr.vpdpbusds.u8xs8.s32");
}

TEST_CASE("identify: also records of floats", "[slow]") {
  check_two_answers("nvidia.h100.mma.f16.f32");
}

TEST_CASE("identify: without the catalogue, a unit of each kind", "[slow]") {
  recover_all(
      {"neutral.exact.nv16", "nvidia.v100.mma.f16.f32", "nvidia.h100.mma.e4m3.f16",
       "nvidia.a100.mma.bf16.f32.leeds", "amd.mi200.mfma.bf16.f32", "intel.emr.tdpbf16ps.bf16.f32",
       "arm.neoverse.bfdot.bf16.f32", "arm.neoverse.fdot.e4m3.f16"},
      false);
}

TEST_CASE("identify: every rule of the catalogue", "[slow]") {
  std::vector<std::string> names;
  Candidates rules;
  for (const unit::Unit* base : unit::all_units()) {
    if (base->description() == nullptr) continue;
    for (const unit::Unit* one : unit::with_modifiers(*base)) {
      if (rules.add(*one->description())) names.push_back(one->row().name);
    }
  }
  recover_all(names, true);
}

}  // namespace identify_test
