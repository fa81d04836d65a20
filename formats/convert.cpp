// Arrays of codes between any two formats: the reference loop, and the ways around it.
#include "formats/convert.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <exception>
#include <memory>
#include <vector>

#include "formats/codec.hpp"
#include "formats/error.hpp"
#include "formats/float32_converter.hpp"
#include "formats/simd/decode.hpp"

namespace numemu {
namespace {

// Elements per task: few enough that flags and widened sources stay in the second-level cache.
constexpr std::int64_t kTask = 1 << 15;
// Making a plan or a table costs some hundred conversions.
constexpr std::int64_t kWorthPlan = 256;
// Results that the second-level cache cannot hold are written past it.
constexpr std::int64_t kStreamFrom = std::int64_t{1} << 22;
constexpr std::uintptr_t kStreamAlignment = 64;
// Formats up to this width are decoded by table once an array has more elements than codes.
constexpr int kTableBits = 16;

const Format& float32() {
  static const Format& format = find_format("float32");
  return format;
}
bool is_float32(const Format& f) { return &f == &float32(); }

std::uint64_t load(const void* codes, std::int64_t i, const Format& f) {
  const auto read = [&]<class Container>(Container) {
    return static_cast<std::uint64_t>(static_cast<const Container*>(codes)[i]);
  };
  switch (container_bytes(f)) {
    case 1:
      return read(std::uint8_t{});
    case 2:
      return read(std::uint16_t{});
    case 4:
      return read(std::uint32_t{});
    default:
      return read(std::uint64_t{});
  }
}

void store(void* codes, std::int64_t i, const Format& f, std::uint64_t code) {
  code <<= f.container_shift;
  switch (container_bytes(f)) {
    case 1:
      static_cast<std::uint8_t*>(codes)[i] = static_cast<std::uint8_t>(code);
      break;
    case 2:
      static_cast<std::uint16_t*>(codes)[i] = static_cast<std::uint16_t>(code);
      break;
    case 4:
      static_cast<std::uint32_t*>(codes)[i] = static_cast<std::uint32_t>(code);
      break;
    default:
      static_cast<std::uint64_t*>(codes)[i] = code;
  }
}

// The code in the container, or an Error that names its position.
std::uint64_t checked_code(const Format& f, const void* codes, std::int64_t i) {
  const std::uint64_t container = load(codes, i, f);
  const std::uint64_t code = container >> f.container_shift;
  if (code > f.last_code() || code << f.container_shift != container) {
    char text[32];
    std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(container));
    throw Error("element " + std::to_string(i) + ": " + text + " is no code of " + f.name);
  }
  return code;
}

const std::byte* at(const void* array, std::int64_t i, const Format& f) {
  return static_cast<const std::byte*>(array) + i * container_bytes(f);
}

void convert_slowly(const Conversion& c, const Format& from, const void* in, std::int64_t begin,
                    std::int64_t n, void* out, std::uint8_t* flags, std::int64_t first) {
  for (std::int64_t i = begin; i < begin + n; ++i) {
    const Encoded result = encode_element(c, decode(from, checked_code(from, in, i)), first + i);
    store(out, i, *c.format, result.code);
    if (flags != nullptr) flags[i - begin] = result.flags;
  }
}

// One result per source code: right whenever nothing but the code decides.
class Table {
 public:
  Table(const Conversion& c, const Format& from) : from_(from), to_(*c.format) {
    const std::uint64_t count = from.last_code() + 1;
    codes_.resize(count);
    flags_.resize(count);
    for (std::uint64_t code = 0; code < count; ++code) {
      const Encoded result = encode_element(c, decode(from, code), 0);
      codes_[code] = result.code << to_.container_shift;
      flags_[code] = result.flags;
    }
  }

  std::uint64_t code(std::uint64_t from_code) const { return codes_[from_code]; }

  void convert(const void* in, std::int64_t begin, std::int64_t n, void* out,
               std::uint8_t* flags) const {
    if (container_bytes(from_) == 1) return read<std::uint8_t>(in, begin, n, out, flags);
    return read<std::uint16_t>(in, begin, n, out, flags);
  }

 private:
  template <class In>
  void read(const void* in, std::int64_t begin, std::int64_t n, void* out,
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
  void write(const In* in, std::int64_t begin, std::int64_t n, Out* out,
             std::uint8_t* flags) const {
    for (std::int64_t i = begin; i < begin + n; ++i) {
      if (in[i] >= codes_.size()) checked_code(from_, in, i);  // throws
      out[i] = static_cast<Out>(codes_[in[i]]);
    }
    if (flags == nullptr) return;
    for (std::int64_t i = 0; i < n; ++i) flags[i] = flags_[in[begin + i]];
  }

  const Format &from_, &to_;
  std::vector<std::uint64_t> codes_;
  std::vector<std::uint8_t> flags_;
};

// Codes of at most 8 bits to float32 where that is exact: no flag is ever raised.
class Decoder {
 public:
  explicit Decoder(const Format& from) : from_(from) {
    const Table table({.format = &float32(), .overflow = Overflow::ieee}, from);
    for (std::size_t code = 0; code < std::size(values_); ++code)
      values_[code] = std::bit_cast<float>(
          static_cast<std::uint32_t>(code <= from.last_code() ? table.code(code) : 0));
  }

