// Every rival is told from its unit by a probe of its question, or has a reason why no input can;
// random inputs at the ends of the types do not contradict these reasons.
#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "emu/oracle/recording/data.hpp"
#include "emu/oracle/recording/instruction.hpp"
#include "emu/oracle/recording/probe.hpp"
#include "emu/oracle/replay/record_rules.hpp"
#include "tests/catch.hpp"
#include "tests/oracle/cuda/ask/chips.hpp"
#include "tests/oracle/cuda/ask/probe_tiles.hpp"

namespace numemu::oracle::recording::separation_test {
namespace {

/// Codes at the ends of a type: every field all zeros, all ones, or drawn.
std::uint64_t end_code(Element e, std::uint32_t word) {
  const ElementInfo type = info(e);
  const int low = e == Element::tf32 ? 13 : 0;
  const int mantissa = is_integer(e) ? type.bits - 1 : type.mantissa_bits;
  const int exponent = type.exponent_bits;
  const std::uint64_t ones_m = (1ULL << mantissa) - 1, ones_e = (1ULL << exponent) - 1;
  const std::uint64_t m[] = {0, 1, ones_m, word >> 8 & ones_m};
  const std::uint64_t x[] = {0, 1 & ones_e, ones_e == 0 ? 0 : ones_e - 1, word >> 20 & ones_e};
  const std::uint64_t sign = type.has_sign ? word >> 4 & 1 : 0;
  const std::uint64_t magnitude = (x[word >> 2 & 3] << mantissa | m[word & 3]);
  const int bits = type.bits - low - (type.has_sign ? 1 : 0);
  return (sign << bits | (magnitude & ((1ULL << bits) - 1))) << low;
}

/// Single dots whose operands lie at the ends of their types.
Batch random_ends(const Instruction& single, int count) {
  Batch batch(single, count);
  std::uint32_t drawn = 0;
  const auto word = [&] { return philox(7, {{drawn++, 1, 2, 3}}).word[0]; };
  const auto fill = [&](std::vector<std::uint8_t>& codes, Element e, std::uint32_t zeros_of_8) {
    const int bytes = info(e).bytes;
    for (std::size_t at = 0; at < codes.size(); at += static_cast<std::size_t>(bytes))
      store_code(&codes[at], bytes, word() % 8 < zeros_of_8 ? 0 : end_code(e, word()));
  };
  // Few factors are not zero, so that single terms decide.
  fill(batch.a, single.a, 5);
  fill(batch.b, single.b, 5);
  fill(batch.c, single.c, 0);
  for (std::uint8_t& scale : batch.scale_a) scale = static_cast<std::uint8_t>(word());
  for (std::uint8_t& scale : batch.scale_b) scale = static_cast<std::uint8_t>(word());
  return batch;
}

/// Whether two results differ for a probe of the question.
bool separated(const Instruction& i, const std::vector<Probe>& asked, const std::string& question,
               const std::vector<std::uint8_t>& x, const std::vector<std::uint8_t>& y) {
  const int bytes = info(i.d).bytes;
  for (std::size_t p = 0; p < asked.size(); ++p) {
    const std::size_t at = p * static_cast<std::size_t>(bytes);
    if (asked[p].question == question && load_code(&x[at], bytes) != load_code(&y[at], bytes))
      return true;
  }
  return false;
}

/// The first dot whose results differ; "": none.
std::string difference(const Instruction& i, const std::vector<std::uint8_t>& x,
                       const std::vector<std::uint8_t>& y) {
  const int bytes = info(i.d).bytes;
  for (std::size_t at = 0; at < x.size(); at += static_cast<std::size_t>(bytes)) {
    const std::uint64_t one = load_code(&x[at], bytes), other = load_code(&y[at], bytes);
    if (one != other)
      return fmt::format("dot {}: {:#x} against {:#x}", at / static_cast<std::size_t>(bytes), one,
                         other);
  }
  return "";
}

/// Rivals refuted and justified on every `stride`th instruction of a chip.
std::pair<int, int> check(const char* chip, int stride, int random_dots) {
  int refuted = 0, justified = 0, number = 0;
  for (const Instruction& i : instructions()) {
    if (!has(i, capability_of(chip)) || number++ % stride != 0) continue;
    const std::optional<Rule> rule = rule_of(chip, i);
    if (!rule) continue;
    Instruction single = i;
    single.m = single.n = 1;
    const std::vector<Probe> asked = probes(i);
    const Batch dots = tiles_of(single, asked), random = random_ends(single, random_dots);
    const auto expected = results_of(*rule, dots), at_random = results_of(*rule, random);
    for (const Rule& rival : rivals_of_catalogue(*rule, i)) {
      INFO(chip << " " << full_name(i) << ": " << rule->name << " against " << rival.family << ", "
                << rival.name);
      INFO(rival.equal);
      const bool told = separated(i, asked, rival.family, results_of(rival, dots), expected);
      CHECK(told == rival.equal.empty());
      ++(told ? refuted : justified);
      if (!rival.equal.empty()) CHECK(difference(i, results_of(rival, random), at_random) == "");
    }
  }
  return {refuted, justified};
}

TEST_CASE("a probe refutes every rival on a part of Hopper, or none can", "[fast]") {
  const auto [refuted, justified] = check("H100", 6, 50);
  CHECK(refuted > 200);
  CHECK(justified > 0);
}

TEST_CASE("a probe refutes every rival on every chip, or none can", "[slow]") {
  for (const char* chip : {"V100", "T4", "A100", "Ada", "H100", "B200", "RTXBlackwell"}) {
    const auto [refuted, justified] = check(chip, 1, 300);
    WARN(chip << ": " << refuted << " rivals refuted by a probe, " << justified
              << " that no input refutes");
    CHECK(refuted > 0);
  }
}

}  // namespace
}  // namespace numemu::oracle::recording::separation_test
