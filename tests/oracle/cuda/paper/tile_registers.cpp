// The kernels' part of the paper machine: lane by lane through fragment.hpp and its like.
#include "tests/oracle/cuda/paper/tile_registers.hpp"

#include "tests/oracle/cuda/layout/fragment_volta.hpp"
#include "tests/oracle/cuda/layout/metadata.hpp"
#include "tests/oracle/cuda/layout/scale_fragment.hpp"
#include "tests/oracle/cuda/layout/wgmma_descriptor.hpp"

namespace numemu::oracle::recording {
namespace {

constexpr std::uint32_t kSharedAddress = 1024;  ///< anywhere but 0

std::size_t slot(int index) { return static_cast<std::size_t>(index); }

bool is_warpgroup(const Instruction& i) { return i.kind == Kind::wgmma || i.kind == Kind::wgmmasp; }
bool is_quad_pair(const Instruction& i) { return i.m == 8 && i.k == 4 && i.a == Element::f16; }

/// The arrays as the warp of a thread sees them.
Tiles warp_of(const Instruction& i, const Tiles& tile, int thread) {
  return is_warpgroup(i) ? warp_rows(i, tile, 0, thread / 32) : tile;
}

/// Which functions a kernel calls: those of QuadPairLayout or those of fragment.hpp.
struct WarpFragments {
  static int a_registers(const Instruction& i) { return recording::a_registers(i); }
  static int b_registers(const Instruction& i) {
    return is_warpgroup(i) ? 0 : recording::b_registers(i);
  }
  static int c_registers(const Instruction& i, Element e) { return recording::c_registers(i, e); }
  static std::uint64_t gather_a(const Instruction& i, const std::uint8_t* a, int lane, int r) {
    return recording::gather_a(i, a, lane, r);
  }
  static std::uint64_t gather_b(const Instruction& i, const std::uint8_t* b, int lane, int r) {
    return recording::gather_b(i, b, lane, r);
  }
  static std::uint64_t gather_c(const Instruction& i, const std::uint8_t* c, int lane, int r) {
    return recording::gather_c(i, c, lane, r);
  }
  static void scatter_d(const Instruction& i, std::uint8_t* d, int lane, int r,
                        std::uint64_t word) {
    recording::scatter_d(i, d, lane, r, word);
  }
};

template <class Layout>
void gather_matrices(const Instruction& i, const Tiles& tile, TileRegisters& held) {
  for (int thread = 0; thread < held.lanes; ++thread) {
    const int lane = thread % 32;
    const Tiles rows = warp_of(i, tile, thread);
    for (int r = 0; r < Layout::a_registers(i); ++r)
      held.a.push_back(Layout::gather_a(i, rows.a, lane, r));
    for (int r = 0; r < Layout::b_registers(i); ++r)
      held.b.push_back(Layout::gather_b(i, rows.b, lane, r));
    for (int r = 0; r < Layout::c_registers(i, i.c); ++r)
      held.c.push_back(Layout::gather_c(i, rows.c, lane, r));
  }
  held.d.resize(slot(held.lanes * Layout::c_registers(i, i.d)));
}

template <class Layout>
void scatter_sums(const Instruction& i, const TileRegisters& held, const Tiles& tile) {
  const int registers = Layout::c_registers(i, i.d);
  for (int thread = 0; thread < held.lanes; ++thread)
    for (int r = 0; r < registers; ++r)
      Layout::scatter_d(i, warp_of(i, tile, thread).d, thread % 32, r,
                        held.d[slot(thread * registers + r)]);
}

void store_b(const Instruction& i, const Tiles& tile, TileRegisters& held) {
  const SharedTile layout = shared_b(i);
  held.shared.resize(kSharedAddress + slot(layout.bytes()));
  for (int byte = 0; byte < layout.bytes(); ++byte)
    held.shared[kSharedAddress + slot(layout.place(byte / layout.row_bytes,
                                                   byte % layout.row_bytes))] = tile.b[byte];
  held.descriptor = wgmma_descriptor(kSharedAddress, layout);
}

}  // namespace

bool has_fragments(Kind kind) {
  return kind == Kind::mma || kind == Kind::mmasp || kind == Kind::mmabs || kind == Kind::wgmma ||
         kind == Kind::wgmmasp;
}

Tiles tile_of(Batch& batch, int tile) {
  const TileBytes bytes = tile_bytes(*batch.instruction);
  const std::size_t t = slot(tile);
  Tiles one = batch.tiles();
  one.a += t * bytes.a;
  one.b += t * bytes.b;
  one.c += t * bytes.c;
  one.metadata += t * bytes.metadata;
  one.scale_a += t * bytes.scale_a;
  one.scale_b += t * bytes.scale_b;
  one.d += t * bytes.d;
  one.count = 1;
  return one;
}

TileRegisters gather_tile(const Instruction& i, const Tiles& tile) {
  TileRegisters held;
  held.lanes = is_warpgroup(i) ? 128 : 32;
  if (is_quad_pair(i))
    gather_matrices<QuadPairLayout>(i, tile, held);
  else
    gather_matrices<WarpFragments>(i, tile, held);
  for (int thread = 0; thread < held.lanes; ++thread) {
    const Tiles rows = warp_of(i, tile, thread);
    if (i.sparsity != Sparsity::dense)
      held.metadata.push_back(gather_metadata(i, rows.metadata, thread % 32));
    if (i.block == 0) continue;
    held.scale_a.push_back(gather_scale_a(i, rows.scale_a, thread));
    held.scale_b.push_back(gather_scale_b(i, rows.scale_b, thread));
  }
  if (is_warpgroup(i)) store_b(i, tile, held);
  return held;
}

void scatter_tile(const Instruction& i, const TileRegisters& held, const Tiles& tile) {
  if (is_quad_pair(i))
    scatter_sums<QuadPairLayout>(i, held, tile);
  else
    scatter_sums<WarpFragments>(i, held, tile);
}

}  // namespace numemu::oracle::recording
