// C plus sums, wrapped or clamped, row by row; per Highway target.
#include "emu/unit/integer/integer.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <vector>

#include "emu/unit/integer/block_wide.hpp"
#include "emu/unit/integer/blocks.hpp"
#include "emu/unit/operand.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "emu/unit/integer/integer.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace numemu::unit::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

using Lanes32 = hn::CappedTag<std::int32_t, kTileRows>;
using Vector32 = hn::Vec<Lanes32>;

/// The low `bits` bits as a number.
HWY_INLINE Vector32 SignExtend(Vector32 x, int unused) {
  return hn::ShiftRightSame(hn::ShiftLeftSame(x, unused), unused);
}

/// x + y clamped to 32 bits: both operands have the sign that an overflowed sum lacks.
HWY_INLINE Vector32 AddSaturated(Lanes32 d, Vector32 x, Vector32 y) {
  const auto sum = hn::Add(x, y);
  const auto overflow = hn::And(hn::Xor(sum, x), hn::Xor(sum, y));
  const auto end = hn::Xor(hn::BroadcastSignBit(x), hn::Set(d, 0x7fffffff));
  return hn::IfThenElse(hn::MaskFromVec(hn::BroadcastSignBit(overflow)), end, sum);
}

/// `rows` rows of kBlock outputs; c may be null, and c and d the same.
void FinishRows(const RegisterArrays& r, std::int64_t rows, const std::int32_t* sums,
                const std::int32_t* c, std::int32_t* d, std::int64_t stride) {
  const Lanes32 tag;
  const int unused = 32 - r.bits;
  const auto high = hn::Set(tag, static_cast<std::int32_t>((std::int64_t{1} << (r.bits - 1)) - 1));
  const auto low = hn::Not(high);
  const auto step = static_cast<std::int64_t>(hn::Lanes(tag));
  for (std::int64_t i = 0; i < rows; ++i, sums += kBlock, d += stride) {
    for (std::int64_t j = 0; j < kBlock; j += step) {
      auto x = hn::LoadU(tag, sums + j);
      if (c != nullptr) {
        const auto start = SignExtend(hn::LoadU(tag, c + i * stride + j), unused);
        x = r.saturates ? AddSaturated(tag, x, start) : hn::Add(x, start);
      }
      x = r.saturates ? hn::Min(hn::Max(x, low), high) : SignExtend(x, unused);
      hn::StoreU(x, tag, d + j);
    }
  }
}

}  // namespace
}  // namespace numemu::unit::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numemu::unit {

