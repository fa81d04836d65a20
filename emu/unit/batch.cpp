#include "emu/unit/batch.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "emu/unit/described_unit.hpp"
#include "emu/unit/operand.hpp"
#include "emu/unit/reference/dot.hpp"
#include "emu/unit/reference/register.hpp"
#include "emu/unit/tiles.hpp"
#include "formats/codec.hpp"
#include "formats/containers.hpp"
#include "formats/error.hpp"

namespace numemu::unit {
namespace {

int element_bytes(const Unit& unit, const Format* format) {
  const UnitDescription* u = unit.description();
  return bytes_of(format, u == nullptr ? Register{} : result_register(*u));
}

const void* moved(const void* array, std::int64_t bytes) {
  return array == nullptr ? nullptr : static_cast<const std::byte*>(array) + bytes;
}

/// Scales and kept indices of one row of A, or column of B.
struct SideSizes {
  std::int64_t scales = 0, kept = 0;
  SideSizes(const Unit& unit, const Batch& batch)
      : kept(static_cast<std::int64_t>(batch.first.a.gather->depth.size())) {
    const UnitDescription* u = unit.description();
    if (u != nullptr && u->scaling.block != 0)
      scales = (kept + u->scaling.block - 1) / u->scaling.block;
  }
};

/// Several products as one: shared operands stay, others are stacked, and each product's outputs
/// are one block of the result.
class Stack {
 public:
  Stack(const Unit& unit, const Batch& batch, std::int64_t begin, std::int64_t end)
      : batch_(batch), part_(slice(unit, batch, begin, end)), gemm_(part_.first) {
    a_ = stacked(*gemm_.a.gather, batch.a_stride);
    b_ = stacked(*gemm_.b.gather, batch.b_stride);
    gemm_.a.gather = &a_;
    gemm_.b.gather = &b_;
    gemm_.m = static_cast<std::int64_t>(a_.row.size());
    gemm_.n = static_cast<std::int64_t>(b_.row.size());
  }
  Stack(const Stack&) = delete;

  const Gemm& gemm() const { return gemm_; }
  std::int64_t row(std::int64_t p, std::int64_t i) const {
    return batch_.a_stride == 0 ? i : p * part_.first.m + i;
  }
  std::int64_t column(std::int64_t p, std::int64_t j) const {
    return batch_.b_stride == 0 ? j : p * part_.first.n + j;
  }

  /// By the unit's multiply(), through a result that holds the products' blocks.
  void multiply(const Unit& unit) const {
    const int c_bytes = element_bytes(unit, unit.c_format());
    const int d_bytes = element_bytes(unit, unit.d_format());
    const std::int64_t m = part_.first.m, n = part_.first.n, own = m * n;
    const std::int64_t outputs = gemm_.m * gemm_.n;
    const auto c = std::make_unique<std::byte[]>(
        static_cast<std::size_t>(gemm_.c == nullptr ? 0 : outputs * c_bytes));
    const auto d =
        std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(outputs * d_bytes));
    Gemm whole = gemm_;
    whole.d = d.get();
    if (gemm_.c != nullptr) {
      whole.c = c.get();
      each_row([&](std::int64_t p, std::int64_t i, std::int64_t at) {
        const std::int64_t from = (batch_.c_shared ? 0 : p * own) + i * n;
        std::memcpy(c.get() + at * c_bytes, moved(gemm_.c, from * c_bytes),
                    static_cast<std::size_t>(n * c_bytes));
      });
    }
    unit.multiply(whole);
    each_row([&](std::int64_t p, std::int64_t i, std::int64_t at) {
      std::memcpy(static_cast<std::byte*>(gemm_.d) + (p * own + i * n) * d_bytes,
                  d.get() + at * d_bytes, static_cast<std::size_t>(n * d_bytes));
    });
  }

