// The integer rule of each conversion against the project's own encoder, and the replay of records.
#include <algorithm>
#include <filesystem>
#include <map>

#include "emu/oracle/recording/philox.hpp"
#include "emu/oracle/recording/whole_file.hpp"
#include "formats/codec.hpp"
#include "tests/catch.hpp"
#include "tests/oracle/cuda/ask/ask_conversion.hpp"
#include "tests/oracle/cuda/conversions/replay.hpp"

namespace numemu::oracle::recording {
namespace {

const Conversion& named(const std::string& name) {
  const int row = find_conversion(name);
  INFO(name);
  REQUIRE(row >= 0);
  return conversions()[static_cast<std::size_t>(row)];
}

const Format& format_of(Element e) {
  static const std::map<Element, const char*> kNames = {
      {Element::f32, "float32"},        {Element::tf32, "tfloat32"},
      {Element::f16, "float16"},        {Element::bf16, "bfloat16"},
      {Element::e5m2, "float8_e5m2"},   {Element::e4m3, "float8_e4m3fn"},
      {Element::e3m2, "float6_e3m2fn"}, {Element::e2m3, "float6_e2m3fn"},
      {Element::e2m1, "float4_e2m1fn"}, {Element::ue8m0, "float8_e8m0fnu"}};
  return find_format(kNames.at(e));
}

Rounding rounding_of(const Conversion& c) {
  switch (c.rounding) {
    case CvtRounding::rna:
      return {RoundingMode::rna};
    case CvtRounding::rz:
      return {RoundingMode::rtz};
    case CvtRounding::rp:
      return {RoundingMode::rup};
    case CvtRounding::rs:
      return {RoundingMode::sr, StochasticVariant::a, conversion_rules(c).front().random_bits};
    default:
      return {RoundingMode::rne};
  }
}

/// What the two sides mean alike: no NaN, no negative or infinite scale.
bool comparable(const Conversion& c, const Value& value) {
  if (value.kind == Class::nan) return false;
  return c.d != Element::ue8m0 || (!value.negative && value.kind != Class::infinite);
}

/// What the project's encoder says. rs without .satfinite: its stochastic rounding never leaves the
/// finite numbers, while the rule goes to infinity.
std::uint32_t encoded(const Conversion& c, std::uint32_t in, const Value& value) {
  const Format& to = format_of(c.d);
  if (c.relu && value.negative) return 0;
  const int n = c.rounding == CvtRounding::rs ? conversion_rules(c).front().random_bits : 0;
  const std::uint32_t random = n == 0 ? 0 : random_bits(c, in) & ((1U << n) - 1);
  const Encoded code =
      encode(to, value, rounding_of(c), c.satfinite ? Overflow::saturate : Overflow::ieee, random);
  if (c.rounding == CvtRounding::rs && !c.satfinite && (code.flags & kOverflow) != 0)
    return static_cast<std::uint32_t>(to.infinity_code(value.negative));
  return static_cast<std::uint32_t>(code.code << to.container_shift);
}

/// Compares every input that is comparable; says which was the first to differ.
void compare(const Conversion& c, const std::vector<std::uint32_t>& inputs) {
  const Format& from = format_of(c.a);
  const ConversionRule rule = conversion_rules(c).front();
  int compared = 0, different = 0;
  for (const std::uint32_t in : inputs) {
    const Value value = decode(from, in);
    if (!comparable(c, value)) continue;
    ++compared;
    const std::uint32_t expected = encoded(c, in, value), got = convert(c, in, rule);
    if (expected == got) continue;
    if (different++ == 0)
      UNSCOPED_INFO(c.name << std::hex << ": of 0x" << in << " the rule makes 0x" << got
                           << ", the encoder 0x" << expected);
  }
  CHECK(different == 0);
  CHECK(compared > 0);
}

std::vector<std::uint32_t> sample(const std::vector<std::uint32_t>& all, std::size_t wanted) {
  const std::size_t step = std::max<std::size_t>(1, all.size() / wanted);
  std::vector<std::uint32_t> some;
  for (std::size_t i = 0; i < all.size(); i += step) some.push_back(all[i]);
  return some;
}

TEST_CASE("convert: narrow formats, all codes, as the project's encoder", "[fast]") {
  for (const Conversion& c : conversions())
    if (c.a != Element::f32) compare(c, conversion_inputs(c, 1));
}

TEST_CASE("convert: a hundred thousand float32 codes as the project's encoder", "[fast]") {
  std::vector<std::uint32_t> random;
  for (std::uint32_t i = 0; i < 25000; ++i) {
    const PhiloxBlock block = philox(7, {{i, 0, 0, kVectorStream}});
    random.insert(random.end(), block.word, block.word + 4);
  }
  for (const Conversion& c : conversions())
    if (c.a == Element::f32) compare(c, sample(random, 10000));
}

TEST_CASE("convert: every float32 input asked of the GPU as the project's encoder", "[slow]") {
  for (const Conversion& c : conversions())
    if (c.a == Element::f32) compare(c, conversion_inputs(c, 1));
}

TEST_CASE("convert: what the documents say of NaN, infinity, -0 and .relu", "[fast]") {
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
    CHECK(convert(named(x.name), x.in) == x.out);
  }
}

TEST_CASE("convert: each rival answers some recorded input otherwise", "[slow]") {
  for (const Conversion& c : conversions()) {
    if (c.a == Element::f32 && info(c.d).bits > 16) continue;
    const std::vector<std::uint32_t> in = conversion_inputs(c, 1);
    const std::vector<std::size_t> chosen = choose_records(c, in);
    const std::vector<ConversionRule> rules = conversion_rules(c);
    CHECK(rules.front().question.empty());
    for (std::size_t r = 1; r < rules.size(); ++r) {
      INFO(c.name << ": " << rules[r].name);
      CHECK_FALSE(rules[r].question.empty());
      CHECK(std::any_of(chosen.begin(), chosen.end(), [&](std::size_t i) {
        return convert(c, in[i], rules[r]) != convert(c, in[i], rules.front());
      }));
    }
  }
}

/// A chip that follows one rule; every lane gives the same code.
Converter chip_of_rule(std::size_t rule) {
  return [rule](const Conversion& c, const std::vector<std::uint32_t>& in) {
    std::vector<std::uint32_t> answers;
    for (const std::uint32_t x : in) {
      const std::uint32_t code = convert(c, x, conversion_rules(c)[rule]);
      std::uint32_t answer = 0;
      for (int lane = 0; lane < c.lanes(); ++lane) answer |= code << (answer_bits(c) * lane);
      answers.push_back(answer);
    }
    return answers;
  };
}

TEST_CASE("replay of conversions: the rule that answered is told from its rivals", "[fast]") {
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
    const std::vector<ConversionTally> tallies = replay_conversions(folder.string());
    REQUIRE(tallies.size() == rules);
    for (std::size_t other = 0; other < rules; ++other) {
      INFO("answered by " << tallies[rule].rule.name << ", replayed by "
                          << tallies[other].rule.name);
      CHECK((tallies[other].mismatches == 0) == (other == rule));
      CHECK(tallies[other].whole_run == (other == rule));
    }
    std::FILE* nowhere = std::tmpfile();
    CHECK(print_tallies(tallies, nowhere) == (rule == 0 ? 0 : 1));
    std::fclose(nowhere);
    std::filesystem::remove_all(folder);
  }
}

