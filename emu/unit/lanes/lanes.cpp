// Chains with flushes: the chain kernel under FTZ and DAZ, one or two chains an instruction.
#include "emu/unit/lanes/lanes.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "emu/unit/chain/chain_tile.hpp"
#include "emu/unit/lanes/redo.hpp"
#include "emu/unit/lanes/side.hpp"
#include "emu/unit/tiles.hpp"

namespace numemu::unit {

bool float32_register(const UnitDescription& u) {
  const Format* float32 = &find_format("float32");
  return u.accumulator.format == float32 && (u.c == nullptr || u.c == float32) &&
         (u.d == nullptr || u.d == float32);
}

namespace {

/// All flushed with their signs, or all kept; nothing else.
std::optional<bool> flushes(const Subnormals& s) {
  if (s.flush_inputs != s.flush_c || s.flush_inputs != s.flush_results) return std::nullopt;
  if (s.flush_inputs && !FlushGuard::kSupported) return std::nullopt;
  return s.flush_inputs;
}

bool chain_covered(const UnitDescription& u) {
  const Chaining& c = u.chain;
  if (u.core != CoreKind::chain || !float32_register(u)) return false;
  if (c.chains == 2)
    return u.order == StepOrder::ascending && u.c_entry == CEntry::after_rounding && u.k > 0 &&
           u.k % 2 == 0;
  const bool odd_first = u.order == StepOrder::odd_first && u.k > 0 && u.k % 2 == 0;
  return c.chains == 1 && u.c_entry == CEntry::in_alignment &&
         (u.order == StepOrder::ascending || odd_first);
}

/// Both sides of a product in the roles the registers give them: the longer fills vectors.
struct Roles {
  Roles(const Gemm& g, const LaneSide& a, const LaneSide& b) {
    const bool swap = g.m > g.n;
    tile.rows = swap ? b.side() : a.side();
    tile.lanes = swap ? a.side() : b.side();
    tile.row_stride = swap ? 1 : g.n;
    tile.lane_stride = swap ? g.n : 1;
    tile.c = static_cast<const float*>(g.c);
    tile.d = static_cast<float*>(g.d);
    rows = std::min(g.m, g.n);
    lanes = std::max(g.m, g.n);
  }
  ChainTile<float, float> tile;
  std::int64_t rows = 0, lanes = 0;
};

/// One chain: run_chain_tile() with the depths in the order of the multiply-adds.
void run_one_chain(const Roles& roles, const std::vector<std::int32_t>& row_depth,
                   const std::vector<std::int32_t>& lane_depth, bool flush) {
  const auto depth = static_cast<std::int64_t>(row_depth.size());
  for_each_tile(roles.rows, roles.lanes, depth, {}, [&](const Tile& t) {
    ChainTile<float, float> part = roles.tile;
    part.rows.depth = row_depth.data();
    part.lanes.depth = lane_depth.data();
    part.row_begin = t.row_begin;
    part.row_end = t.row_end;
    part.lane_begin = t.lane_begin;
    part.lane_end = t.lane_end;
    part.k = depth;
    const FlushGuard guard(flush);
    run_chain_tile(part);
  });
}

/// registers += even + odd, both additions rounded; a function of its own because it runs under a
/// FlushGuard. noinline: arithmetic must not move out of it.
[[gnu::noinline]] void add_chains(const float* even, const float* odd, std::int64_t count,
                                  float* registers) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) registers[i] += even[i] + odd[i];
}

/// Outputs whose registers and two chain sums stay in the second-level cache.
constexpr TileShape kPairTile{.rows = 96, .lanes = 256, .granule = 32};