 private:
  Gather stacked(const Gather& one, std::int64_t stride) const {
    if (stride == 0) return one;
    Gather all = one;
    all.row.clear();
    for (std::int64_t p = 0; p < part_.count; ++p) {
      for (const std::int32_t row : one.row)
        all.row.push_back(static_cast<std::int32_t>(row + p * stride));
    }
    return all;
  }
  /// Calls body(product, row, element of the stacked result that the row begins at).
  template <class Body>
  void each_row(const Body& body) const {
    for (std::int64_t p = 0; p < part_.count; ++p) {
      for (std::int64_t i = 0; i < part_.first.m; ++i)
        body(p, i, row(p, i) * gemm_.n + column(p, 0));
    }
  }

  const Batch& batch_;
  Batch part_;
  Gather a_, b_;
  Gemm gemm_;
};

/// Finds infinities and NaN. Fast paths compute the outputs of those anew, one by one: in a stack
/// also the many that nobody wants.
class SpecialCodes {
 public:
  SpecialCodes(const Format& a, const Format& b) : a_(table(a)), b_(table(b)) {}
  /// Whether an operand of products [begin, end) has one.
  bool in(const Batch& batch, std::int64_t begin, std::int64_t end) const {
    return any(a_, batch.first.a, begin * batch.a_stride, end * batch.a_stride) ||
           any(b_, batch.first.b, begin * batch.b_stride, end * batch.b_stride);
  }

 private:
  using Table = std::vector<std::uint8_t>;

  /// Empty for formats of more than 16 bits, which are IEEE's.
  static Table table(const Format& format) {
    Table special;
    if (container_bytes(format) > 2) return special;
    for (std::uint64_t code = 0; code <= format.code_mask(); ++code) {
      const Class kind = decode(format, code).kind;
      special.push_back(kind == Class::infinite || kind == Class::nan);
    }
    return special;
  }
  static bool any(const Table& special, const Operand& operand, std::int64_t begin,
                  std::int64_t end) {
    const std::uint64_t infinity = special.empty() ? operand.format->infinity_code() : 0;
    for (std::int64_t i = begin; i < end; ++i) {
      const std::uint64_t code = code_at(operand, i);
      if (special.empty() ? (code & infinity) == infinity : special[code] != 0) return true;
    }
    return false;
  }

  Table a_, b_;
};

/// Products that a stack may hold: offsets in it are 32 bits wide, and outputs that nobody wants
/// cost as much as the others. 32 rows and columns fill the vector loops.
std::int64_t stack_size(const Batch& batch, bool by_reference) {
  constexpr std::int64_t kReach = std::int64_t{1} << 30, kWide = 32, kLong = 1 << 10;
  const Gemm& g = batch.first;
  // Products of the same operands differ in C alone: their outputs would be the same block.
  if (!by_reference && batch.a_stride == 0 && batch.b_stride == 0) return 1;
  std::int64_t size = std::min(batch.count, by_reference ? kReach : kLong);
  if (!by_reference && batch.a_stride != 0 && batch.b_stride != 0)
    size = std::min(size, kWide / std::max<std::int64_t>({g.m, g.n, 1}));
  for (const std::int64_t stride : {batch.a_stride, batch.b_stride}) {
    if (stride != 0) size = std::min(size, kReach / stride);
  }
  return std::max<std::int64_t>(size, 1);
}

}  // namespace

Batch slice(const Unit& unit, const Batch& batch, std::int64_t begin, std::int64_t end) {
  Batch part = batch;
  part.count = end - begin;
  Gemm& g = part.first;
  const SideSizes sizes(unit, batch);
  g.a.codes = moved(g.a.codes, begin * batch.a_stride * container_bytes(*g.a.format));
  g.b.codes = moved(g.b.codes, begin * batch.b_stride * container_bytes(*g.b.format));
  if (batch.a_stride != 0) {
    if (g.scale_a != nullptr) g.scale_a += begin * g.m * sizes.scales;
    if (g.kept != nullptr) g.kept += begin * g.m * sizes.kept;
  }
  if (batch.b_stride != 0 && g.scale_b != nullptr) g.scale_b += begin * g.n * sizes.scales;
  const std::int64_t outputs = begin * g.m * g.n;
  if (!batch.c_shared) g.c = moved(g.c, outputs * element_bytes(unit, unit.c_format()));
  g.d = static_cast<std::byte*>(g.d) + outputs * element_bytes(unit, unit.d_format());
  return part;
}