TEST_CASE("replay of conversions: no table, no tallies; a short file is refused", "[fast]") {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / "numemu-replay-cvt-short";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  CHECK(replay_conversions(folder.string()).empty());
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
    CHECK_THROWS_WITH(replay_conversions(folder.string()), Catch::Contains(words));
  };
  refused("\te4m3\t", "\te5m2\t", "conversions.tsv:2: rn.f16x2.e4m3x2 has 'e4m3' in column 4");
  refused("\t3\t256\t", "\t3\t-256\t", "tsv:2: expected a number, got '-256'");
  refused("\t3\t256\t", "\t3\t1000000000000000000\t", "tsv:2: expected 1 to 12000 records");
  refused("\t256\t256\t", "\t256\t255\t", "tsv:2: expected 256 inputs of that seed, got '255'");
  // No record differs: the whole run does.
  const std::size_t hash = table.rfind("\t0\t") - 1;
  with(table.substr(hash), (table[hash] == '0' ? "1" : "0") + table.substr(hash + 1));
  std::FILE* nowhere = std::tmpfile();
  CHECK(print_tallies(replay_conversions(folder.string()), nowhere) == 1);
  std::fclose(nowhere);
  with("", "");
  std::filesystem::resize_file(folder / "conversions" / "cvt__rn_f16x2_e4m3x2.bin", 100);
  CHECK_THROWS_WITH(replay_conversions(folder.string()),
                    Catch::Contains("expected 256 records of 3 bytes, has 100 bytes"));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace numemu::oracle::recording
