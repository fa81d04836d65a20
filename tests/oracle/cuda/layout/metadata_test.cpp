// The places of sparsity metadata: each word is held once, where CuTe's layouts say.
#include "tests/oracle/cuda/layout/metadata.hpp"

#include <set>
#include <utility>
#include <vector>

#include "tests/catch.hpp"

namespace numemu::oracle::recording::metadata_test {
namespace {

/// A CuTe layout mode by mode, the first the fastest; a coordinate is split over the shapes.
struct Modes {
  std::vector<int> shape, stride;

  int operator()(int coordinate) const {
    int index = 0;
    for (std::size_t n = 0; n < shape.size(); ++n) {
      index += coordinate % shape[n] * stride[n];
      coordinate /= shape[n];
    }
    return index;
  }
};

/// ELayout: (thread, logical element of K that the metadata covers) -> m + rows * k.
struct MetadataLayout {
  const char* kind;
  const char* instruction;
  int rows;
  Modes thread, element;
};

// Facts of CuTe: mma_traits_sm120_sparse.hpp (SM120_SPARSE_16x8x64, SM120_SPARSE_16x8x128) and
// mma_traits_sm90_gmma_sparse.hpp (ELayout_64x64, ELayout_64x32, ELayout_64x16). mma.sp of 16 bits
// and tf32 has no layout of its own there: the first warp of wgmma's must do.
const std::vector<MetadataLayout> kCute = {
    {"mmasp", "m16n8k64.f32.e4m3.e4m3.f32", 16, {{2, 2, 8}, {8, 512, 1}}, {{32}, {16}}},
    {"mmasp", "m16n8k64.s32.s8.s8.s32", 16, {{2, 2, 8}, {8, 512, 1}}, {{32}, {16}}},
    {"mmasp", "m16n8k128.s32.s4.s4.s32", 16, {{2, 2, 8}, {8, 1024, 1}}, {{64}, {16}}},
    {"mmasp", "m16n8k32.f32.f16.f16.f32", 64, {{2, 2, 8}, {1024, 0, 1}}, {{16, 2}, {64, 8}}},
    {"mmasp", "m16n8k16.f32.tf32.tf32.f32", 64, {{2, 2, 8}, {512, 0, 1}}, {{8, 2}, {64, 8}}},
    {"wgmmasp", "m64n8k64.f32.e4m3.e4m3", 64, {{2, 2, 8, 4}, {8, 2048, 1, 16}}, {{32}, {64}}},
    {"wgmmasp", "m64n8k64.s32.s8.s8", 64, {{2, 2, 8, 4}, {8, 2048, 1, 16}}, {{32}, {64}}},
    {"wgmmasp", "m64n8k32.f32.f16.f16", 64, {{2, 2, 8, 4}, {1024, 0, 1, 16}}, {{16, 2}, {64, 8}}},
    {"wgmmasp", "m64n8k16.f32.tf32.tf32", 64, {{2, 2, 8, 4}, {512, 0, 1, 16}}, {{8, 2}, {64, 8}}},
};

const Instruction& find(const char* kind, const char* name) {
  const int at = find_instruction(kind, name);
  INFO(kind << ' ' << name);
  REQUIRE(at >= 0);
  return instructions()[static_cast<std::size_t>(at)];
}

bool is_sparse(const Instruction& i) { return i.kind == Kind::mmasp || i.kind == Kind::wgmmasp; }

}  // namespace

TEST_CASE("each word of sparsity metadata is held by one lane", "[fast]") {
  int checked = 0;
  for (const Instruction& i : instructions()) {
    if (!is_sparse(i)) continue;
    INFO(name(i.kind) << ' ' << name(i));
    std::set<std::pair<int, int>> places;
    for (int lane = 0; lane < 32; ++lane)
      for (int word = 0; word < 8; ++word) {
        const MetadataPlace at = metadata_place(i, lane, word);
        REQUIRE((at.row < 0) == (thread_of(lane) >= metadata_lanes(i)));
        if (at.row < 0) continue;
        REQUIRE(at.row < 16);
        REQUIRE(at.group >= 0);
        REQUIRE(at.group < i.groups());
        REQUIRE(places.insert({at.row, at.group}).second);
      }
    REQUIRE(places.size() == static_cast<std::size_t>(16 * i.groups()));
    ++checked;
  }
  REQUIRE(checked > 50);
}

TEST_CASE("metadata stands where CuTe's layouts say", "[fast]") {
  for (const MetadataLayout& layout : kCute) {
    const Instruction& i = find(layout.kind, layout.instruction);
    const int warps = i.m / 16;
    for (int thread = 0; thread < 32 * warps; ++thread)
      for (int word = 0; word < 8; ++word) {
        const MetadataPlace at = metadata_place(i, thread % 32, word);
        if (at.row < 0) continue;
        for (int n = 0; n < i.group(); ++n) {
          const int index = layout.thread(thread) + layout.element(word * i.group() + n);
          INFO(layout.instruction << " thread " << thread << " word " << word);
          REQUIRE(index % layout.rows == thread / 32 * 16 + at.row);
          REQUIRE(index / layout.rows == at.group * i.group() + n);
        }
      }
  }
}

// PTX ISA, "Sparse matrix storage": selector 0 names one thread of four for the half shapes of 16
// bits and tf32, a pair for those of fewer bits; the whole shapes read twice as many.
TEST_CASE("the shape of half the k reads the first lanes of the whole one", "[fast]") {
  const auto [half, whole, lanes] =
      GENERATE(std::make_tuple("m16n8k16.f32.f16.f16.f32", "m16n8k32.f32.f16.f16.f32", 1),
               std::make_tuple("m16n8k16.f32.bf16.bf16.f32", "m16n8k32.f32.bf16.bf16.f32", 1),
               std::make_tuple("m16n8k8.f32.tf32.tf32.f32", "m16n8k16.f32.tf32.tf32.f32", 1),
               std::make_tuple("m16n8k32.s32.u8.s8.s32", "m16n8k64.s32.u8.s8.s32", 2),
               std::make_tuple("m16n8k64.s32.s4.u4.s32", "m16n8k128.s32.s4.u4.s32", 2));
  const Instruction& a = find("mmasp", half);
  const Instruction& b = find("mmasp", whole);
  REQUIRE(metadata_lanes(a) == lanes);
  REQUIRE(metadata_lanes(b) == 2 * lanes);
  for (int lane = 0; lane < 32; ++lane)
    for (int word = 0; word < 8; ++word) {
      if (thread_of(lane) >= lanes) continue;
      REQUIRE(metadata_place(a, lane, word).row == metadata_place(b, lane, word).row);
      REQUIRE(metadata_place(a, lane, word).group == metadata_place(b, lane, word).group);
    }
}

TEST_CASE("a lane gathers its eight words, the first in the low bits", "[fast]") {
  const auto metadata_of = [](const Instruction& i) {
    std::vector<std::uint8_t> words(static_cast<std::size_t>(i.m * i.groups()));
    for (int row = 0; row < i.m; ++row)
      for (int group = 0; group < i.groups(); ++group)
        words[static_cast<std::size_t>(row * i.groups() + group)] =
            static_cast<std::uint8_t>((row + group) % 16);
    return words;
  };
  const Instruction& half = find("mmasp", "m16n8k32.f32.f16.f16.f32");
  REQUIRE(gather_metadata(half, metadata_of(half).data(), 4) == 0xCBA94321U);
  REQUIRE(gather_metadata(half, metadata_of(half).data(), 5) == 0x0FED8765U);
  REQUIRE(gather_metadata(half, metadata_of(half).data(), 6) == 0xCBA94321U);
  const Instruction& bytes = find("mmasp", "m16n8k64.s32.s8.s8.s32");
  REQUIRE(gather_metadata(bytes, metadata_of(bytes).data(), 4) == 0x87654321U);
  REQUIRE(gather_metadata(bytes, metadata_of(bytes).data(), 5) == 0x0FEDCBA9U);
  REQUIRE(gather_metadata(bytes, metadata_of(bytes).data(), 6) == 0x0FEDCBA9U);
  REQUIRE(gather_metadata(bytes, metadata_of(bytes).data(), 7) == 0x87654321U);
  const Instruction& group = find("wgmmasp", "m64n8k16.f32.tf32.tf32");
  const int warp = 3;  // its rows are 48 to 63
  REQUIRE(gather_metadata(group, metadata_of(group).data() + 16 * warp * group.groups(), 9) ==
          0x10FE9876U);
}

}  // namespace numemu::oracle::recording::metadata_test
