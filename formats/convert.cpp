// Arrays of codes between any two formats: the reference loop, and the ways around it.
#include "formats/convert.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <exception>
#include <memory>
#include <vector>

#include "formats/codec.hpp"
#include "formats/containers.hpp"
#include "formats/error.hpp"
#include "formats/float32_converter.hpp"
#include "formats/simd/convert_loops.hpp"
#include "formats/simd/decode.hpp"
#include "formats/value.hpp"

namespace numemu {
namespace {

// A conversion as a table: one result per source code, right whenever nothing but the code decides.

/// From formats of at most 16 bits, by any rounding but stochastic. The formats must outlive it.
class CodeTable {
 public:
  CodeTable(const Conversion&, const Format& from);

  /// The result of a source code, in its container.
  std::uint64_t code(std::uint64_t from_code) const { return codes_[from_code]; }
  std::uint8_t flags(std::uint64_t from_code) const { return flags_[from_code]; }
  /// No code raises a flag, but signalling NaNs.
  bool exact() const;
  /// To float32: signalling NaNs stay signalling from now on and raise no flag. That is a widening
  /// before another conversion, and none by itself.
  void keep_signalling();

  /// Elements [begin, begin + n) of `in` to out[0..n), in containers; flags[0..n) if given. Throws
  /// an Error that names the position in `in` of what is not a code.
  void convert(const void* in, std::int64_t begin, std::int64_t n, void* out,
               std::uint8_t* flags) const;

 private:
  template <class In>
  void read(const void* in, std::int64_t begin, std::int64_t n, void* out,
            std::uint8_t* flags) const;
  template <class In, class Out>
  void write(const In* in, std::int64_t begin, std::int64_t n, Out* out, std::uint8_t* flags) const;

  const Format &from_, &to_;
  std::vector<std::uint64_t> codes_;
  std::vector<std::uint8_t> flags_;
};

CodeTable::CodeTable(const Conversion& c, const Format& from) : from_(from), to_(*c.format) {
  const std::uint64_t count = from.last_code() + 1;
  codes_.resize(count);
  flags_.resize(count);
  for (std::uint64_t code = 0; code < count; ++code) {
    const Encoded result = encode_element(c, decode(from, code), 0);
    codes_[code] = result.code << to_.container_shift;
    flags_[code] = result.flags;
  }
}

bool CodeTable::exact() const {
  for (std::uint64_t code = 0; code < codes_.size(); ++code)
    if (flags_[code] != 0 && !is_signalling(decode(from_, code))) return false;
  return true;
}

void CodeTable::keep_signalling() {
  constexpr std::uint64_t kSignalling = 0x7fa00000, kSign = 0x80000000;
  for (std::uint64_t code = 0; code < codes_.size(); ++code) {
    const Value v = decode(from_, code);
    if (!is_signalling(v)) continue;
    codes_[code] = kSignalling | (v.negative ? kSign : 0);
    flags_[code] = 0;
  }
}

template <class In>
void CodeTable::read(const void* in, std::int64_t begin, std::int64_t n, void* out,
                     std::uint8_t* flags) const {
  const auto* source = static_cast<const In*>(in);
  switch (container_bytes(to_)) {
    case 1:
      return write(source, begin, n, static_cast<std::uint8_t*>(out), flags);
    case 2:
      return write(source, begin, n, static_cast<std::uint16_t*>(out), flags);
    case 4:
      return write(source, begin, n, static_cast<std::uint32_t*>(out), flags);
    default:
      return write(source, begin, n, static_cast<std::uint64_t*>(out), flags);
  }
}

template <class In, class Out>
void CodeTable::write(const In* in, std::int64_t begin, std::int64_t n, Out* out,
                      std::uint8_t* flags) const {
  for (std::int64_t i = begin; i < begin + n; ++i) {
    if (in[i] >= codes_.size()) checked_code(from_, in, i);  // throws
    out[i - begin] = static_cast<Out>(codes_[in[i]]);
  }
  if (flags == nullptr) return;
  for (std::int64_t i = 0; i < n; ++i) flags[i] = flags_[in[begin + i]];
}

void CodeTable::convert(const void* in, std::int64_t begin, std::int64_t n, void* out,
                        std::uint8_t* flags) const {
  if (container_bytes(from_) == 1) return read<std::uint8_t>(in, begin, n, out, flags);
  return read<std::uint16_t>(in, begin, n, out, flags);
}

// Elements per task: few enough that flags and widened sources stay in the second-level cache.
constexpr std::int64_t kTask = 1 << 15;
// Making a plan or a table costs some hundred conversions.
constexpr std::int64_t kWorthPlan = 256;
// Formats up to this width are decoded by table once an array has more elements than codes.
constexpr int kTableBits = 16;

bool is_float32(const Format& f) { return &f == &float32(); }

std::byte* at(void* array, std::int64_t i, const Format& f) {
  return static_cast<std::byte*>(array) + i * container_bytes(f);
}

void convert_slowly(const Conversion& c, const Format& from, const void* in, std::int64_t begin,
                    std::int64_t n, void* out, std::uint8_t* flags, std::int64_t first) {
  for (std::int64_t i = begin; i < begin + n; ++i) {
    const Encoded result = encode_element(c, decode(from, checked_code(from, in, i)), first + i);
    store_code(*c.format, out, i, result.code);
    if (flags != nullptr) flags[i - begin] = result.flags;
  }
}

// Codes of at most 8 bits to float32 by an exact table.
class Decoder {
 public:
  Decoder(const CodeTable& table, const Format& from) : from_(from) {
    for (std::size_t code = 0; code < std::size(values_); ++code) {
      const bool used = code <= from.last_code();
      values_[code] = std::bit_cast<float>(static_cast<std::uint32_t>(used ? table.code(code) : 0));
      if (!used || table.flags(code) == 0) continue;  // nothing but a signalling NaN raises one
      const auto magnitude = static_cast<std::uint8_t>(code & ~from.sign_bit());
      signalling_ = {std::min(signalling_.low, magnitude), std::max(signalling_.high, magnitude)};
    }
  }

