// Folders of records that a rule answered: that rule is named, a changed bit is found, and what is
// wrong in a folder is reported with its place.
#include "emu/oracle/replay/record_judge.hpp"

#include <algorithm>
#include <filesystem>
#include <set>
#include <span>

#include "emu/oracle/recording/data.hpp"
#include "emu/oracle/replay/instruction_unit.hpp"
#include "emu/oracle/replay/record_rules.hpp"
#include "tests/catch.hpp"
#include "tests/emu/oracle/recording/named.hpp"
#include "tests/files.hpp"
#include "tests/oracle/cuda/ask/large_run.hpp"
#include "tests/oracle/cuda/ask/record_writer.hpp"

namespace numemu::oracle::record_judge_test {
namespace {

using recording::Batch;
using recording::Instruction;
using test::message_of;
using test::TemporaryFolder;

constexpr int kDots = 200;  // twenty of each kind of data

/// Random dots of the instruction as the rule answers them.
Batch answered(const Instruction& i, const Rule& rule, const Instruction& single) {
  Batch batch(single, kDots);
  fill(batch, tensor_of(i), 3, 0);
  batch.d = results_of(rule, batch);
  return batch;
}

void write_folder(const std::string& folder, const std::string& chip, const Instruction& i,
                  const Rule& rule) {
  Instruction single = i;
  single.m = single.n = 1;
  const Batch batch = answered(i, rule, single);
  std::string records;
  for (int dot = 0; dot < kDots; ++dot) append_record(records, batch, dot, 0, 0);
  recording::RecordWriter writer(folder, chip, "a test");
  writer.add_records(i, records);
  writer.finish();
}

struct Case {
  const char *chip, *kind, *name;
};
constexpr Case kCases[] = {{"V100", "mma", "m8n8k4.f32.f16.f16.f16"},
                           {"A100", "mma", "m16n8k8.f32.tf32.tf32.f32"},
                           {"A100", "mmasp", "m16n8k32.f32.bf16.bf16.f32"},
                           {"A100", "mma", "m8n8k4.f64.f64.f64.f64"},
                           {"A100", "mma", "m16n8k32.s32.s8.s8.s32.satfinite"},
                           {"H100", "mma", "m16n8k32.f32.e4m3.e5m2.f32"},
                           {"H100", "wgmma", "m64n8k32.f32.e5m2.e5m2"},
                           {"RTXBlackwell", "mmabs", "m16n8k64.block16.f32.e2m1.e2m1.f32.ue4m3"}};

/// The questions whose first rival answers a folder and is told from the rule of the unit: by
/// random data; probes tell the rest.
std::set<std::string> told_apart(std::span<const Case> cases) {
  std::set<std::string> questions;
  for (const Case& c : cases) {
    const Instruction& i = recording::instruction(c.kind, c.name);
    const std::optional<Rule> rule = rule_of(c.chip, i);
    REQUIRE(rule);
    std::set<std::string> tried;
    for (const Rule& rival : rivals_of_catalogue(*rule, i)) {
      if (!rival.equal.empty() || !tried.insert(rival.family).second) continue;
      const TemporaryFolder folder;
      write_folder(folder.path(), c.chip, i, rival);
      const RecordFolder records = read_record_folder(folder.path());
      const std::vector<Judgement> judged = judge(records);
      REQUIRE(judged.size() == 1);
      INFO(c.chip << " " << c.name << ": " << rival.name);
      const auto own = std::ranges::find_if(judged[0].rules, [&](const Judged& v) {
        return v.name == rival.name && v.family == rival.family;
      });
      REQUIRE(own != judged[0].rules.end());
      CHECK(own->holds());
      if (judged[0].holds()) continue;
      questions.insert(rival.family);
      REQUIRE(refuted(judged).size() == 1);
      const std::vector<std::string> standing = refuted(judged)[0].standing;
      CHECK(std::ranges::count(standing, rival.name) == 1);
    }
  }
  return questions;
}

TEST_CASE("the rival that answered is told from the rule of the unit", "[fast]") {
  const auto questions = told_apart({kCases + 1, 1});
  CHECK(questions.contains("kept-bits"));
  CHECK(questions.contains("tf32-low-bits"));
}

TEST_CASE("the rival that answered is told from the rule of every kind of unit", "[slow]") {
  const auto questions = told_apart(kCases);
  const std::set<std::string> expected = {
      "alignment-rounding", "c-entry",    "double-chain",  "fp8-lowering", "infinities",
      "int-saturation",     "kept-bits",  "kept-zeros",    "nan-payload",  "product-exponent",
      "sparse-order",       "step-width", "tf32-low-bits", "written-bits"};
  for (const std::string& question : expected) {
    INFO(question);
    CHECK(questions.contains(question));
  }
}

TEST_CASE("records of the unit hold, one changed bit is found where it is", "[fast]") {
  const Instruction& i = recording::instruction("mma", "m16n8k16.f32.f16.f16.f32");
  const TemporaryFolder folder;
  write_folder(folder.path(), "H100", i, *rule_of("H100", i));
  RecordFolder records = read_record_folder(folder.path());
  CHECK(judge(records)[0].holds());
  const std::size_t size = recording::record_bytes(i);
  records.files[0].bytes[7 * size + size - 4] ^= 1;  // the last bit of the eighth result
  const Judgement judged = judge(records)[0];
  CHECK(judged.rules[0].tally.mismatches() == 1);
  const Sample& first = judged.rules[0].first->one;
  CHECK(first.number[0] == 7);
  CHECK((first.records.columns.back()[0] ^ first.want[0]) == 1);
}

TEST_CASE("a chip without a unit is left without a verdict", "[fast]") {
  const Instruction& i = recording::instruction("mma", "m16n8k16.f32.f16.f16.f32");
  const TemporaryFolder folder;
  write_folder(folder.path(), "R300", i, *rule_of("H100", i));
  const RecordFolder records = read_record_folder(folder.path());
  CHECK(judge(records)[0].rules.empty());
  // By a description it is judged all the same.
  const unit::UnitDescription own = *unit_of("H100", i), other = *unit_of("A100", i);
  CHECK(judge(records, &own)[0].holds());
  CHECK_FALSE(judge(records, &other)[0].holds());
  // Not by one that would read beyond its records.
  const unit::UnitDescription& wide = *unit::find_unit("nvidia.a100.mma.f64.f64").description();
  CHECK(message_of([&] { judge(records, &wide); }) ==
        "unit recorded: a: expected 16 codes of 64 bits, found 16 of 16 bits in "
        "mma m16n8k16.f32.f16.f16.f32");
}

TEST_CASE("a recorded instruction is identified", "[fast]") {
  const Instruction& i = recording::instruction("mma", "m16n8k8.f32.tf32.tf32.f32");
  const TemporaryFolder folder;
  write_folder(folder.path(), "A100", i, *rule_of("A100", i));
  const RecordFolder records = read_record_folder(folder.path());
  const std::vector<RecordedUnit> units = recorded_units(records);
  REQUIRE(units.size() == 1);
  CHECK(units[0].answers.size() == kDots);
  std::vector<Dot> dots;
  std::vector<std::uint64_t> recorded;
  for (const Answered& one : units[0].answers) {
    dots.push_back(one.question.dot);
    recorded.push_back(one.code);
  }
  CHECK(evaluate(*unit_of("A100", i), units[0].ports, dots) == recorded);
}

TEST_CASE("hashes of large runs are computed again", "[fast]") {
  const Instruction& i = recording::instruction("mma", "m16n8k8.f32.tf32.tf32.f32");
  const TemporaryFolder folder;
  const Rule rule = *rule_of("A100", i);
  write_folder(folder.path(), "A100", i, rule);
  Batch batch(i, 64);
  fill(batch, tensor_of(i), 9, 0);
  batch.d = results_of(rule, batch);
  recording::DotHasher hasher;
  hasher.add(batch);
  std::vector<std::uint64_t> hashes = hasher.hashes();
  REQUIRE(hashes.size() == 2);
  const auto judged = [&] {
    recording::write_hashes(folder.path(), {{&i, 9, 64, hashes}});
    std::vector<HashReplay> all;
    judge_hashes(folder.path(), "", [&](const HashReplay& v) { all.push_back(v); });
    REQUIRE(all.size() == 1);
    return all[0];
  };
  CHECK(judged().differ == 0);
  hashes[1] ^= 1;
  CHECK(judged().differ == 1);
  CHECK(judged().first_tile == 32);
}

TEST_CASE("what is wrong in a folder of records is reported with its place", "[fast]") {
  const Instruction& i = recording::instruction("mma", "m16n8k16.f32.f16.f16.f32");
  const TemporaryFolder folder;
  write_folder(folder.path(), "H100", i, *rule_of("H100", i));
  const std::string index = test::read_file(folder / "index.tsv");
  const auto refusal = [&](const std::string& from, const std::string& to) {
    std::string changed = index;
    changed.replace(changed.find(from), from.size(), to);
    test::write_file(folder / "index.tsv", changed);
    return message_of([&] { read_record_folder(folder.path()); });
  };
  using Catch::Contains;
  CHECK_THAT(refusal("\t200\t", "\t201\t"), Contains("expected 201 records of"));
  CHECK_THAT(refusal("\t200\t", "\t-1\t"), Contains("line 2: count: expected a number"));
  CHECK_THAT(refusal("\tm16n8k16", "\tm16n8k99"), Contains("line 2: expected a known instruction"));
  CHECK_THAT(refusal("\tf32\tf32\t", "\tf32\tf16\t"), Contains("line 2: d: expected f32"));
  CHECK_THAT(refusal("records/", "../"), Contains("expected a path below"));
  CHECK_THAT(refusal("\tkind", ""), Contains("line 2: expected 15 columns, found 16"));
  CHECK_THAT(refusal("\tkind", "\tkinds"), Contains("line 2: expected a column kind"));
}

}  // namespace
}  // namespace numemu::oracle::record_judge_test