/// Two chains an instruction: each is a run_chain_tile() of its own from +0 into a buffer.
void run_two_chains(const Roles& roles, const std::vector<std::int32_t>& row_depth,
                    const std::vector<std::int32_t>& lane_depth, std::int64_t instruction,
                    bool flush) {
  const auto depth = static_cast<std::int64_t>(row_depth.size());
  const ChainTile<float, float>& whole = roles.tile;
  for_each_tile(roles.rows, roles.lanes, depth, kPairTile, [&](const Tile& t) {
    const std::int64_t rows = t.row_end - t.row_begin, lanes = t.lane_end - t.lane_begin;
    // Visits every output with its place in the buffers and in C and D.
    const auto for_outputs = [&](const auto& visit) {
      for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t j = 0; j < lanes; ++j)
          visit(i * lanes + j,
                (t.row_begin + i) * whole.row_stride + (t.lane_begin + j) * whole.lane_stride);
      }
    };
    std::vector<float> registers(static_cast<std::size_t>(rows * lanes)), sums[2];
    sums[0].resize(registers.size());
    sums[1].resize(registers.size());
    if (whole.c != nullptr) {
      for_outputs([&](std::int64_t i, std::int64_t at) { registers[i] = whole.c[at]; });
    }
    const FlushGuard guard(flush);
    ChainTile<float, float> part;
    part.row_end = rows;
    part.lane_end = lanes;
    part.row_stride = lanes;
    part.k = instruction / 2;
    for (std::int64_t k = 0; k < depth; k += instruction) {
      for (std::int64_t odd = 0; odd < 2; ++odd) {
        // The depths of an instruction are ordered even first, then odd.
        const std::int64_t first = k + odd * part.k;
        part.rows = {whole.rows.values, whole.rows.row + t.row_begin, row_depth.data() + first};
        part.lanes = {whole.lanes.values, whole.lanes.row + t.lane_begin,
                      lane_depth.data() + first};
        part.d = sums[odd].data();
        run_chain_tile(part);
      }
      add_chains(sums[0].data(), sums[1].data(), rows * lanes, registers.data());
    }
    for_outputs([&](std::int64_t i, std::int64_t at) { whole.d[at] = registers[i]; });
  });
}

/// Depths in the order of the chains: ascending; or pairs with their odd element first; or
/// all even ones of an instruction, then its odd ones.
std::vector<std::int32_t> in_chain_order(const UnitDescription& u, const std::int32_t* depth,
                                         std::int64_t count) {
  std::vector<std::int32_t> order(static_cast<std::size_t>(count));
  for (std::int64_t k = 0; k < count; ++k) {
    std::int64_t to = k;
    if (u.order == StepOrder::odd_first) to = k ^ 1;
    if (u.chain.chains == 2) {
      const std::int64_t first = k / u.k * u.k, within = k - first;
      to = first + within % 2 * (u.k / 2) + within / 2;
    }
    order[static_cast<std::size_t>(to)] = depth[k];
  }
  return order;
}

}  // namespace

bool multiply_lanes(const UnitDescription& u, const Gemm& g) {
  const std::optional<bool> flush = flushes(u.subnormals);
  if (!flush || !chain_covered(u) || g.k == 0 || !dense_copies_fit(g, std::max(u.k, 1)))
    return false;
  if (!fits_float32(*g.a.format) || !fits_float32(*g.b.format)) return false;
  const Source<float> a = decode_lanes(g.a, g.m, g.k), b = decode_lanes(g.b, g.n, g.k);
  const std::int64_t instruction = std::max(u.k, 1);
  const auto side = [&](const Operand& operand, const Source<float>& source, std::int64_t rows) {
    // DAZ affects only float32's subnormal numbers.
    const bool by_copy = *flush && operand.format->bias != 127;
    return LaneSide(operand, source, rows, g.k, {.instruction = instruction, .flush = by_copy});
  };
  const LaneSide side_a = side(g.a, a, g.m), side_b = side(g.b, b, g.n);
  const Roles roles(g, side_a, side_b);
  const std::int64_t padded = (g.k + instruction - 1) / instruction * instruction;
  const auto row_depth = in_chain_order(u, roles.tile.rows.depth, padded);
  const auto lane_depth = in_chain_order(u, roles.tile.lanes.depth, padded);
  if (u.chain.chains == 2) {
    run_two_chains(roles, row_depth, lane_depth, u.k, *flush);
  } else {
    run_one_chain(roles, row_depth, lane_depth, *flush);
  }
  // The host's NaN has no rule; infinities and overflow follow IEEE 754 as in the reference.
  Redo(g, a, b, {}).run(u, g, u.nan == NanRule::canonical);
  return true;
}

}  // namespace numemu::unit
