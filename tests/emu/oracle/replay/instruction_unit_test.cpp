// The units of recorded instructions: the fast path gives the bits of the reference for ten kinds
// of data and for the probes.
#include "emu/oracle/replay/instruction_unit.hpp"

#include <algorithm>
#include <memory>
#include <vector>

#include "emu/oracle/patches.hpp"
#include "emu/oracle/recording/data.hpp"
#include "emu/oracle/recording/instruction.hpp"
#include "emu/oracle/recording/probe.hpp"
#include "tests/catch.hpp"
#include "tests/emu/oracle/recording/named.hpp"
#include "tests/oracle/cuda/ask/chips.hpp"
#include "tests/oracle/cuda/ask/probe_tiles.hpp"

namespace numemu::oracle::instruction_unit_test {
namespace {

using recording::Batch;
using recording::Instruction;

constexpr int kTiles = 10;  // one of each kind of data
constexpr int kRows = 2;    // of A; more rows test nothing new

void expect_same_bits(const unit::Unit& unit, const Batch& batch) {
  CHECK(results_of(unit, batch, Path::fast) == results_of(unit, batch, Path::reference));
}

/// Units of every `stride`th instruction.
void compare(std::size_t stride) {
  std::vector<unit::UnitDescription> compared;
  for (std::size_t at = 0; at < recording::instructions().size(); at += stride) {
    const Instruction& i = recording::instructions()[at];
    for (const std::string& chip : recording::chips_with(i)) {
      std::optional<unit::UnitDescription> u = unit_of(chip, i);
      const auto same = [&](const unit::UnitDescription& one) { return same_rule(one, *u); };
      if (!u || std::ranges::any_of(compared, same)) continue;
      compared.push_back(*u);
      INFO(chip << " " << full_name(i) << " = " << u->name);
      u->name = "compared";  // the names of the catalogue are its own
      const std::unique_ptr<unit::Unit> unit = unit::make_unit(*u);
      Instruction rows = i, single = i;
      rows.m = kRows;
      single.m = single.n = 1;
      Batch batch(rows, kTiles);
      fill(batch, tensor_of(i), 20, 0);
      expect_same_bits(*unit, batch);
      expect_same_bits(*unit, tiles_of(single, probes(i)));
    }
  }
  WARN(compared.size() << " units compared");
  CHECK(compared.size() > 250 / stride);
}

TEST_CASE("fast paths give the reference's results for some recorded instructions", "[fast]") {
  compare(12);
}

TEST_CASE("fast paths give the reference's results for every recorded instruction", "[slow]") {
  compare(1);
}

TEST_CASE("an instruction has the unit of its name, with its own C and K", "[fast]") {
  const auto unit = [](const char* chip, const char* kind, const char* text) {
    return unit_of(chip, recording::instruction(kind, text));
  };
  CHECK(unit("H100", "mma", "m16n8k16.f32.f16.f16.f32")->name == "nvidia.h100.mma.f16.f32");
  CHECK(unit("H100", "mma", "m16n8k8.f32.f16.f16.f32")->k == 8);
  CHECK(unit("V100", "mma", "m8n8k4.f32.f16.f16.f16")->c->name == "float16");
  CHECK_FALSE(unit("H100", "mma", "m8n8k4.f32.f16.f16.f16"));  // lowered to other instructions
  CHECK_FALSE(unit("R300", "mma", "m16n8k16.f32.f16.f16.f32"));
}

}  // namespace
}  // namespace numemu::oracle::instruction_unit_test
