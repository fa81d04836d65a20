#include "emu/unit/two_levels.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "emu/unit/described_unit.hpp"
#include "emu/unit/description/fields.hpp"
#include "emu/unit/fast_paths.hpp"
#include "emu/unit/kulisch.hpp"
#include "emu/unit/operand.hpp"
#include "emu/unit/reference/register.hpp"
#include "formats/convert.hpp"
#include "formats/float_guard.hpp"

namespace numemu::unit {
namespace {

/// Elements below which other threads cost more than they save.
constexpr std::int64_t kOfOneThread = 1 << 14;

/// Codes of an operand, with its border where it is padded.
template <class T>
class PaddedCodes {
 public:
  explicit PaddedCodes(const Operand& operand) : codes_(static_cast<const T*>(operand.codes)) {
    if constexpr (!std::is_same_v<T, double>) {
      const Padding& padding = operand.gather->padding;
      if (padding.identity()) return;
      padded_.resize(static_cast<std::size_t>(padding.padded_size()));
      pad(padding, codes_, padded_.data(), T{});
      codes_ = padded_.data();
    }
  }
  const T* data() const { return codes_; }

 private:
  const T* codes_;
  std::vector<T> padded_;
};

/// One operand, and its elements of one inner sum as a matrix of its own.
class Side {
 public:
  Side(const UnitDescription& unit, const Operand& operand, std::int64_t rows, std::int64_t depth,
       const std::uint8_t* scales)
      : operand_(operand), rows_(rows), scales_(scales), block_(unit.scaling.block) {
    if (block_ != 0) blocks_ = (depth + block_ - 1) / block_;
    if (rows > 1) transposed_ = operand.gather->row[1] - operand.gather->row[0] == 1;
  }
  virtual ~Side() = default;

  /// The elements from k = begin on, valid until the next call.
  Operand slice(std::int64_t begin, std::int64_t count) {
    gather_ = Gather::matrix(rows_, count, transposed_);
    if (block_ != 0) {
      const std::int64_t first = begin / block_, own = (count + block_ - 1) / block_;
      own_scales_.resize(static_cast<std::size_t>(rows_ * own));
      for (std::int64_t r = 0; r < rows_; ++r)
        std::copy_n(scales_ + r * blocks_ + first, own, own_scales_.data() + r * own);
    }
    return {operand_.format, copy(begin, count), &gather_, nullptr};
  }
  const std::uint8_t* scales() const { return block_ == 0 ? nullptr : own_scales_.data(); }

 protected:
  virtual const void* copy(std::int64_t begin, std::int64_t count) = 0;

  const Operand operand_;
  const std::int64_t rows_;
  bool transposed_ = false;  ///< rows are neighbours in memory; the copy keeps that

 private:
  const std::uint8_t* scales_;
  std::int64_t block_, blocks_ = 0;
  Gather gather_;
  std::vector<std::uint8_t> own_scales_;
};

template <class T>
class TypedSide final : public Side {
 public:
  TypedSide(const UnitDescription& unit, const Operand& operand, std::int64_t rows,
            std::int64_t depth, const std::uint8_t* scales)
      : Side(unit, operand, rows, depth, scales), codes_(operand) {}

 private:
  const void* copy(std::int64_t begin, std::int64_t count) override {
    const Gather& g = *operand_.gather;
    const std::int32_t *row = g.row.data(), *depth = g.depth.data() + begin;
    own_.resize(static_cast<std::size_t>(rows_ * count));
    const std::int64_t lines = transposed_ ? count : rows_, length = transposed_ ? rows_ : count;
#pragma omp parallel for schedule(static) if (rows_ * count > kOfOneThread)
    for (std::int64_t i = 0; i < lines; ++i) {
      T* const to = own_.data() + i * length;
      const T* const from = codes_.data() + (transposed_ ? depth[i] : row[i]);
      const std::int32_t* const along = transposed_ ? row : depth;
      for (std::int64_t j = 0; j < length; ++j) to[j] = from[along[j]];
    }
    return own_.data();
  }