namespace {

// Reads a description for the integer kernels, and proves where a step cannot saturate.

/// Steps without end: the register is clamped once, or not at all.
constexpr std::int64_t kWholeDepth = std::numeric_limits<std::int64_t>::max();

/// The largest magnitude of one product.
struct IntegerPlan {
  std::int64_t largest_product = 0;
  bool saturates = false;
  std::int64_t step = kWholeDepth;  ///< products after which a saturating register is clamped
};

std::int64_t largest_magnitude(const Format& format) {
  return format.is_signed ? std::int64_t{1} << (format.bits - 1)
                          : (std::int64_t{1} << format.bits) - 1;
}

bool plain(const UnitDescription& unit) {
  const Register& r = unit.accumulator;
  return r.format == nullptr && r.bits >= 8 && r.bits <= 32;
}

/// The largest product, or nothing for operands that are not the core's.
std::optional<std::int64_t> largest_product(const UnitDescription& unit, const Format& a,
                                            const Format& b) {
  switch (unit.core) {
    case CoreKind::integer:
      if (a.kind != Kind::integer || b.kind != Kind::integer || a.bits > 16 || b.bits > 16)
        return std::nullopt;
      return largest_magnitude(a) * largest_magnitude(b);
    case CoreKind::xnor:
      if (a.kind != Kind::sign || b.kind != Kind::sign) return std::nullopt;
      return 1;
    case CoreKind::table: {
      if (a.bits > 8 || b.bits > 8 || !container_of(a) || !container_of(b) ||
          unit.products == nullptr || unit.products->size() != std::size_t{1} << (a.bits + b.bits))
        return std::nullopt;
      std::int64_t largest = 0;
      for (const std::int64_t product : *unit.products)
        largest = std::max(largest, product < 0 ? -product : product);
      return largest;
    }
    default:
      return std::nullopt;
  }
}

/// Padding an instruction adds zeros, but of signs and of a table whose entry of two zeros is not
/// zero it would add numbers.
bool padding_counts(const UnitDescription& unit, std::int64_t k) {
  const std::int64_t instruction = unit.k != 0 ? unit.k : unit.group;
  if (instruction == 0 || k % instruction == 0) return false;
  return unit.core == CoreKind::xnor ||
         (unit.core == CoreKind::table && unit.products->front() != 0);
}

/// Nothing where the description or the operands are beyond the integer kernels.
std::optional<IntegerPlan> plan_integer(const UnitDescription& unit, const Gemm& g) {
  if (!plain(unit)) return std::nullopt;
  const auto largest = largest_product(unit, *g.a.format, *g.b.format);
  if (!largest || padding_counts(unit, g.k)) return std::nullopt;
  IntegerPlan plan;
  plan.largest_product = *largest;
  plan.saturates = unit.accumulator.integer != IntegerOverflow::wrap;
  if (!plan.saturates) return plan;
  if (unit.accumulator.integer == IntegerOverflow::saturate_each) {
    plan.step = 1;
  } else if (unit.group != 0) {
    // The last step of an instruction may be shorter; ours all have the same size.
    if (unit.k % unit.group != 0) return std::nullopt;
    plan.step = unit.group;
  } else if (unit.k != 0) {
    plan.step = unit.k;
  }
  return plan;
}

/// Whether every sum of k products fits 32 bits.
bool sums_fit(const IntegerPlan& plan, std::int64_t k) {
  return k == 0 || plan.largest_product <= std::numeric_limits<std::int32_t>::max() / k;
}

/// Whether clamping the exact sum of all products and C once gives what clamping step by step does:
/// there is but one step, or no partial sum can leave the register.
bool clamps_once(const IntegerPlan& plan, int bits, std::int64_t k, std::int64_t largest_c) {
  if (k <= plan.step) return true;
  const std::int64_t most = (std::int64_t{1} << (bits - 1)) - 1;
  return plan.largest_product <= (most - std::min(largest_c, most)) / k;
}

}  // namespace

HWY_EXPORT(FinishRows);

int bytes_of(const RegisterArrays& r) { return r.bits <= 8 ? 1 : r.bits <= 16 ? 2 : 4; }

namespace {

template <class T>
void load_codes(const void* from, std::int64_t first, std::int64_t count, std::int32_t* to) {
  const T* codes = static_cast<const T*>(from) + first;
  for (std::int64_t j = 0; j < count; ++j) to[j] = codes[j];
}

/// Codes as they are; their sign is extended later.
void load_row(const RegisterArrays& r, std::int64_t first, std::int64_t count, std::int32_t* to) {
  switch (bytes_of(r)) {
    case 1:
      return load_codes<std::uint8_t>(r.c, first, count, to);
    case 2:
      return load_codes<std::uint16_t>(r.c, first, count, to);
    default:
      return load_codes<std::int32_t>(r.c, first, count, to);
  }
}

template <class T>
void store_codes(const std::int32_t* from, std::int64_t count, std::int32_t mask, void* to,
                 std::int64_t first) {
  T* codes = static_cast<T*>(to) + first;
  for (std::int64_t j = 0; j < count; ++j) codes[j] = static_cast<T>(from[j] & mask);
}

void store_row(const RegisterArrays& r, const std::int32_t* from, std::int64_t first,
               std::int64_t count) {
  const int bytes = bytes_of(r);
  const std::int32_t mask = bytes == 4 ? -1 : (1 << r.bits) - 1;
  if (bytes == 1) return store_codes<std::uint8_t>(from, count, mask, r.d, first);
  if (bytes == 2) return store_codes<std::uint16_t>(from, count, mask, r.d, first);
  store_codes<std::int32_t>(from, count, mask, r.d, first);
}

std::int32_t sign_extended(std::int32_t code, int bits) {
  const int unused = 32 - bits;
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(code) << unused) >> unused;
}

}  // namespace

