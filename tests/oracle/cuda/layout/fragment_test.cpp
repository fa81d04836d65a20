// fragment.hpp, fragment_volta.hpp, metadata.hpp and scale_fragment.hpp against the tables of CuTe
// and PTX.
#include "tests/oracle/cuda/layout/fragment.hpp"

#include <set>
#include <utility>
#include <vector>

#include "tests/catch.hpp"
#include "tests/oracle/cuda/layout/fragment_volta.hpp"
#include "tests/oracle/cuda/layout/metadata.hpp"
#include "tests/oracle/cuda/layout/scale_fragment.hpp"
#include "tests/oracle/cuda/paper/ptx_fragments.hpp"
#include "tests/oracle/cuda/paper/tile_registers.hpp"

namespace numemu::oracle::recording::fragment_test {
namespace {

using At = std::pair<int, int>;

bool is_quad_pair(const Instruction& i) { return i.m == 8 && i.k == 4 && i.a == Element::f16; }

std::vector<const Instruction*> with_fragments(bool quad_pairs) {
  std::vector<const Instruction*> chosen;
  for (const Instruction& i : instructions())
    if (has_fragments(i.kind) && is_quad_pair(i) == quad_pairs) chosen.push_back(&i);
  return chosen;
}

/// place(lane, register, slot) of a header equals the table for every slot of every lane, and the
/// lanes that count hold every element once. Rows and columns as the table has them.
template <class Placed>
void equals(const ThreadValue& table, int bits, int register_width, int rows, int columns,
            const Placed& placed) {
  const int per = register_width / bits;
  REQUIRE(table.values() == table.registers * per);
  std::vector<int> seen(static_cast<std::size_t>(rows * columns));
  for (int lane = 0; lane < table.lanes(); ++lane) {
    for (int v = 0; v < table.values(); ++v) {
      const Place expected = table.place(lane, v);
      const Place place = placed(lane, v / per, v % per);
      const bool equal = place.row == expected.row && place.column == expected.column;
      const bool inside =
          place.row >= 0 && place.row < rows && place.column >= 0 && place.column < columns;
      const bool counts = table.first(lane);
      if (equal && inside && counts) ++seen[place.row * columns + place.column];
      if (equal && (inside || !counts)) continue;
      CAPTURE(lane, v);  // a message costs more than all else, and there are a million places
      REQUIRE(At(place.row, place.column) == At(expected.row, expected.column));
      REQUIRE(inside);
    }
  }
  CHECK(seen == std::vector<int>(seen.size(), 1));
}

/// Rows of the warp that a lane of a warpgroup is in.
Place of_warp(Place place, int lane) { return {place.row + 16 * (lane / 32), place.column}; }

}  // namespace

TEST_CASE("fragments of A are those of CuTe and PTX", "[fast]") {
  REQUIRE(with_fragments(false).size() > 200);
  for (const Instruction* i : with_fragments(false)) {
    const PtxFragments tables = ptx_fragments(*i);
    CAPTURE(name(i->kind), name(*i), tables.source);
    CHECK(a_registers(*i) == tables.a.registers);
    REQUIRE(slot_bits(*i, i->a) == tables.a_bits);
    equals(tables.a, tables.a_bits, register_bits(i->a), i->m, i->kept(),
           [i](int lane, int r, int s) { return of_warp(a_place(*i, lane % 32, r, s), lane); });
  }
}

TEST_CASE("fragments of B are those of CuTe and PTX", "[fast]") {
  int in_registers = 0;
  for (const Instruction* i : with_fragments(false)) {
    const PtxFragments tables = ptx_fragments(*i);
    CAPTURE(name(i->kind), name(*i), tables.source);
    if (tables.b.rows == 0) continue;
    ++in_registers;
    CHECK(b_registers(*i) == tables.b.registers);
    REQUIRE(slot_bits(*i, i->b) == tables.b_bits);
    equals(tables.b, tables.b_bits, register_bits(i->b), i->n, i->k, [i](int lane, int r, int s) {
      const Place at = b_place(*i, lane, r, s);
      return Place{at.column, at.row};
    });
  }
  CHECK(in_registers > 150);
}

TEST_CASE("fragments of C and D are those of CuTe and PTX", "[fast]") {
  for (const Instruction* i : with_fragments(false)) {
    const PtxFragments tables = ptx_fragments(*i);
    CAPTURE(name(i->kind), name(*i));
    for (const auto& [table, element] : {std::pair(tables.c, i->c), std::pair(tables.d, i->d)}) {
      CHECK(c_registers(*i, element) == table.registers);
      equals(table, info(element).bits, register_bits(element), i->m, i->n,
             [e = element](int lane, int r, int s) {
               return of_warp(c_place(e, lane % 32, r, s), lane);
             });
    }
  }
}

TEST_CASE("FP4 in a byte stands in bits 2 to 5, all else in the low bits", "[fast]") {
  for (const Instruction* i : with_fragments(false)) {
    const PtxFragments tables = ptx_fragments(*i);
    CAPTURE(name(i->kind), name(*i));
    for (const auto& [element, bits] :
         {std::pair(i->a, tables.a_bits), std::pair(i->b, tables.b_bits)}) {
      const std::uint64_t slot = std::uint64_t{1} << slot_shift(*i, element);
      CHECK(read_slot(&slot, register_bits(element), bits, element, 0) == 1);
    }
  }
}

TEST_CASE("quad pairs of Volta are those of CuTe", "[fast]") {
  REQUIRE(with_fragments(true).size() >= 3);
  for (const Instruction* i : with_fragments(true)) {
    const PtxFragments tables = ptx_fragments(*i);
    CAPTURE(name(*i));
    CHECK(QuadPairLayout::a_registers(*i) == tables.a.registers);
    CHECK(QuadPairLayout::b_registers(*i) == tables.b.registers);
    equals(tables.a, 16, 32, 8, 4, QuadPairLayout::a_place);
    equals(tables.b, 16, 32, 8, 4, [](int lane, int r, int s) {
      const Place at = QuadPairLayout::b_place(lane, r, s);
      return Place{at.column, at.row};
    });
    for (const auto& [table, element] : {std::pair(tables.c, i->c), std::pair(tables.d, i->d)}) {
      CHECK(QuadPairLayout::c_registers(*i, element) == table.registers);
      equals(table, info(element).bits, 32, 8, 8, [e = element](int lane, int r, int s) {
        return QuadPairLayout::c_place(e, lane, r, s);
      });
    }
  }
}

TEST_CASE("words of metadata stand in the registers that CuTe reads", "[fast]") {
  int sparse = 0;
  for (const Instruction* i : with_fragments(false)) {
    if (i->sparsity == Sparsity::dense) continue;
    ++sparse;
    const ThreadValue table = ptx_fragments(*i).metadata;
    CAPTURE(name(i->kind), name(*i));
    std::set<At> seen;
    for (int lane = 0; lane < table.lanes(); ++lane) {
      if (!table.first(lane)) {
        CHECK(metadata_place(*i, lane % 32, 0).row == -1);
        continue;
      }
      for (int word = 0; word < table.values(); ++word) {
        CAPTURE(lane, word);
        const MetadataPlace got = metadata_place(*i, lane % 32, word);
        const Place expected = table.place(lane, word);
        REQUIRE(At(got.row + 16 * (lane / 32), got.group) == At(expected.row, expected.column));
        REQUIRE(seen.insert({expected.row, expected.column}).second);
      }
    }
    CHECK(seen.size() == static_cast<std::size_t>(i->m * i->groups()));
  }
  CHECK(sparse > 60);
}

TEST_CASE("scales stand in the lanes and bytes that CuTe reads", "[fast]") {
  int scaled = 0;
  for (const Instruction* i : with_fragments(false)) {
    if (i->block == 0) continue;
    ++scaled;
    const PtxFragments tables = ptx_fragments(*i);
    CAPTURE(name(*i));
    for (const bool of_a : {true, false}) {
      const ThreadValue& table = of_a ? tables.scale_a : tables.scale_b;
      std::vector<std::uint8_t> scales(static_cast<std::size_t>(table.rows * i->scales()));
      for (std::size_t s = 0; s < scales.size(); ++s) scales[s] = static_cast<std::uint8_t>(s);
      std::set<int> seen;
      for (int lane = 0; lane < 32; ++lane) {
        if (!table.first(lane)) continue;
        const std::uint32_t held = of_a ? gather_scale_a(*i, scales.data(), lane)
                                        : gather_scale_b(*i, scales.data(), lane);
        for (int v = 0; v < table.values(); ++v) {
          const Place at = table.place(lane, v);
          const int expected = at.row * i->scales() + at.column;
          REQUIRE(static_cast<int>(held >> (8 * v) & 0xFF) == expected);
          REQUIRE(seen.insert(expected).second);
        }
      }
      CHECK(seen.size() == scales.size());
    }
  }
  CHECK(scaled == 28);
}

}  // namespace numemu::oracle::recording::fragment_test