  PaddedCodes<T> codes_;
  std::vector<T> own_;
};

std::unique_ptr<Side> side_of(const UnitDescription& unit, const Operand& operand,
                              std::int64_t rows, std::int64_t depth, const std::uint8_t* scales) {
  switch (*container_of(*operand.format)) {
    case Container::bytes:
      return std::make_unique<TypedSide<std::uint8_t>>(unit, operand, rows, depth, scales);
    case Container::halves:
      return std::make_unique<TypedSide<std::uint16_t>>(unit, operand, rows, depth, scales);
    case Container::floats:
      return std::make_unique<TypedSide<float>>(unit, operand, rows, depth, scales);
    case Container::doubles:
      break;
  }
  return std::make_unique<TypedSide<double>>(unit, operand, rows, depth, scales);
}

/// The outer registers of all outputs.
class Outer {
 public:
  virtual ~Outer() = default;
  /// Adds the results of the inner unit.
  virtual void add(const void* sums) = 0;
  virtual void write(void* d) = 0;
};

/// float32 rounded to nearest even, on float32 sums: the host's addition.
class FloatOuter final : public Outer {
 public:
  FloatOuter(const UnitDescription& unit, const Gemm& g)
      : nan_(std::bit_cast<float>(static_cast<std::uint32_t>(unit.nan_code))),
        size_(g.m * g.n),
        registers_(static_cast<std::size_t>(size_)) {
    if (g.c != nullptr) std::copy_n(static_cast<const float*>(g.c), size_, registers_.data());
  }
  void add(const void* sums) override {
    const auto* const x = static_cast<const float*>(sums);
#pragma omp parallel if (size_ > kOfOneThread)
    {
      const FloatGuard nearest;
#pragma omp for schedule(static)
      for (std::int64_t i = 0; i < size_; ++i) registers_[static_cast<std::size_t>(i)] += x[i];
    }
  }
  void write(void* d) override {
    auto* const to = static_cast<float*>(d);
    for (std::int64_t i = 0; i < size_; ++i) {
      const float x = registers_[static_cast<std::size_t>(i)];
      to[i] = std::isnan(x) ? nan_ : x;
    }
  }

 private:
  const float nan_;
  const std::int64_t size_;
  std::vector<float> registers_;
};

/// Any register, by the reference.
class AnyOuter final : public Outer {
 public:
  AnyOuter(const UnitDescription& unit, const UnitDescription& inner, const Gemm& g)
      : unit_(unit), inner_(inner), registers_(static_cast<std::size_t>(g.m * g.n)) {
    const Format* const c = c_format(unit);
    for (std::size_t i = 0; i < registers_.size() && g.c != nullptr; ++i) {
      Value& v = registers_[i];
      v = read_element(c, unit.outer.accumulator, g.c, static_cast<std::int64_t>(i));
      if (unit.subnormals.flush_c && c != nullptr)
        v = flushed(*c, v, unit.subnormals.inputs_to_plus_zero);
    }
    range_ = exponents(inner.accumulator);
    for (const Exponents& other :
         {exponents(unit.outer.accumulator), c != nullptr ? exponents_of(*c) : range_}) {
      range_.low = std::min(range_.low, other.low);
      range_.top = std::max(range_.top, other.top);
    }
  }
  void add(const void* sums) override {
    const Register& r = unit_.outer.accumulator;
    const auto size = static_cast<std::int64_t>(registers_.size());
#pragma omp parallel if (size > kOfOneThread)
    {
      Kulisch exact(range_, 2);
#pragma omp for schedule(static)
      for (std::int64_t i = 0; i < size; ++i) {
        Value& held = registers_[static_cast<std::size_t>(i)];
        const Value sum = read_element(result_format(inner_), inner_.accumulator, sums, i);
        if (held.kind == Class::nan && r.format != nullptr) continue;
        exact.clear();
        exact.add(held);
        exact.add(sum);
        const bool down = r.rounding.mode == RoundingMode::rdn && !unit_.plus_zero_sums;
        held = round_to(r, unit_.subnormals, exact.sum(down));
      }
    }
  }
  void write(void* d) override {
    const Register& r = unit_.outer.accumulator;
    const Format* const format = result_format(unit_);
    for (std::size_t i = 0; i < registers_.size(); ++i) {
      store_code(format, r, code_of(format, r, registers_[i], unit_.nan_code), d,
                 static_cast<std::int64_t>(i));
    }
  }

