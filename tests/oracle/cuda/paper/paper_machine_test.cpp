// The paper machine: what goes through its registers comes out as the unit computes the arrays.
#include "tests/oracle/cuda/paper/paper_machine.hpp"

#include <memory>
#include <set>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "emu/oracle/recording/data.hpp"
#include "emu/oracle/recording/instruction.hpp"
#include "emu/oracle/replay/instruction_unit.hpp"
#include "tests/catch.hpp"
#include "tests/emu/oracle/recording/named.hpp"
#include "tests/oracle/cuda/layout/layout_check.hpp"

namespace numemu::oracle::recording::paper_machine_test {
namespace {

const char* const kChips[] = {"V100", "H100", "RTXBlackwell"};

/// Random bits; a seed gives the same ones again.
class Bits {
 public:
  explicit Bits(std::uint64_t seed) : seed_(seed) {}
  std::uint64_t next() {
    const PhiloxBlock block = philox(seed_, {{count_++, 0, 0, 0}});
    return block.word[0] | static_cast<std::uint64_t>(block.word[1]) << 32;
  }

 private:
  std::uint64_t seed_;
  std::uint32_t count_ = 0;
};

void randomize(std::vector<std::uint8_t>& codes, Element e, Bits& bits) {
  const ElementInfo element = info(e);
  const std::uint64_t mask = ~std::uint64_t{0} >> (64 - element.bits);
  for (std::size_t at = 0; at < codes.size(); at += static_cast<std::size_t>(element.bytes))
    store_code(&codes[at], element.bytes, bits.next() & mask);
}

/// Any codes, NaN and all; valid metadata.
Batch random_batch(const Instruction& i, int count, std::uint64_t seed) {
  Batch batch(i, count);
  Bits bits(seed);
  randomize(batch.a, i.a, bits);
  randomize(batch.b, i.b, bits);
  randomize(batch.c, i.c, bits);
  if (i.block != 0) {
    randomize(batch.scale_a, i.scale, bits);
    randomize(batch.scale_b, i.scale, bits);
  }
  const std::uint8_t words[] = {0b0100, 0b1110, 0b1000, 0b1100, 0b1001, 0b1101};
  const std::uint64_t choices = i.sparsity == Sparsity::one_of_two ? 2 : 6;
  for (std::uint8_t& word : batch.metadata) word = words[bits.next() % choices];
  return batch;
}

/// Instructions of a chip that the paper machine has.
std::vector<const Instruction*> of_chip(const std::string& chip) {
  std::vector<const Instruction*> found;
  const PaperMachine machine(chip);
  for (const Instruction& i : instructions())
    if (machine.has(i)) found.push_back(&i);
  return found;
}

}  // namespace

TEST_CASE("random tiles come out as the unit computes the arrays", "[fast]") {
  // One of each arrangement of registers.
  std::set<std::tuple<Kind, int, int, int, int>> asked;
  for (const char* chip : kChips) {
    for (const Instruction* i : of_chip(chip)) {
      if (!has_fragments(i->kind)) continue;
      if (!asked.emplace(i->kind, i->m, i->k, info(i->a).bits, info(i->d).bits).second) continue;
      PaperMachine machine(chip);
      Batch batch = random_batch(*i, 1, asked.size());
      machine.run(batch);
      unit::UnitDescription described = *unit_of(chip, *i);
      described.name = "arrays";
      const std::unique_ptr<unit::Unit> unit = unit::make_unit(std::move(described));
      std::vector<std::uint8_t> expected;
#pragma omp parallel num_threads(1)
      expected = results_of(*unit, batch, Path::fast);
      CAPTURE(chip, full_name(*i));
      CHECK(batch.d == expected);
    }
  }
  CHECK(asked.size() > 20);
}

struct Row {
  const char *chip, *kind, *instruction;
};

void expect_right_layout(const Row& row) {
  CAPTURE(row.chip, row.kind, row.instruction);
  PaperMachine machine(row.chip);
  const Instruction& i = instruction(row.kind, row.instruction);
  REQUIRE(machine.has(i));
  std::string found;
  for (const std::string& sentence : check_layout(machine, i)) found += sentence + "\n";
  CHECK(found == "");
}

TEST_CASE("the layout check passes by the units of every core", "[fast]") {
  const Row rows[] = {
      {"V100", "mma", "m8n8k4.f32.f16.f16.f32"},
      {"V100", "mma", "m8n8k4.f16.f16.f16.f16"},
      {"T4", "mma", "m16n8k8.f32.f16.f16.f32"},
      {"A100", "mma", "m16n8k8.f32.tf32.tf32.f32"},
      {"A100", "mma", "m8n8k4.f64.f64.f64.f64"},
      {"A100", "mma", "m8n8k16.s32.s8.u8.s32.satfinite"},
      {"Ada", "mma", "m16n8k16.f16.e4m3.e5m2.f16"},
      {"H100", "wgmma", "m64n8k8.f32.tf32.tf32"},
      {"A100", "mmasp", "m16n8k8.f32.tf32.tf32.f32"},
      {"A100", "mmasp", "m16n8k16.f16.f16.f16.f16"},
  };
  for (const Row& row : rows) expect_right_layout(row);
}

TEST_CASE("the layout check passes by the units of larger instructions", "[slow]") {
  const Row rows[] = {
      {"H100", "mma", "m16n8k32.f32.e4m3.e5m2.f32"},
      {"H100", "wgmma", "m64n8k32.f16.e4m3.e4m3"},
      {"H100", "wgmmasp", "m64n8k32.f32.f16.f16"},
      {"RTXBlackwell", "mmabs", "m16n8k32.block32.f32.e2m1.e4m3.f32.ue8m0"},
      {"RTXBlackwell", "mmabs", "m16n8k64.block16.f32.e2m1.e2m1.f32.ue4m3"},
      {"B200", "tc5", "m64n8k8.f32.tf32.tf32"},
      {"B200", "tc5bs", "m128n8k32.block32.f32.e4m3.e4m3.ue8m0"},
  };
  for (const Row& row : rows) expect_right_layout(row);
}

TEST_CASE("a chip has its own instructions only", "[fast]") {
  const Instruction& wgmma = instruction("wgmma", "m64n8k16.f32.f16.f16");
  CHECK(PaperMachine("H100").has(wgmma));
  CHECK_FALSE(PaperMachine("A100").has(wgmma));
  CHECK_FALSE(PaperMachine("B200").has(wgmma));
  CHECK_FALSE(PaperMachine("nothing").has(wgmma));
  PaperMachine a100("A100");
  Batch batch(wgmma, 1);
  CHECK_THROWS_AS(a100.run(batch), std::runtime_error);
  CHECK(a100.name() == "paper A100");
}

}  // namespace numemu::oracle::recording::paper_machine_test