  /// Returns how many are signalling NaNs; flags may be null.
  std::int64_t convert(const void* in, std::int64_t begin, std::int64_t n, void* out, bool stream,
                       std::uint8_t* flags) const {
    const auto* codes = static_cast<const std::uint8_t*>(in) + begin;
    auto* y = static_cast<float*>(out) + begin;
    if (simd::decode_bytes(values_, codes, n, y, stream) > from_.last_code())
      for (std::int64_t i = begin; i < begin + n; ++i) checked_code(from_, in, i);  // throws
    if (signalling_.high != 0) {
      const auto mask = static_cast<std::uint8_t>(~from_.sign_bit());
      return simd::count_between(codes, n, mask, signalling_.low, signalling_.high, kInvalid,
                                 flags);
    }
    if (flags != nullptr) std::fill_n(flags, n, std::uint8_t{0});
    return 0;
  }

 private:
  /// Of codes without their sign, which are neighbours.
  struct Range {
    std::uint8_t low = 0xff, high = 0;
  };
  const Format& from_;
  Range signalling_;
  alignas(64) float values_[256];
};

// Sources that float32 holds exactly are widened first; that is not a rounding.
bool widens(const Format& from) {
  return is_float32(from) || (from.bits <= 16 && exact_in(from, float32()));
}

class Fast {
 public:
  Fast(const Conversion& c, const Format& from) : converter_(c), is_float32_(is_float32(from)) {
    if (is_float32_) return;
    widening_ = std::make_unique<CodeTable>(
        Conversion{.format = &float32(), .overflow = Overflow::ieee}, from);
    widening_->keep_signalling();
  }

  void convert(const void* in, std::int64_t begin, std::int64_t n, void* out, std::uint8_t* flags,
               std::int64_t first) const {
    std::vector<float> wide;
    const float* x = static_cast<const float*>(in) + begin;
    if (!is_float32_) {
      wide.resize(static_cast<std::size_t>(n));
      widening_->convert(in, begin, n, wide.data(), nullptr);
      x = wide.data();
    }
    std::byte* to = at(out, begin, *converter_.conversion().format);
    switch (container_bytes(*converter_.conversion().format)) {
      case 1:
        return converter_.encode(x, n, reinterpret_cast<std::uint8_t*>(to), flags, first + begin);
      case 2:
        return converter_.encode(x, n, reinterpret_cast<std::uint16_t*>(to), flags, first + begin);
      default:
        return converter_.encode(x, n, reinterpret_cast<std::uint32_t*>(to), flags, first + begin);
    }
  }

