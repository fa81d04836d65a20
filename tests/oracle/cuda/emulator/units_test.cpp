// Two independent programs, the emulator's units and the integer rules of the replay, on the same
// dots: every instruction of every chip, ten kinds of data and every probe, the
// reference and the fast path, bit for bit.
#include <cstdio>

#include "emu/oracle/recording/chip.hpp"
#include "emu/oracle/recording/data.hpp"
#include "emu/oracle/recording/probe.hpp"
#include "tests/catch.hpp"
#include "tests/oracle/cuda/emulator/unit_answers.hpp"
#include "tests/oracle/cuda/emulator/unit_of.hpp"
#include "tests/oracle/cuda/replay/chips.hpp"
#include "tests/oracle/cuda/replay/rule.hpp"
#include "tests/oracle/cuda/replay/tile_answers.hpp"

namespace numemu::oracle::recording {
namespace {

constexpr std::uint64_t kSeed = 20;
constexpr int kTiles = 30;  // three of each kind of data
constexpr int kRows = 2;    // of A; more rows test nothing new

/// The bits of a float64 NaN that a GPU makes are not published.
bool nan_of_f64(const Instruction& i, std::uint64_t code) {
  return i.d == Element::f64 && (code & ~(std::uint64_t{1} << 63)) > 0x7ff0000000000000;
}

bool zero(const Instruction& i, std::uint64_t code) {
  return !is_integer(i.d) && (code & ~(std::uint64_t{1} << (info(i.d).bits - 1))) == 0;
}

/// The first difference in words; "": none. padded: K is less than the unit's, whose step over the
/// zeros that are missing makes +0 of -0.
std::string difference(const Batch& batch, const std::vector<std::uint8_t>& unit,
                       const std::vector<std::uint8_t>& rule, bool padded) {
  const Instruction& i = *batch.instruction;
  const auto bytes = static_cast<std::size_t>(info(i.d).bytes);
  for (std::size_t dot = 0; dot * bytes < unit.size(); ++dot) {
    const std::uint64_t said = load_code(&unit[dot * bytes], info(i.d).bytes);
    const std::uint64_t expected = load_code(&rule[dot * bytes], info(i.d).bytes);
    if (said == expected || (nan_of_f64(i, said) && nan_of_f64(i, expected))) continue;
    if (padded && zero(i, said) && zero(i, expected)) continue;
    char text[160];
    const auto per_tile = static_cast<std::size_t>(i.m * i.n);
    std::snprintf(text, sizeof text,
                  "tile %zu, row %zu, column %zu: the unit says %llx, the rule %llx",
                  dot / per_tile, dot % per_tile / static_cast<std::size_t>(i.n),
                  dot % static_cast<std::size_t>(i.n), static_cast<unsigned long long>(said),
                  static_cast<unsigned long long>(expected));
    return text;
  }
  return "";
}

void compare(const unit::Unit& unit, const Rule& rule, Batch& batch) {
  const std::vector<std::uint8_t> expected = tile_answers(rule, batch);
  const bool padded = batch.instruction->kept() < unit.description()->k;
  CHECK(difference(batch, unit_answers(unit, batch, Way::reference), expected, padded) == "");
  CHECK(difference(batch, unit_answers(unit, batch, Way::fast), expected, padded) == "");
}

/// The rule of the specification, but the sign of a negative sum that is cut to zero as the units
/// have it: what a GPU has is an open question (docs/hardware.md).
Rule rule_of_units(Rule rule) {
  rule.zero_sign = ZeroSign::of_sum;
  return rule;
}

void prove(const std::string& chip) {
  int compared = 0;
  const std::vector<Instruction>& table = instructions();
  for (std::size_t number = 0; number < table.size(); ++number) {
    Instruction i = table[number];
    if (!has(i, capability_of(chip))) continue;
    const std::string unit_name = unit_of(chip, i);
    const std::vector<Rule> known = rules(replay::chip_of(chip), i);
    if (unit_name.empty() || known.empty()) continue;
    INFO(chip << " " << name(i.kind) << " " << name(table[number]) << " = " << unit_name);
    const unit::Unit& unit = unit::find_unit(unit_name);
    const Rule rule = rule_of_units(known.front());
    i.m = kRows;
    Batch batch(i, kTiles);
    fill(batch, tensor_of(table[number]), kSeed, 0);
    compare(unit, rule, batch);
    // Random data rarely reach the corners that distinguish rivals: zeros, ends of the types, NaN.
    i.m = i.n = 1;
    Batch asked = tiles_of(i, probes(table[number]));
    compare(unit, rule, asked);
    ++compared;
  }
  WARN(chip << ": " << compared << " instructions compared");
  CHECK(compared > 0);
}

}  // namespace

#define NUMEMU_CHIP(chip) \
  TEST_CASE("units and replay agree on every instruction of the " chip, "[fast]") { prove(chip); }
NUMEMU_CHIP("V100")
NUMEMU_CHIP("T4")
NUMEMU_CHIP("A100")
NUMEMU_CHIP("A2")
NUMEMU_CHIP("Ada")
NUMEMU_CHIP("L40S")
NUMEMU_CHIP("H100")
NUMEMU_CHIP("H200")
NUMEMU_CHIP("B200")
NUMEMU_CHIP("RTXBlackwell")

}  // namespace numemu::oracle::recording