void multiply_batch(const Unit& unit, const Batch& batch) {
  if (batch.count == 1) return unit.multiply(batch.first);
  const bool one_c = batch.first.c == nullptr || !batch.c_shared;
  if (batch.b_stride == 0 && batch.a_stride != 0 && one_c && stack_size(batch, true) == batch.count)
    return unit.multiply(Stack(unit, batch, 0, batch.count).gemm());
  const UnitDescription* u = unit.description();
  // Random bits go by the number of the output in the batch, which a stack does not know.
  if (u != nullptr && u->accumulator.rounding.stochastic())
    return multiply_batch_reference(unit, batch);
  const Gemm& g = batch.first;
  const bool wasteful = batch.a_stride != 0 && batch.b_stride != 0;
  const std::int64_t size = stack_size(batch, false), stacks = (batch.count + size - 1) / size;
  std::optional<SpecialCodes> specials;
  if (wasteful && size > 1 && u != nullptr) specials.emplace(*g.a.format, *g.b.format);
  const auto alone = [&](std::int64_t begin, std::int64_t end) {
    // Up to here the reference costs less than a call.
    constexpr std::int64_t kFewOutputs = 4;
    if (g.m * g.n <= kFewOutputs)
      return multiply_batch_reference(unit, slice(unit, batch, begin, end));
    for (std::int64_t p = begin; p < end; ++p) unit.multiply(slice(unit, batch, p, p + 1).first);
  };
  const auto run = [&](std::int64_t index) {
    const std::int64_t begin = index * size, end = std::min(batch.count, begin + size);
    if (end - begin == 1) {
      unit.multiply(slice(unit, batch, begin, end).first);
    } else if (specials && specials->in(batch, begin, end)) {
      alone(begin, end);
    } else {
      Stack(unit, batch, begin, end).multiply(unit);
    }
  };
  const std::int64_t macs = g.m * g.n * std::max<std::int64_t>(g.k, 1) * size * size;
  if (macs >= kParallelMacs) {
    for (std::int64_t i = 0; i < stacks; ++i) run(i);
    return;
  }
  for_each_tile(stacks, 1, macs, {.rows = 1, .lanes = 1, .granule = 1}, [&](const Tile& tile) {
    for (std::int64_t i = tile.row_begin; i < tile.row_end; ++i) run(i);
  });
}

void multiply_batch_reference(const Unit& unit, const Batch& batch, std::uint8_t* flags) {
  if (flags != nullptr) require_flags(unit);
  if (unit.description() == nullptr) return multiply_batch(unit, batch);
  const UnitDescription& u = *unit.description();
  const std::int64_t m = batch.first.m, n = batch.first.n, size = stack_size(batch, true);
  for (std::int64_t begin = 0; begin < batch.count; begin += size) {
    const std::int64_t end = std::min(batch.count, begin + size);
    const Stack stack(unit, batch, begin, end);
    check_product(unit, stack.gemm());
    const ReferenceDot dot(u, stack.gemm());
    // A multiply-add of the reference costs as much as 64 others.
    for_each_tile((end - begin) * m, n, 64 * batch.first.k, kReferenceTile, [&](const Tile& tile) {
      for (std::int64_t row = tile.row_begin; row < tile.row_end; ++row) {
        const std::int64_t p = row / m, i = row % m;
        for (std::int64_t j = tile.lane_begin; j < tile.lane_end; ++j) {
          const std::int64_t own = row * n + j, c = batch.c_shared ? i * n + j : own;
          const std::int64_t number = begin * m * n + own;
          const Outcome outcome =
              dot.outcome(stack.row(p, i), stack.column(p, j), c, number, nullptr);
          store_code(unit.d_format(), result_register(u), outcome.code, batch.first.d, number);
          if (flags != nullptr) flags[number] = outcome.flags;
        }
      }
    });
  }
}

void require_flags(const Unit& unit) {
  const UnitDescription* u = unit.description();
  if (u != nullptr && result_register(*u).format != nullptr) return;
  throw Error("unit " + unit.row().name +
              " has no exception flags: expected a unit with a floating register");
}

}  // namespace numemu::unit