void load_c(const RegisterArrays& r, const OutputBlock& b, std::int32_t* sums) {
  std::fill_n(sums, kBlock * kBlock, 0);
  if (r.c == nullptr) return;
  for (std::int64_t i = 0; i < b.rows; ++i) {
    std::int32_t* row = sums + i * kBlock;
    load_row(r, (b.row + i) * r.n + b.lane, b.lanes, row);
    for (std::int64_t j = 0; j < b.lanes; ++j) row[j] = sign_extended(row[j], r.bits);
  }
}

void store_sums(const RegisterArrays& r, const OutputBlock& b, const std::int32_t* sums) {
  const auto at = [&](std::int64_t i) { return (b.row + i) * r.n + b.lane; };
  if (b.lanes == kBlock && bytes_of(r) == 4) {
    const auto* c = static_cast<const std::int32_t*>(r.c);
    HWY_DYNAMIC_DISPATCH(FinishRows)
    (r, b.rows, sums, c == nullptr ? nullptr : c + at(0), static_cast<std::int32_t*>(r.d) + at(0),
     r.n);
    return;
  }
  std::int32_t block[kBlock * kBlock] = {};
  for (std::int64_t i = 0; i < b.rows && r.c != nullptr; ++i)
    load_row(r, at(i), b.lanes, block + i * kBlock);
  HWY_DYNAMIC_DISPATCH(FinishRows)
  (r, b.rows, sums, r.c == nullptr ? nullptr : block, block, kBlock);
  for (std::int64_t i = 0; i < b.rows; ++i) store_row(r, block + i * kBlock, at(i), b.lanes);
}

std::int64_t largest_c(const RegisterArrays& r, std::int64_t m) {
  if (r.c == nullptr) return 0;
  std::int32_t part[kBlock], low = 0, high = 0;
  for (std::int64_t first = 0; first < m * r.n; first += kBlock) {
    const std::int64_t count = std::min(kBlock, m * r.n - first);
    load_row(r, first, count, part);
    for (std::int64_t j = 0; j < count; ++j) {
      const std::int32_t x = sign_extended(part[j], r.bits);
      low = std::min(low, x);
      high = std::max(high, x);
    }
  }
  return std::max(-std::int64_t{low}, std::int64_t{high});
}

