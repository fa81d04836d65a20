// What the documents say of conversions, and recorded conversions: the rule that answered is named.
#include "tests/oracle/cuda/ask/ask_conversion.hpp"

#include <algorithm>
#include <filesystem>

#include "emu/oracle/recording/whole_file.hpp"
#include "emu/oracle/replay/conversion_judge.hpp"
#include "tests/catch.hpp"
#include "tests/oracle/cuda/ask/written_file.hpp"

namespace numemu::oracle::recording::ask_conversion_test {
namespace {

const Conversion& named(std::string_view name) {
  const int row = find_conversion(std::string(name));
  INFO(name);
  REQUIRE(row >= 0);
  return conversions()[static_cast<std::size_t>(row)];
}

TEST_CASE("conversions: what the documents say of NaN, infinity, -0 and .relu", "[fast]") {
  struct Case {
    const char* name;
    std::uint32_t in, out;
  };
  const Case kCases[] = {
      {"rn.f16.f32", 0xffc12345, 0x7fff},
      {"rn.bf16.f32", 0x7f800001, 0x7fff},
      {"rn.f16.f32", 0x477ff000, 0x7c00},            // 65520 ties to infinity
      {"rz.f16.f32", 0x47ffffff, 0x7bff},            // rz never leaves the range
      {"rz.f16.f32", 0xff800000, 0xfc00},            // but infinity is infinity
      {"rn.satfinite.f16.f32", 0xff800000, 0xfbff},  // .satfinite takes it to the largest
      {"rn.relu.f16.f32", 0xff800000, 0x0000},
      {"rn.relu.f16.f32", 0x80000000, 0x0000},
      {"rn.satfinite.e4m3x2.f32", 0x7f800000, 0x7e},
      {"rn.satfinite.e4m3x2.f32", 0xffc00000, 0x7f},
      {"rn.satfinite.e5m2x2.f32", 0xff800000, 0xfb},
      {"rn.satfinite.e5m2x2.f16x2", 0x7e01, 0x7f},
      {"rn.satfinite.relu.e4m3x2.f16x2", 0xfe00, 0x7f},
      {"rn.satfinite.e2m1x2.f32", 0xffc00000, 0x7},  // no NaN there: the largest, positive
      {"rn.satfinite.e3m2x2.f32", 0xff800000, 0x3f},
      {"rn.f16x2.e4m3x2", 0xff, 0x7fff},
      {"rn.f16x2.e5m2x2", 0x7d, 0x7fff},
      {"rn.bf16x2.ue8m0x2", 0xff, 0x7fff},
      {"rn.bf16x2.ue8m0x2", 0x00, 0x0040},
      {"rp.satfinite.ue8m0x2.f32", 0x7f7fffff, 0xfe},
      {"rp.ue8m0x2.f32", 0x7f7fffff, 0xff},
      {"rz.ue8m0x2.f32", 0x7f7fffff, 0xfe},
      {"rz.satfinite.ue8m0x2.bf16x2", 0x7f80, 0xfe},
      {"rz.ue8m0x2.bf16x2", 0x7f80, 0xff},
      {"f32.f16", 0xfe00, 0x7fffffff},
      {"f32.bf16", 0xff81, 0xff810000},
      // SASS of CUDA 13.0 for sm_80 to sm_90: add 0x1000 unless infinite or NaN, cut 13 bits.
      {"rna.tf32.f32", 0x7f801fff, 0x7f800000},
      {"rna.tf32.f32", 0xffffffff, 0xffffe000},
      {"rna.tf32.f32", 0x7f7ff000, 0x7f800000},
      {"rna.satfinite.tf32.f32", 0x7f7ff000, 0x7f7fe000},
      {"rna.satfinite.tf32.f32", 0xffffffff, 0xffffc000}};
  for (const Case& x : kCases) {
    INFO(x.name << " of 0x" << std::hex << x.in);
    const Conversion& c = named(x.name);
    CHECK(converted(c, x.in, conversion_rules(c).front()) == x.out);
  }
}

TEST_CASE("conversions: lanes that differ are seen", "[fast]") {
  const Conversion &one = named("rn.tf32.f32"), &two = named("rn.f16x2.f32"),
                   &four = named("rs.satfinite.e4m3x4.f32");
  CHECK(lanes_agree(one, 0x12345678));
  CHECK(lanes_agree(two, 0x12341234));
  CHECK_FALSE(lanes_agree(two, 0x12345678));
  CHECK_FALSE(lanes_agree(four, 0x12121312));
}

TEST_CASE("conversions: records fit and begin with the specials", "[fast]") {
  for (const Conversion& c : conversions()) {
    if (c.a == Element::f32 && info(c.d).bits > 8) continue;
    const std::vector<std::uint32_t> in = conversion_inputs(c, 1);
    const std::vector<std::size_t> chosen = choose_records(c, in);
    INFO(c.name);
    CHECK(std::is_sorted(chosen.begin(), chosen.end()));
    CHECK(std::adjacent_find(chosen.begin(), chosen.end()) == chosen.end());
    CHECK(chosen.back() < in.size());
    CHECK(chosen.front() == 0);
    std::vector<std::uint32_t> answers(in.size());
    for (const std::size_t i : chosen)
      answers[i] = converted(c, in[i], conversion_rules(c).front());
    const std::vector<std::uint8_t> records = conversion_records(c, chosen, in, answers);
    const auto size = static_cast<std::size_t>(record_bytes(c));
    REQUIRE(records.size() == chosen.size() * size);
    CHECK(records.size() <= kRecordedBytes);
    for (const std::size_t i : {std::size_t{0}, chosen.size() / 2, chosen.size() - 1}) {
      const std::uint8_t* at = records.data() + i * size;
      CHECK(load_code(at, info(c.a).bytes) == in[chosen[i]]);
      CHECK(load_code(at + info(c.a).bytes, info(c.d).bytes) == answers[chosen[i]]);
    }
  }
}

TEST_CASE("conversions: each rival answers some recorded input otherwise", "[slow]") {
  for (const Conversion& c : conversions()) {
    if (c.a == Element::f32 && info(c.d).bits > 16) continue;
    const std::vector<std::uint32_t> in = conversion_inputs(c, 1);
    const std::vector<std::size_t> chosen = choose_records(c, in);
    const std::vector<ConversionRule> rules = conversion_rules(c);
    CHECK(rules.front().family.empty());
    for (std::size_t r = 1; r < rules.size(); ++r) {
      INFO(c.name << ": " << rules[r].name);
      CHECK_FALSE(rules[r].family.empty());
      CHECK(std::any_of(chosen.begin(), chosen.end(), [&](std::size_t i) {
        return converted(c, in[i], rules[r]) != converted(c, in[i], rules.front());
      }));
    }
  }
}

/// A chip that follows one rule; every lane gives the same code.
Converter chip_of_rule(std::size_t rule) {
  return [rule](const Conversion& c, const std::vector<std::uint32_t>& in) {
    std::vector<std::uint32_t> answers;
    for (const std::uint32_t x : in) {
      const std::uint32_t code = converted(c, x, conversion_rules(c)[rule]);
      std::uint32_t answer = 0;
      for (int lane = 0; lane < c.lanes(); ++lane) answer |= code << (answer_bits(c) * lane);
      answers.push_back(answer);
    }
    return answers;
  };
}

TEST_CASE("recorded conversions: the rule that answered is told from its rivals", "[fast]") {
  const Conversion& c = named("rn.satfinite.e5m2x2.f16x2");
  const std::size_t rules = conversion_rules(c).size();
  for (std::size_t rule = 0; rule < rules; ++rule) {
    const std::filesystem::path folder =
        std::filesystem::temp_directory_path() / ("numemu-replay-cvt-" + std::to_string(rule));
    std::filesystem::remove_all(folder);
    AskOptions options;
    options.unit = "H100";
    options.source = "a test";
    ask_conversion(chip_of_rule(rule), c, options, folder.string());
    const std::vector<ConversionReplay> tallies = judge_conversions(folder.string());
    REQUIRE(tallies.size() == rules);
    for (std::size_t other = 0; other < rules; ++other) {
      INFO("answered by " << tallies[rule].records.name << ", replayed by "
                          << tallies[other].records.name);
      CHECK(tallies[other].records.holds() == (other == rule));
      CHECK(tallies[other].whole_run == (other == rule));
    }
    CHECK(tallies.front().holds() == (rule == 0));
    std::filesystem::remove_all(folder);
  }
}

TEST_CASE("recorded conversions: no table, no tallies; a short file is refused", "[fast]") {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / "numemu-replay-cvt-short";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  CHECK(judge_conversions(folder.string()).empty());
  const Conversion& c = named("rn.f16x2.e4m3x2");
  AskOptions options;
  ask_conversion(chip_of_rule(0), c, options, folder.string());
  const std::string table = read_whole_file((folder / "conversions.tsv").string());
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = table;
    changed.replace(changed.find(from), from.size(), to);
    write_whole_file((folder / "conversions.tsv").string(), changed);
  };
  const auto refused = [&](const std::string& from, const std::string& to,
                           const std::string& words) {
    with(from, to);
    CHECK_THROWS_WITH(judge_conversions(folder.string()), Catch::Contains(words));
  };
  refused("\te4m3\t", "\te5m2\t",
          "conversions.tsv line 2: from: expected e4m3 for rn.f16x2.e4m3x2");
  refused("\t3\t256\t", "\t3\t-256\t", "line 2: count: expected a number below 10^9, found '-256'");
  refused("\t3\t256\t", "\t3\t1000000000000000000\t",
          "line 2: count: expected a number below 10^9");
  refused("\t256\t256\t", "\t256\t255\t",
          "line 2: inputs: expected 256 for rn.f16x2.e4m3x2, found '255'");
  // No record differs: the whole run does.
  const std::size_t hash = table.rfind("\t0\t") - 1;
  with(table.substr(hash), (table[hash] == '0' ? "1" : "0") + table.substr(hash + 1));
  CHECK_FALSE(judge_conversions(folder.string()).front().holds());
  with("", "");
  std::filesystem::resize_file(folder / "conversions" / "cvt__rn_f16x2_e4m3x2.bin", 100);
  CHECK_THROWS_WITH(
      judge_conversions(folder.string()),
      Catch::Contains("expected 256 records of 3 bytes, that is 768 bytes, found 100"));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace numemu::oracle::recording::ask_conversion_test
