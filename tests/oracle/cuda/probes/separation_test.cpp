// Every rival rule is refuted by a probe of its question, or stands in a list that says why no
// input can refute it; random inputs at the ends of the types bear the list out.
#include <algorithm>
#include <map>
#include <utility>

#include "emu/oracle/draft.hpp"
#include "emu/oracle/recording/philox.hpp"
#include "emu/oracle/recording/probe.hpp"
#include "tests/catch.hpp"
#include "tests/oracle/cuda/replay/tile_answers.hpp"

namespace numemu::oracle::recording {
namespace {

int greatest_exponent(Element e) { return normal_reach(element_format(e)).greatest; }

/// Products reach far below 2^-126 and above 2^127.
bool wide(const Instruction& i) {
  return info(i.a).exponent_bits == 8 || i.a == Element::f64 || i.scale == Element::ue8m0;
}
bool sums_floats(const Instruction& i) { return !is_integer(i.a) && !wide(i); }
/// Why no input distinguishes a rival from the rule of the specification.
struct Reason {
  const char* question;
  bool (*applies)(const Instruction&, const Rule& first, const Rule& rival);
  const char* text;
};
constexpr Reason kReasons[] = {
    {"exponent-floor",
     [](const Instruction& i, const Rule&, const Rule& rival) {
       return sums_floats(i) && rival.exponent_floor <= -126 &&
              (i.scales() < 2 || rival.zero != ZeroProduct::dropped);
     },
     "no product and no C has an exponent below -126"},
    {"exponent-floor",
     [](const Instruction& i, const Rule& first, const Rule& rival) {
       return sums_floats(i) && i.d == Element::f16 && info(i.a).bits <= 8 &&
              rival.exponent_floor - first.fraction <= -32;
     },
     "the floor keeps 2^-32, the least product of FP8, and the least float16 C"},
    {"zero-exponent",
     [](const Instruction& i, const Rule&, const Rule&) {
       return sums_floats(i) && (i.d == Element::f16 || i.c == Element::f16);
     },
     "a zero product has an exponent of -111 at most, and float16 ends at 2^-24"},
    {"zero-exponent",
     [](const Instruction& i, const Rule& first, const Rule&) {
       return sums_floats(i) && first.core == Core::lowered_fp8;
     },
     "no product is below 2^-32, and C is added apart"},
    {"zero-exponent",
     [](const Instruction& i, const Rule&, const Rule&) {
       return sums_floats(i) && i.block == 0 && greatest_exponent(i.a) <= 2 &&
              greatest_exponent(i.b) <= 2;
     },
     "a zero product has an exponent of -124 at most, which keeps 2^-149"},
    {"overflow",
     [](const Instruction& i, const Rule&, const Rule&) {
       return sums_floats(i) && i.d == Element::f32;
     },
     "no sum of products is near 2^103, half an ulp of the largest float32"},
    {"zero-sign",
     [](const Instruction& i, const Rule&, const Rule& rival) {
       return sums_floats(i) && i.d == Element::f32 && rival.zero_sign == ZeroSign::of_sum;
     },
     "every term is a multiple of 2^-149, so no sum but zero is written as zero"},
    {"zero-sign",
     [](const Instruction& i, const Rule& first, const Rule&) {
       return sums_floats(i) && first.core == Core::lowered_fp8;
     },
     "the steps start from +0, and C is added as by IEEE 754"},
    {"zero-sign",
     [](const Instruction& i, const Rule& first, const Rule& rival) {
       return first.core == Core::four_groups &&
              (sums_floats(i) || rival.zero_sign == ZeroSign::of_zeros);
     },
     "the exact sum of a group of zeros is +0"},
    {"int-saturation",
     [](const Instruction& i, const Rule&, const Rule& rival) {
       return !info(i.a).has_sign && !info(i.b).has_sign &&
              rival.saturation == Saturation::per_step;
     },
     "no product is negative, so a sum that has left never returns"},
    {"kept-zeros",
     [](const Instruction& i, const Rule&, const Rule&) {
       return info(i.b).specials == Specials::finite && greatest_exponent(i.b) <= 2;
     },
     "B has no infinity and no NaN, and zeros beside it raise no exponent above that of C"},
    {"subnormal-inputs",
     [](const Instruction& i, const Rule&, const Rule&) { return i.scale == Element::ue4m3; },
     "a subnormal C is lost beside the least scales"},
    {"subnormal-results",
     [](const Instruction& i, const Rule&, const Rule&) { return i.scale == Element::ue4m3; },
     "what is kept beside the least scales is a normal float32"},
    {"subnormal-results",
     [](const Instruction& i, const Rule&, const Rule&) {
       return i.d == Element::f32 && i.c == Element::f16;
     },
     "no sum of float16 products and a float16 C is a subnormal float32"},
};

const char* reason(const Instruction& i, const Rule& first, const Rule& rival) {
  for (const Reason& each : kReasons)
    if (rival.question == each.question && each.applies(i, first, rival)) return each.text;
  return nullptr;
}

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

/// Dots whose operands lie at the ends of their types, one in row 0 and column 0 of each tile.
Batch random_ends(const Instruction& i, int count) {
  Batch batch(i, count);
  const TileBytes bytes = tile_bytes(i);
  std::uint32_t drawn = 0;
  const auto word = [&] { return philox(7, {{drawn++, 1, 2, 3}}).word[0]; };
  const auto fill = [&](std::vector<std::uint8_t>& tiles, std::size_t tile, Element e, int codes,
                        int tail) {
    const auto width = static_cast<std::size_t>(info(e).bytes);
    for (int n = 0; n < codes; ++n) {
      // Few numbers are not zero, so that single terms decide.
      const bool zero = word() % 8 < 5 && tail != 0;
      store_code(tiles.data() + tile + static_cast<std::size_t>(n) * width, info(e).bytes,
                 zero ? 0 : end_code(e, word()));
    }
  };
  for (std::size_t t = 0; t < static_cast<std::size_t>(count); ++t) {
    fill(batch.a, t * bytes.a, i.a, i.kept(), 1);
    fill(batch.b, t * bytes.b, i.b, i.k, 1);
    fill(batch.c, t * bytes.c, i.c, 1, 0);
    for (std::size_t s = 0; s < static_cast<std::size_t>(i.scales()); ++s) {
      batch.scale_a[t * bytes.scale_a + s] = static_cast<std::uint8_t>(word());
      batch.scale_b[t * bytes.scale_b + s] = static_cast<std::uint8_t>(word());
    }
  }
  return batch;
}

std::vector<std::uint64_t> answers(const Rule& rule, const Batch& batch) {
  std::vector<std::uint64_t> all;
  for (int t = 0; t < batch.count; ++t) all.push_back(answer(rule, dot_of(batch, t, 0, 0)));
  return all;
}

struct Chip {
  const char* name;
  int capability;
};

/// Rivals refuted and justified on the instructions of a chip.
std::pair<int, int> check(const Chip& chip, int random_dots) {
  int refuted = 0, justified = 0;
  for (const Instruction& i : instructions()) {
    if (chip.capability < i.chips.first || chip.capability > i.chips.last) continue;
    const std::vector<Rule> all = rules(chip.name, i);
    if (all.empty()) continue;
    const std::vector<Probe> asked = probes(i);
    const Batch tiles = tiles_of(i, asked);
    const Batch random = random_ends(i, random_dots);
    const std::vector<std::uint64_t> expected = answers(all[0], tiles);
    const std::vector<std::uint64_t> at_random = answers(all[0], random);
    for (std::size_t r = 1; r < all.size(); ++r) {
      const std::vector<std::uint64_t> other = answers(all[r], tiles);
      bool separated = false;
      for (std::size_t p = 0; p < asked.size(); ++p)
        separated = separated || (asked[p].question == all[r].question && other[p] != expected[p]);
      const char* why = reason(i, all[0], all[r]);
      INFO(chip.name << " " << name(i.kind) << " " << name(i) << ": " << all[0].name << " against "
                     << all[r].question << ", " << all[r].name);
      CHECK(separated != (why != nullptr));
      refuted += separated ? 1 : 0;
      if (separated || why == nullptr) continue;
      ++justified;
      INFO(why);
      // Rivals about floors that drop zeros as well are told apart by the zeros.
      if (all[r].question == "exponent-floor" && all[r].zero != all[0].zero) continue;
      CHECK(answers(all[r], random) == at_random);
    }
  }
  return {refuted, justified};
}

TEST_CASE("a probe refutes every rival on Hopper, or none can", "[fast]") {
  const auto [refuted, justified] = check({"H100", 90}, 50);
  CHECK(refuted > 500);
  CHECK(justified > 0);
}

TEST_CASE("a probe refutes every rival on the other chips, or none can", "[slow]") {
  for (const Chip& chip : {Chip{"V100", 70}, Chip{"T4", 75}, Chip{"A100", 80}, Chip{"Ada", 89},
                           Chip{"H100", 90}, Chip{"B200", 100}, Chip{"RTXBlackwell", 120}}) {
    const auto [refuted, justified] = check(chip, 300);
    WARN(chip.name << ": " << refuted << " rivals refuted by a probe, " << justified
                   << " that no input refutes");
    CHECK(refuted > 0);
  }
}

}  // namespace
}  // namespace numemu::oracle::recording
