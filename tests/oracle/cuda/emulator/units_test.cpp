// Two programs that know nothing of each other, the emulator's units and the integer rules of the
// replay, on the same tiles: every instruction of every chip, ten kinds of data, the reference and
// the fast path, bit for bit.
#include <map>

#include "tests/catch.hpp"
#include "tests/oracle/cuda/emulator/unit_answers.hpp"
#include "tests/oracle/cuda/emulator/unit_of.hpp"
#include "tests/oracle/cuda/inputs/data.hpp"
#include "tests/oracle/cuda/instructions/chip.hpp"
#include "tests/oracle/cuda/replay/chips.hpp"
#include "tests/oracle/cuda/replay/rule.hpp"
#include "tests/oracle/cuda/replay/tile_answers.hpp"

namespace numemu::gpu {
namespace {

constexpr std::uint64_t kSeed = 20;
constexpr int kTiles = 40;  // four of each kind of data
constexpr int kRows = 2;    // of A; a row more says no more

/// The bits of a float64 NaN that a GPU makes are not published.
bool nan_of_f64(const Instruction& i, std::uint64_t code) {
  return i.d == Element::f64 && (code & ~(std::uint64_t{1} << 63)) > 0x7ff0000000000000;
}

/// The first difference in words; "": none.
std::string difference(const Batch& batch, const std::vector<std::uint8_t>& unit,
                       const std::vector<std::uint8_t>& rule) {
  const Instruction& i = *batch.instruction;
  const auto bytes = static_cast<std::size_t>(info(i.d).bytes);
  for (std::size_t dot = 0; dot * bytes < unit.size(); ++dot) {
    const std::uint64_t said = load_code(&unit[dot * bytes], info(i.d).bytes);
    const std::uint64_t expected = load_code(&rule[dot * bytes], info(i.d).bytes);
    if (said == expected || (nan_of_f64(i, said) && nan_of_f64(i, expected))) continue;
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
    i.m = kRows;
    Batch batch(i, kTiles);
    fill(batch, static_cast<int>(number), kSeed, 0);
    const unit::Unit& unit = unit::find_unit(unit_name);
    const std::vector<std::uint8_t> expected = tile_answers(known.front(), batch);
    CHECK(difference(batch, unit_answers(unit, batch, Way::reference), expected) == "");
    CHECK(difference(batch, unit_answers(unit, batch, Way::fast), expected) == "");
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

}  // namespace numemu::gpu