 private:
  static Exponents exponents(const Register& r) {
    return r.format != nullptr ? exponents_of(*r.format) : Exponents{-r.fraction, r.bits};
  }
  const UnitDescription &unit_, &inner_;
  std::vector<Value> registers_;
  Exponents range_;
};

bool is_the_float32(const Format* f) { return f == &find_format("float32"); }

std::unique_ptr<Outer> outer_of(const UnitDescription& unit, const UnitDescription& inner,
                                const Gemm& g) {
  const Register& r = unit.outer.accumulator;
  const bool usual = r.rounding == Rounding{} && r.overflow == Overflow::ieee &&
                     !r.overflow_to_infinity && !unit.subnormals.flush_results &&
                     !unit.subnormals.flush_c;
  if (usual && is_the_float32(r.format) && is_the_float32(c_format(unit)) &&
      is_the_float32(result_format(unit)) && is_the_float32(inner.d))
    return std::make_unique<FloatOuter>(unit, g);
  return std::make_unique<AnyOuter>(unit, inner, g);
}

}  // namespace

std::optional<UnitDescription> inner_unit(const UnitDescription& unit) {
  UnitDescription inner = unit;
  inner.outer = {};
  const Format* const r = unit.accumulator.format;
  inner.c = inner.d = r;
  if (r == nullptr) {
    inner.nan_code = 0;
    return inner;
  }
  // A NaN must come through.
  if (!r->has_nan()) return std::nullopt;
  const Format& wide = find_format("float32");
  // What the paths of each core write: those of fused steps float32 and float16 only.
  const bool own =
      container_of(*r).has_value() && (unit.core != CoreKind::fused || r->name == "float16" ||
                                       *container_of(*r) != Container::halves);
  if (!own) {
    if (!exact_in(*r, wide)) return std::nullopt;
    inner.c = inner.d = &wide;
  }
  inner.nan_code = inner.d->nan_code();
  return inner;
}

bool multiply_two_levels(const UnitDescription& unit, const Gemm& g) {
  const std::int64_t every = unit.outer.every;
  const int block = unit.scaling.block;
  const auto padded_doubles = [](const Operand& x) {
    return container_of(*x.format) == Container::doubles && !x.gather->padding.identity();
  };
  if (!unit.sparsity.dense() || unit.accumulator.rounding.stochastic() ||
      (block != 0 && every % block != 0) || padded_doubles(g.a) || padded_doubles(g.b))
    return false;
  const std::optional<UnitDescription> inner = inner_unit(unit);
  if (!inner) return false;
  const auto a = side_of(unit, g.a, g.m, g.k, g.scale_a);
  const auto b = side_of(unit, g.b, g.n, g.k, g.scale_b);
  const auto outer = outer_of(unit, *inner, g);
  const int bytes = bytes_of(result_format(*inner), inner->accumulator);
  std::vector<double> sums(static_cast<std::size_t>(g.m * g.n * bytes + 7) / sizeof(double));
  for (std::int64_t begin = 0; begin < g.k; begin += every) {
    Gemm one = g;
    one.k = std::min(every, g.k - begin);
    one.a = a->slice(begin, one.k);
    one.b = b->slice(begin, one.k);
    one.scale_a = a->scales();
    one.scale_b = b->scales();
    one.c = nullptr;
    one.d = sums.data();
    if (!multiply_fast(*inner, one)) {
      if (begin == 0) return false;
      multiply_by_reference(*inner, one);
    }
    outer->add(sums.data());
  }
  outer->write(g.d);
  return true;
}

}  // namespace numemu::unit
