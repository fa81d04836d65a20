// The layout check finds nothing on a sound machine and names the operand on a broken one.
#include "tests/oracle/cuda/layout/layout_check.hpp"

#include <set>
#include <tuple>

#include "tests/catch.hpp"
#include "tests/emu/oracle/recording/named.hpp"
#include "tests/oracle/cuda/layout/counting_machine.hpp"
#include "tests/oracle/cuda/paper/ptx_fragments.hpp"

namespace numemu::oracle::recording::layout_check_test {
namespace {

/// Whether a sentence starts with `operand` and one of them has `text`.
bool complains(const std::vector<std::string>& sentences, const std::string& operand,
               const std::string& text) {
  for (const std::string& sentence : sentences)
    if (sentence.rfind(operand + ": ", 0) == 0 && sentence.find(text) != std::string::npos)
      return true;
  return false;
}
std::string joined(const std::vector<std::string>& sentences) {
  std::string text;
  for (const std::string& sentence : sentences) text += sentence + "\n";
  return text;
}

/// The registers of a lane, of which there are as many in every lane.
template <class Word>
Word* of_lane(std::vector<Word>& registers, const TileRegisters& held, int lane) {
  const std::size_t each = registers.size() / static_cast<std::size_t>(held.lanes);
  return registers.data() + static_cast<std::size_t>(lane) * each;
}

/// What a layout depends on.
using Shape = std::tuple<Kind, int, int, int, int, bool, bool, int, Element>;
Shape shape(const Instruction& i) {
  const PtxFragments tables = ptx_fragments(i);
  return {
      i.kind,  i.m,    i.k, tables.a_bits, tables.b_bits, i.d == Element::f16, i.c == Element::f16,
      i.block, i.scale};
}

}  // namespace

TEST_CASE("one and two are numbers of every element", "[fast]") {
  CHECK(one(Element::f64) == 0x3FF0000000000000U);
  CHECK(one(Element::f32) == 0x3F800000U);
  CHECK(one(Element::tf32) == 0x3F800000U);
  CHECK(one(Element::f16) == 0x3C00U);
  CHECK(one(Element::bf16) == 0x3F80U);
  CHECK(one(Element::e5m2) == 0x3CU);
  CHECK(one(Element::e4m3) == 0x38U);
  CHECK(one(Element::e3m2) == 0x0CU);
  CHECK(one(Element::e2m3) == 0x08U);
  CHECK(one(Element::e2m1) == 0x02U);
  CHECK(one(Element::s32) == 1U);
  CHECK(one(Element::u4) == 1U);
  CHECK(one(Element::ue8m0) == 127U);
  CHECK(two(Element::ue8m0) == 128U);
  CHECK(one(Element::ue4m3) == 0x38U);
  CHECK(two(Element::ue4m3) == 0x40U);
  CHECK(two(Element::f32) == 0x40000000U);
  CHECK(two(Element::f16) == 0x4000U);
}

TEST_CASE("the layouts of small matrices are right on paper", "[fast]") {
  std::set<Shape> seen;
  CountingMachine machine;
  for (const Instruction& i : instructions()) {
    const bool small = i.m * i.kept() * i.kept() <= 8192;
    if (!small || !machine.has(i) || !seen.insert(shape(i)).second) continue;
    CAPTURE(name(i.kind), name(i));
    CHECK(joined(check_layout(machine, i)) == "");
  }
  CHECK(seen.size() > 15);
}
TEST_CASE("every instruction passes the layout check on paper", "[slow]") {
  CountingMachine machine;
  for (const Instruction& i : instructions()) {
    if (!machine.has(i)) continue;
    CAPTURE(name(i.kind), name(i));
    CHECK(joined(check_layout(machine, i)) == "");
  }
}

TEST_CASE("a register of A in the wrong place is found", "[fast]") {
  CountingMachine machine([](const Instruction&, TileRegisters& held) {
    std::uint64_t* lane = of_lane(held.a, held, 5);
    std::swap(lane[0], lane[1]);  // rows 1 and 9, k 2 and 3
  });
  const auto found = check_layout(machine, instruction("mma", "m16n8k16.f32.f16.f16.f32"));
  INFO(joined(found));
  CHECK(complains(found, "A", "in D[1][0] of column 2 of A arrived A[9][2], expected A[1][2]"));
  CHECK(complains(found, "A", "in D[1][0] the one at A[1][2] met nothing, expected B[2][0]"));
  CHECK_FALSE(complains(found, "C", ""));
  CHECK(found.size() == 10);
}

TEST_CASE("exchanged rows of A are found where k is shorter than m", "[fast]") {
  CountingMachine machine([](const Instruction&, TileRegisters& held) {
    std::uint64_t* lane = of_lane(held.a, held, 0);
    std::swap(lane[0], lane[1]);
  });
  const auto found = check_layout(machine, instruction("mma", "m16n8k8.f32.tf32.tf32.f32"));
  INFO(joined(found));
  CHECK(complains(found, "A", "in D[0][0] of column 0 of A arrived A[8][0], expected A[0][0]"));
  CHECK(found.size() == 5);
}

TEST_CASE("a slot of B in the wrong place is found", "[fast]") {
  CountingMachine machine([](const Instruction&, TileRegisters& held) {
    std::uint64_t& word = of_lane(held.b, held, 4)[0];
    word = (word >> 8 | word << 24) & 0xFFFFFFFF;  // column 1, k 0 to 3 turned round
  });
  const auto found = check_layout(machine, instruction("mma", "m16n8k32.s32.s8.s8.s32"));
  INFO(joined(found));
  CHECK(complains(found, "B", "in D[0][1] the one at A[0][0] met B[1][1], expected B[0][1]"));
}

TEST_CASE("exchanged halves of B are found in registers and in shared memory", "[fast]") {
  CountingMachine warp([](const Instruction&, TileRegisters& held) {
    for (int lane = 0; lane < held.lanes; ++lane) {
      std::uint64_t* registers = of_lane(held.b, held, lane);
      std::swap(registers[0], registers[1]);
    }
  });
  auto found = check_layout(warp, instruction("mma", "m16n8k8.f32.tf32.tf32.f32"));
  INFO(joined(found));
  CHECK(complains(found, "A or B", "in D[0][0] the one at A[0][0] met B[4][0], expected B[0][0]"));

  // Core matrices of 128 bytes, 16 bytes of k each.
  CountingMachine warpgroup([](const Instruction&, TileRegisters& held) {
    const auto end = held.shared.end();
    std::swap_ranges(end - 256, end - 128, end - 128);
  });
  found = check_layout(warpgroup, instruction("wgmma", "m64n8k8.f32.tf32.tf32"));
  INFO(joined(found));
  CHECK(complains(found, "A or B", "in D[0][0] the one at A[0][0] met B[4][0], expected B[0][0]"));

  CountingMachine descriptor([](const Instruction&, TileRegisters& held) {
    held.descriptor &= ~(std::uint64_t{0x3FFF} << 16);  // no step along k
  });
  found = check_layout(descriptor, instruction("wgmma", "m64n8k8.f32.tf32.tf32"));
  INFO(joined(found));
  CHECK(complains(found, "A or B", "met B[0][0], expected B[4][0]"));
}

TEST_CASE("exchanged rows of C are told from exchanged rows of D", "[fast]") {
  const auto exchange = [](std::vector<std::uint64_t>& registers, const TileRegisters& held) {
    std::uint64_t* lane = of_lane(registers, held, 0);
    std::swap(lane[0], lane[2]);
  };
  const Instruction& i = instruction("mma", "m16n8k8.f32.tf32.tf32.f32");
  CountingMachine of_c(
      [&exchange](const Instruction&, TileRegisters& held) { exchange(held.c, held); });
  auto found = check_layout(of_c, i);
  INFO(joined(found));
  CHECK(complains(found, "C", "D[0][0] holds C[8][0]"));
  CHECK(complains(found, "C", "D[8][0] holds C[0][0]"));
  CHECK(found.size() == 2);

  CountingMachine of_d(
      {}, [&exchange](const Instruction&, TileRegisters& held) { exchange(held.d, held); });
  found = check_layout(of_d, i);
  INFO(joined(found));
  CHECK(complains(found, "C or D", "D[0][0] holds C[8][0]"));
  CHECK(complains(found, "A, B or D", "in D[0][0] of column 0 of A arrived A[8][0]"));
}

TEST_CASE("a D that nobody wrote is found", "[fast]") {
  CountingMachine machine(
      {}, [](const Instruction&, TileRegisters& held) { of_lane(held.d, held, 31)[0] = 0; });
  const auto found = check_layout(machine, instruction("mma", "m16n8k16.f16.f16.f16.f16"));
  INFO(joined(found));
  CHECK(complains(found, "C or D", "D[7][6] holds nothing"));
}

TEST_CASE("exchanged words of metadata are found and mapped", "[fast]") {
  CountingMachine machine([](const Instruction&, TileRegisters& held) {
    std::uint32_t& word = of_lane(held.metadata, held, 8)[0];  // row 2
    word = (word & ~0xFFU) | (word & 0xF) << 4 | (word >> 4 & 0xF);
  });
  const Instruction& i = instruction("mmasp", "m16n8k32.f32.f16.f16.f32");
  const auto found = check_layout(machine, i);
  INFO(joined(found));
  CHECK(complains(found, "metadata",
                  "the kept value A[2][0] is chosen by word[2][1], expected word[2][0]"));
  CHECK(found.size() == 4);
  const std::string map = metadata_map(machine, i);
  INFO(map);
  CHECK(map.find("word[2][0] chooses the place of A[2][2] A[2][3]\n") != std::string::npos);
  CHECK(map.find("word[2][1] chooses the place of A[2][0] A[2][1]\n") != std::string::npos);
  CHECK(map.find("word[2][2] chooses the place of A[2][4] A[2][5]\n") != std::string::npos);
}

TEST_CASE("metadata in other lanes of a group of four is found and mapped", "[fast]") {
  CountingMachine machine([](const Instruction&, TileRegisters& held) {
    for (std::size_t lane = 0; lane < held.metadata.size(); lane += 4)
      std::swap(held.metadata[lane], held.metadata[lane + 1]);
  });
  // Eight bits: the pair holds rows g and g + 8. Sixteen: groups 0 to 3 and 4 to 7.
  const std::string rows = metadata_map(machine, instruction("mmasp", "m16n8k32.s32.s8.s8.s32"));
  INFO(rows);
  CHECK(rows.find("word[0][0] chooses the place of A[8][0] A[8][1]\n") != std::string::npos);
  CHECK(rows.find("word[15][7] chooses the place of A[7][14] A[7][15]\n") != std::string::npos);
  const std::string groups =
      metadata_map(machine, instruction("mmasp", "m16n8k16.f32.tf32.tf32.f32"));
  INFO(groups);
  CHECK(groups.find("word[3][0] chooses the place of A[3][4]\n") != std::string::npos);
  CHECK(groups.find("word[3][7] chooses the place of A[3][3]\n") != std::string::npos);
}

TEST_CASE("the map of sound metadata is the identity", "[fast]") {
  CountingMachine machine;
  const Instruction& i = instruction("mmasp", "m16n8k64.s32.s4.s4.s32");
  std::string expected;
  for (int word = 0; word < 16 * 8; ++word) {
    expected += index_name("word", word, 8) + " chooses the place of";
    for (int kept = 0; kept < 4; ++kept)
      expected += " " + element_name("A", word / 8, word % 8 * 4 + kept);
    expected += "\n";
  }
  CHECK(metadata_map(machine, i) == expected);
  CHECK(metadata_map(machine, instruction("mma", "m16n8k8.f32.f16.f16.f32")) == "");
}

TEST_CASE("metadata that does not arrive is found", "[fast]") {
  CountingMachine machine([](const Instruction&, TileRegisters& held) { held.metadata[0] = 0; });
  const auto found = check_layout(machine, instruction("mmasp", "m16n8k16.f32.f16.f16.f32"));
  INFO(joined(found));
  CHECK(complains(found, "A (or the metadata)", "A[0][1] met B[0][0], expected B[1][0]"));
  CHECK(complains(found, "metadata (or as above)", "A[0][0] is chosen by"));
}

TEST_CASE("exchanged scales are found", "[fast]") {
  CountingMachine machine([](const Instruction&, TileRegisters& held) {
    std::swap(held.scale_a[4], held.scale_a[5]);  // rows 1 and 9
    std::uint32_t& word = held.scale_b[12];       // column 3
    word = word >> 8 | word << 24;
  });
  const auto found =
      check_layout(machine, instruction("mmabs", "m16n8k64.block16.f32.e2m1.e2m1.f32.ue4m3"));
  INFO(joined(found));
  CHECK(complains(found, "scale_a", "in D[1][0] the product of k 0 was scaled by scale_a[9][0]"));
  CHECK(complains(found, "scale_b", "in D[0][3] the product of k 0 was scaled by scale_b[3][1]"));
  CHECK(found.size() == 10);
}

TEST_CASE("an order of k that A and B share is not seen", "[fast]") {
  CountingMachine machine([](const Instruction&, TileRegisters& held) {
    for (int lane = 0; lane < held.lanes; ++lane) {
      std::swap(of_lane(held.a, held, lane)[0], of_lane(held.a, held, lane)[2]);
      std::swap(of_lane(held.a, held, lane)[1], of_lane(held.a, held, lane)[3]);
      std::swap(of_lane(held.b, held, lane)[0], of_lane(held.b, held, lane)[1]);
    }
  });
  CHECK(check_layout(machine, instruction("mma", "m16n8k8.f32.tf32.tf32.f32")).empty());
}

}  // namespace numemu::oracle::recording::layout_check_test