namespace {

struct Side {
  int size = 1;
  bool signs = false;
  ElementRule rule;
};

/// How both operands are read, and by what they are multiplied modulo 2^32.
struct Way {
  Side rows, lanes;
  BlockKernel kernel;
};

std::uint32_t bit(int n) { return std::uint32_t{1} << n; }

/// The number of each code, less `zero`.
ElementRule numbers(const Format& format, int zero = 0) {
  // Code 0 is +1, code 1 is -1.
  if (format.kind == Kind::sign) return {.mask = 1, .flip = 1, .shift = 1, .subtract = 1};
  const std::uint32_t sign = format.is_signed ? bit(format.bits - 1) : 0;
  return {.mask = bit(format.bits) - 1,
          .flip = sign,
          .subtract = sign + static_cast<std::uint32_t>(zero)};
}

ElementRule codes(const Format& format, int shift = 0) {
  return {.mask = bit(format.bits) - 1, .shift = shift};
}

/// uint8 alone needs unsigned bytes, uint16 alone more than int16.
bool needs_sign_bit(const Format& format, int bits) {
  return !format.is_signed && format.bits == bits;
}

Way bytes_by_vnni(const Format& a, const Format& b) {
  const int zero_a = needs_sign_bit(a, 8) ? kZeroRows : 0;
  const int zero_b = b.is_signed ? kZeroLanes : 0;
  const ByteZeros zeros = zero_a == 0 ? (zero_b == 0 ? ByteZeros::none : ByteZeros::lanes)
                                      : (zero_b == 0 ? ByteZeros::rows : ByteZeros::both);
  return {{.rule = numbers(a, zero_a)}, {.rule = numbers(b, zero_b)}, vnni_bytes_kernel(zeros)};
}

/// Numbers, or indices of table entries: products[a << b_bits | b].
Way words(const UnitDescription& unit, const Format& a, const Format& b) {
  const bool table = unit.core == CoreKind::table;
  return {{.size = 4, .rule = table ? codes(a, b.bits) : numbers(a)},
          {.size = 4, .rule = table ? codes(b) : numbers(b)},
          table ? portable_table_kernel() : BlockKernel{}};
}

std::optional<Way> find_way(const UnitDescription& unit, const Format& a, const Format& b,
                            IntegerPath path) {
  const bool any = path == IntegerPath::best;
  const bool portable = any || path == IntegerPath::portable;
  if (unit.core == CoreKind::xnor) {
    const Side side{.size = 1, .signs = true, .rule = codes(a)};
    return portable ? std::optional<Way>({side, side, portable_signs_kernel()}) : std::nullopt;
  }
  if (unit.core == CoreKind::table) {
    return portable ? std::optional<Way>(words(unit, a, b)) : std::nullopt;
  }
  const bool bytes = a.bits <= 8 && b.bits <= 8;
  const bool halves = !needs_sign_bit(a, 16) && !needs_sign_bit(b, 16);
  if (bytes && (any || path == IntegerPath::amx) && has_amx()) {
    return Way{{.rule = numbers(a)},
               {.rule = numbers(b)},
               amx_kernel(needs_sign_bit(a, 8), needs_sign_bit(b, 8))};
  }
  const bool vnni = (any || path == IntegerPath::vnni) && has_vnni();
  if (bytes && vnni) return bytes_by_vnni(a, b);
  if (halves && (vnni || portable)) {
    return Way{{.size = 2, .rule = numbers(a)},
               {.size = 2, .rule = numbers(b)},
               vnni ? vnni_pairs_kernel() : portable_pairs_kernel()};
  }
  return std::nullopt;
}

/// The operands in the elements that both sides are read as.
struct Operands {
  Operands(const Gemm& g, const Side& a, const Side& b) {
    rows.push_back(read_elements(g.a, g.m, g.k, a.size, a.rule));
    lanes.push_back(read_elements(g.b, g.n, g.k, b.size, b.rule));
    rows.front().signs = a.signs;
    lanes.front().signs = b.signs;
  }
  std::vector<Elements> rows, lanes;
};

OutputBlock outputs_of(const PackedBlock& b) {
  return {b.row, b.lane, b.block.row_count, b.block.lane_count};
}

const std::int32_t* table_of(const UnitDescription& unit) {
  return unit.core == CoreKind::table ? unit.products->data() : nullptr;
}

void multiply_modulo(const UnitDescription& unit, const Gemm& g, const Way& way,
                     const RegisterArrays& arrays) {
  const Operands operands(g, way.rows, way.lanes);
  BlockProduct product{operands.rows, operands.lanes};
  product.state_bytes = kBlock * kBlock * 4;
  product.kernel = way.kernel;
  // Sums of 32 bits and no C are D itself: wrapping changes nothing, and clamping neither where the
  // sums fit.
  const bool in_place = way.kernel.strided_sums && arrays.c == nullptr && arrays.bits == 32;
  for_each_block(product, [&](const PackedBlock& packed) {
    Block block = packed.block;
    block.sums = static_cast<std::int32_t*>(packed.state);
    block.from_zero = packed.first;
    block.table = table_of(unit);
    const OutputBlock outputs = outputs_of(packed);
    // A single chunk is multiplied before its lines could arrive.
    if (packed.last && block.depth > kChunkBytes)
      prefetch_outputs(packed, arrays.d, bytes_of(arrays), g.n);
    const bool direct = in_place && outputs.rows == kBlock && outputs.lanes == kBlock;
    if (direct) {
      block.sums = static_cast<std::int32_t*>(arrays.d) + outputs.row * arrays.n + outputs.lane;
      block.sum_stride = arrays.n;
    }
    way.kernel.run(block);
    if (packed.last && !direct) store_sums(arrays, outputs, block.sums);
  });
}

void multiply_wide(const UnitDescription& unit, const Gemm& g, const IntegerPlan& plan,
                   const RegisterArrays& arrays) {
  const Way way = words(unit, *g.a.format, *g.b.format);
  const Operands operands(g, way.rows, way.lanes);
  BlockProduct product{operands.rows, operands.lanes};
  product.shape = {.rows = 128, .lanes = 128, .granule = kBlock};
  product.state_bytes = sizeof(WideState) + kBlock * kBlock * 4;
  // A saturating register starts from C. Wrapped sums need no steps, and C joins them at the end.
  RegisterArrays start = arrays, end = arrays;
  WideBlock limits;
  limits.step_size = plan.step;
  if (plan.saturates) {
    end.c = nullptr;
    limits.high = (std::int64_t{1} << (arrays.bits - 1)) - 1;
    limits.low = -limits.high - 1;
  } else {
    start.c = nullptr;
    limits.high = std::numeric_limits<std::int64_t>::max();
    limits.low = std::numeric_limits<std::int64_t>::min();
  }
  for_each_block(product, [&](const PackedBlock& packed) {
    WideBlock wide = limits;
    wide.block = packed.block;
    wide.block.table = table_of(unit);
    wide.state = static_cast<WideState*>(packed.state);
    wide.block.sums = reinterpret_cast<std::int32_t*>(wide.state + 1);
    wide.first = packed.first;
    wide.last = packed.last;
    wide.done = packed.depth % plan.step;
    if (packed.first) load_c(start, outputs_of(packed), wide.block.sums);
    run_wide(wide);
    if (packed.last) store_sums(end, outputs_of(packed), wide.block.sums);
  });
}

}  // namespace