 private:
  Float32Converter converter_;
  bool is_float32_;
  std::unique_ptr<CodeTable> widening_;
};

// Runs task(begin, size) over [0, n) in tasks; the first Error wins.
template <class Task>
void in_parallel(std::int64_t n, Task task) {
  const std::int64_t tasks = (n + kTask - 1) / kTask;
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(tasks));
#pragma omp parallel for schedule(dynamic) if (tasks > 1)
  for (std::int64_t t = 0; t < tasks; ++t) {
    try {
      task(t * kTask, std::min(kTask, n - t * kTask));
    } catch (...) {
      errors[static_cast<std::size_t>(t)] = std::current_exception();
    }
  }
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

// in_tasks() with task(begin, size, flags of the task), which are counted.
template <class Task>
FlagCounts in_tasks(std::int64_t n, std::uint8_t* flags, Task task) {
  FlagCounts total;
  in_parallel(n, [&](std::int64_t begin, std::int64_t size) {
    std::vector<std::uint8_t> own(flags == nullptr ? static_cast<std::size_t>(size) : 0);
    std::uint8_t* f = flags == nullptr ? own.data() : flags + begin;
    task(begin, size, f);
    const FlagCounts counts = count_flags(f, size);
#pragma omp critical(numemu_convert_counts)
    total += counts;
  });
  return total;
}

}  // namespace

bool exact_in(const Format& narrow, const Format& wide) {
  if (narrow.name == wide.name) return true;
  // Beyond 16 bits the extremes decide: both are floats, whose values fill their range evenly.
  const auto exact = [&](std::uint64_t code) {
    const Value v = decode(narrow, code);
    return v.kind != Class::finite || encode(wide, v, {}, Overflow::saturate).flags == 0;
  };
  const std::uint64_t largest = narrow.largest_code();
  // Where field 0 is flushed, its codes are zeros and say nothing.
  const std::uint64_t least =
      narrow.field_zero == FieldZero::flush ? std::uint64_t{1} << narrow.mantissa_bits : 0;
  // All floats are exact if the smallest two and the largest are, where `wide` has every multiple
  // of its smallest number within its precision and range.
  const bool even = narrow.kind == Kind::floating && wide.kind == Kind::floating &&
                    wide.field_zero == FieldZero::subnormal &&
                    (wide.is_signed || !narrow.is_signed) &&
                    narrow.mantissa_bits <= wide.mantissa_bits;
  if (narrow.bits <= kTableBits && even && exact(least) && exact(least + 1) && exact(largest))
    return true;
  if (narrow.bits <= kTableBits) {
    for (std::uint64_t code = 0; code <= narrow.last_code(); ++code)
      if (!exact(code)) return false;
    return true;
  }
  return narrow.mantissa_bits <= wide.mantissa_bits && exact(least) && exact(least + 1) &&
         exact(largest) && exact(largest - 1);
}

FlagCounts convert_codes_reference(const Conversion& c, const Format& from, const void* in,
                                   std::int64_t n, void* out, std::uint8_t* flags,
                                   std::int64_t first) {
  std::vector<std::uint8_t> own(flags == nullptr ? static_cast<std::size_t>(n) : 0);
  std::uint8_t* f = flags == nullptr ? own.data() : flags;
  convert_slowly(c, from, in, 0, n, out, f, first);
  return count_flags(f, n);
}

namespace {

/// More codes than elements: a table of them does not pay.
bool few_elements(const Format& from, std::int64_t n) {
  return n < std::int64_t{1} << std::min(from.bits, kTableBits);
}

bool takes_table(const Conversion& c, const Format& from, std::int64_t n) {
  return from.bits <= kTableBits && !c.rounding.stochastic() && !few_elements(from, n);
}

bool takes_converter(const Conversion& c, const Format& from, std::int64_t n) {
  return n >= kWorthPlan && container_bytes(*c.format) <= 4 && widens(from) &&
         !(few_elements(from, n) && from.bits <= 16);
}

}  // namespace

ConversionPath conversion_path(const Conversion& c, const Format& from, std::int64_t n) {
  if (takes_table(c, from, n)) return ConversionPath::table;
  return takes_converter(c, from, n) && Float32Converter(c).fast() ? ConversionPath::vectors
                                                                   : ConversionPath::reference;
}

FlagCounts convert_codes(const Conversion& c, const Format& from, const void* in, std::int64_t n,
                         void* out, std::uint8_t* flags, std::int64_t first) {
  if (is_float32(*c.format) && from.bits <= 8 && !c.rounding.stochastic() && n >= kWorthPlan) {
    const CodeTable table(c, from);
    if (table.exact()) {
      const Decoder decoder(table, from);
      const bool stream = simd::worth_streaming(out, n);
      std::atomic<std::int64_t> invalid = 0;
      in_parallel(n, [&](std::int64_t begin, std::int64_t size) {
        invalid += decoder.convert(in, begin, size, out, stream,
                                   flags == nullptr ? nullptr : flags + begin);
      });
      return {.elements = n, .invalid = invalid};
    }
  }
  if (takes_table(c, from, n)) {
    const CodeTable table(c, from);
    return in_tasks(n, flags, [&](std::int64_t begin, std::int64_t size, std::uint8_t* f) {
      table.convert(in, begin, size, at(out, begin, *c.format), f);
    });
  }
  if (takes_converter(c, from, n)) {
    const Fast fast(c, from);
    return in_tasks(n, flags, [&](std::int64_t begin, std::int64_t size, std::uint8_t* f) {
      fast.convert(in, begin, size, out, f, first);
    });
  }
  return in_tasks(n, flags, [&](std::int64_t begin, std::int64_t size, std::uint8_t* f) {
    convert_slowly(c, from, in, begin, size, out, f, first);
  });
}

}  // namespace numemu