  void convert(const void* in, std::int64_t begin, std::int64_t n, void* out, bool stream) const {
    const auto* codes = static_cast<const std::uint8_t*>(in);
    auto* y = static_cast<float*>(out) + begin;
    if (simd::decode_bytes(values_, codes + begin, n, y, stream) <= from_.last_code()) return;
    for (std::int64_t i = begin; i < begin + n; ++i) checked_code(from_, codes, i);  // throws
  }

 private:
  const Format& from_;
  alignas(64) float values_[256];
};

// Sources that float32 holds exactly are widened first; that is no rounding.
bool widens(const Format& from) {
  return is_float32(from) || (from.bits <= 16 && exact_in(from, float32()));
}

class Fast {
 public:
  Fast(const Conversion& c, const Format& from)
      : converter_(c), from_(from), is_float32_(is_float32(from)) {
    if (!is_float32_)
      widening_ = std::make_unique<Table>(
          Conversion{.format = &float32(), .overflow = Overflow::ieee}, from);
  }

  void convert(const void* in, std::int64_t begin, std::int64_t n, void* out, std::uint8_t* flags,
               std::int64_t first) const {
    std::vector<float> wide;
    const float* x = static_cast<const float*>(in) + begin;
    if (!is_float32_) {
      wide.resize(static_cast<std::size_t>(n));
      widening_->convert(at(in, begin, from_), 0, n, wide.data(), nullptr);
      x = wide.data();
    }
    if (converter_.conversion().format->bits <= 8) {
      converter_.encode(x, n, static_cast<std::uint8_t*>(out) + begin, flags, first + begin);
    } else {
      converter_.encode(x, n, static_cast<std::uint16_t*>(out) + begin, flags, first + begin);
    }
  }

 private:
  Float32Converter converter_;
  const Format& from_;
  bool is_float32_;
  std::unique_ptr<const Table> widening_;
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

// The same with task(begin, size, flags of the task), which are counted.
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

int container_bytes(const Format& f) {
  const int bits = f.bits + f.container_shift;
  return bits <= 8 ? 1 : bits <= 16 ? 2 : bits <= 32 ? 4 : 8;
}

bool exact_in(const Format& narrow, const Format& wide) {
  if (narrow.name == wide.name) return true;
  // Beyond 16 bits the extremes decide: both are floats, whose values fill their range evenly.
  const auto exact = [&](std::uint64_t code) {
    const Value v = decode(narrow, code);
    return v.kind != Class::finite || encode(wide, v, {}, Overflow::saturate).flags == 0;
  };
  if (narrow.bits <= kTableBits) {
    for (std::uint64_t code = 0; code <= narrow.last_code(); ++code)
      if (!exact(code)) return false;
    return true;
  }
  const std::uint64_t largest = narrow.largest_code();
  return narrow.mantissa_bits <= wide.mantissa_bits && exact(1) && exact(largest) &&
         exact(largest - 1);
}

FlagCounts convert_codes_reference(const Conversion& c, const Format& from, const void* in,
                                   std::int64_t n, void* out, std::uint8_t* flags,
                                   std::int64_t first) {
  std::vector<std::uint8_t> own(flags == nullptr ? static_cast<std::size_t>(n) : 0);
  std::uint8_t* f = flags == nullptr ? own.data() : flags;
  convert_slowly(c, from, in, 0, n, out, f, first);
  return count_flags(f, n);
}

FlagCounts convert_codes(const Conversion& c, const Format& from, const void* in, std::int64_t n,
                         void* out, std::uint8_t* flags, std::int64_t first) {
  // Stays out of the table's way: there is nothing to count.
  if (is_float32(*c.format) && from.bits <= 8 && flags == nullptr && n >= kWorthPlan &&
      exact_in(from, *c.format)) {
    const Decoder decoder(from);
    const bool stream =
        n >= kStreamFrom && reinterpret_cast<std::uintptr_t>(out) % kStreamAlignment == 0;
    in_parallel(n, [&](std::int64_t begin, std::int64_t size) {
      decoder.convert(in, begin, size, out, stream);
    });
    return {.elements = n};
  }
  const bool few = n < std::int64_t{1} << std::min(from.bits, kTableBits);
  if (from.bits <= kTableBits && !c.rounding.stochastic() && !few) {
    const Table table(c, from);
    return in_tasks(n, flags, [&](std::int64_t begin, std::int64_t size, std::uint8_t* f) {
      table.convert(in, begin, size, out, f);
    });
  }
  if (n >= kWorthPlan && c.format->bits <= 16 && widens(from) && !(few && from.bits <= 16)) {
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