bool has_path(IntegerPath path) {
  return path == IntegerPath::amx ? has_amx() : path != IntegerPath::vnni || has_vnni();
}

bool multiply_integer(const UnitDescription& unit, const Gemm& g, IntegerPath path) {
  const std::optional<IntegerPlan> plan = plan_integer(unit, g);
  if (!plan) return false;
  const RegisterArrays arrays{
      .bits = unit.accumulator.bits, .saturates = plan->saturates, .n = g.n, .c = g.c, .d = g.d};
  const auto one_clamp = [&] {
    return sums_fit(*plan, g.k) &&
           clamps_once(*plan, arrays.bits, g.k, g.k <= plan->step ? 0 : largest_c(arrays, g.m));
  };
  if (path != IntegerPath::wide && (!plan->saturates || one_clamp())) {
    if (const auto way = find_way(unit, *g.a.format, *g.b.format, path)) {
      multiply_modulo(unit, g, *way, arrays);
      return true;
    }
  }
  if (path != IntegerPath::wide && path != IntegerPath::best) return false;
  multiply_wide(unit, g, *plan, arrays);
  return true;
}

bool multiply_integer(const UnitDescription& unit, const Gemm& g) {
  return multiply_integer(unit, g, IntegerPath::best);
}

}  // namespace numemu::unit
#endif  // HWY_ONCE
