// Random calls of the C library: sizes, strides, pointers and codes that make no sense give errors.
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "bindings/c/numemu.h"
#include "formats/random.hpp"
#include "tests/catch.hpp"

namespace c_fuzz_test {

namespace {

/// All 0 but its size.
template <class T>
T sized(std::size_t size = sizeof(T)) {
  T made = {};
  made.size = size;
  return made;
}

using numemu::RandomSource;

/// Everything a call reads or writes lies in buffers of this many bytes.
constexpr std::int64_t kBytes = 1 << 12;

class Fuzzer {
 public:
  explicit Fuzzer(std::uint64_t seed) : random_{.seed = seed} {
    for (const char* name : {"e4m3fn", "float32", "float16", "int4", "float4_e2m1fn", "e15m2"}) {
      formats_.push_back(nullptr);
      REQUIRE(numemu_format_open(name, &formats_.back()) == NUMEMU_OK);
    }
    for (const char* name : {"h100.wgmma.e4m3.f32", "nvidia.h100.wgmma.e4m3.f32.sp24",
                             "neutral.exact", "intel.emr.tdpbssd"}) {
      numemu_unit* unit = nullptr;
      if (numemu_unit_open(name, &unit) == NUMEMU_OK) units_.push_back(unit);
    }
    REQUIRE(units_.size() >= 3);
    for (const char* name :
         {"mxfp4", "nvfp4", "group(int4,32,float16,zp)", "group(uint4,row,float32,min)"}) {
      blocks_.push_back(nullptr);
      REQUIRE(numemu_block_open(name, &blocks_.back()) == NUMEMU_OK);
    }
    for (const char* rule : {"greedy(2:4)", "transposable(2:4)", "mvue(2:4,remainder=pad)"}) {
      masks_.push_back(nullptr);
      REQUIRE(numemu_mask_open(rule, &masks_.back()) == NUMEMU_OK);
    }
    for (int i = 0; numemu_operation_name(i) != nullptr; ++i) {
      numemu_operation* one = nullptr;
      if (numemu_operation_open(numemu_operation_name(i), formats_[2], formats_[0], nullptr, 1,
                                &one) == NUMEMU_OK)
        operations_.push_back(one);
    }
    REQUIRE(numemu_operation_of_unit(units_[1], nullptr, nullptr, 0, &sparse_) == NUMEMU_OK);
    operations_.push_back(sparse_);
    for (auto& buffer : buffers_) {
      buffer.resize(kBytes);
      for (char& byte : buffer) byte = static_cast<char>(word());
    }
  }
  ~Fuzzer() {
    for (auto* handle : formats_) numemu_format_close(handle);
    for (auto* handle : units_) numemu_unit_close(handle);
    for (auto* handle : blocks_) numemu_block_close(handle);
    for (auto* handle : masks_) numemu_mask_close(handle);
    for (auto* handle : operations_) numemu_operation_close(handle);
  }
  Fuzzer(const Fuzzer&) = delete;

  /// The status of one random call.
  numemu_status call() {
    used_ = 0;
    if (below(64) == 0) buffers_[below(kBuffers)][below(kBytes)] ^= static_cast<char>(word());
    switch (below(8)) {
      case 0:
        return numemu_encode(of(formats_), nullptr, nullptr, flip() ? nullptr : of(formats_),
                             array(), array(), flip() ? nullptr : array(), nullptr);
      case 1:
        return numemu_decode(of(formats_), array(), array());
      case 2: {
        auto parts = sized<numemu_quantized>(size_of<numemu_quantized>());
        parts.values = array();
        parts.codes = array();
        parts.scales = array();
        if (flip()) parts.zero_points = array();
        auto options = sized<numemu_quantize_options>(size_of<numemu_quantize_options>());
        options.axis = static_cast<std::int32_t>(below(5)) - 2;
        options.has_axis = flip();
        return flip() ? numemu_quantize(of(blocks_), nullptr, nullptr, &options, array(), &parts,
                                        nullptr)
                      : numemu_dequantize(of(blocks_), &options, &parts);
      }
      case 3:
        return numemu_mask_apply(of(masks_), nullptr, array(), array(), flip() ? array() : nullptr);
      case 4:
        return records();
      case 5: {
        const std::int64_t shape[] = {extent(), extent(), extent()};
        std::int64_t scales[NUMEMU_MOST_AXES];
        std::int32_t axes = 0;
        return numemu_block_scale_shape(of(blocks_), static_cast<std::int32_t>(below(4)), shape,
                                        static_cast<std::int32_t>(below(5)) - 2, &axes, scales);
      }
      default:
        return product();
    }
  }

 private:
  static constexpr int kBuffers = 8;

  std::uint32_t word() { return random_.bits(at_++, 32); }
  std::uint32_t below(std::uint32_t n) { return word() % n; }
  bool flip() { return (word() & 1) != 0; }
  template <class T>
  T* of(const std::vector<T*>& all) {
    return below(50) == 0 ? nullptr : all[below(static_cast<std::uint32_t>(all.size()))];
  }
  template <class T>
  std::size_t size_of() {
    return below(50) == 0 ? below(2 * sizeof(T)) & ~std::size_t{7} : sizeof(T);
  }

  std::int64_t extent() {
    constexpr std::int64_t kHostile[] = {-1, INT64_MIN, INT64_MAX, std::int64_t{1} << 62,
                                         std::int64_t{1} << 32};
    if (below(40) == 0) return kHostile[below(5)];
    constexpr std::int64_t kUsual[] = {0, 1, 2, 3, 4, 8, 8, 16};
    return kUsual[below(8)];
  }

  /// An array that is hostile in a way that a call must see, or lies within a buffer of its own.
  const numemu_array* array() {
    if (below(40) == 0) return nullptr;
    const int i = used_++ % kBuffers;
    constexpr numemu_type kUsual[] = {NUMEMU_UINT8, NUMEMU_FLOAT32, NUMEMU_FLOAT32, NUMEMU_UINT16};
    numemu_array& a = arrays_[i];
    a = {buffers_[i].data(), below(10) == 0 ? static_cast<int>(below(13)) - 1 : kUsual[below(4)],
         static_cast<std::int32_t>(below(20) == 0 ? below(12) - 1 : 1 + below(2)), shapes_[i],
         nullptr};
    std::int64_t elements = 1;
    bool fits = true;
    for (int axis = 0; axis < NUMEMU_MOST_AXES; ++axis) {
      std::int64_t& extent_here = shapes_[i][axis];
      extent_here = axis < 2 || a.axes > 3 ? extent() : 1;
      if (a.axes > 2) extent_here = below(40) == 0 ? extent() : std::int64_t{below(3)};
      if (axis >= a.axes) continue;
      fits = fits && !__builtin_mul_overflow(elements, extent_here, &elements) && elements >= 0;
    }
    // Extents that can be addressed must lie in the buffer.
    if (fits && elements > kBytes / 8) shapes_[i][0] = 0;
    if (below(8) == 0) a.data = static_cast<char*>(a.data) + 1;
    if (below(60) == 0) a.data = nullptr;
    if (a.axes == 2 && below(4) == 0 && fits && elements <= kBytes / 16) {
      strides_[i][0] = 8;
      // Beside an extent of 0 the other may be huge.
      if (__builtin_mul_overflow(std::int64_t{8}, shapes_[i][0], &strides_[i][1]))
        strides_[i][1] = 8;
      a.strides = strides_[i];
    } else if (below(60) == 0) {
      for (std::int64_t& stride : strides_[i]) stride = flip() ? INT64_MAX - below(9) : INT64_MIN;
      a.strides = strides_[i];
    }
    return &a;
  }

  numemu_status records() {
    const numemu_operation* one = of(operations_);
    std::vector<std::uint64_t*> columns(10);
    // 128 records of 2 codes, or 4 of 64.
    for (std::size_t f = 0; f < columns.size(); ++f)
      columns[f] = below(20) == 0 ? nullptr
                                  : reinterpret_cast<std::uint64_t*>(buffers_[f % kBuffers].data());
    const bool deep = one == sparse_;
    std::int64_t n = below(20) == 0 ? extent() : below(4);
    if (n > 4 && n < std::int64_t{1} << 60) n = deep ? 2 : 4;
    if (deep) n = std::min<std::int64_t>(n, 2);
    if (!deep && flip()) {
      for (auto* column : columns)
        for (std::int64_t i = 0; column != nullptr && i < 4; ++i) column[i] = word() & 0x7fff;
    }
    std::uint64_t** given = below(50) == 0 ? nullptr : columns.data();
    char text[64];
    auto verdict = sized<numemu_verdict>();
    switch (below(8)) {
      case 0:
        return numemu_operation_explain(one, given, below(3), text, sizeof text, nullptr);
      case 1:
        return numemu_operation_verify(one, nullptr, n, given, &verdict, nullptr, 0, nullptr);
      default:
        return numemu_operation_compute(one, n, given);
    }
  }

  numemu_status product() {
    auto p = sized<numemu_product>(size_of<numemu_product>());
    const std::int64_t m = 1 + below(3), n = 1 + below(3), k = 8 * below(5);
    const bool sane = flip();
    const auto matrix = [&](std::int64_t rows, std::int64_t columns, numemu_type type) {
      const int i = used_++ % kBuffers;
      shapes_[i][0] = rows;
      shapes_[i][1] = columns;
      arrays_[i] = {buffers_[i].data(), type, 2, shapes_[i], nullptr};
      return &arrays_[i];
    };
    p.a = sane ? matrix(m, k, NUMEMU_UINT8) : array();
    p.b = sane ? matrix(k, n, NUMEMU_UINT8) : array();
    p.d = sane ? matrix(m, n, NUMEMU_FLOAT32) : array();
    if (!sane && flip()) p.c = array();
    if (!sane && below(8) == 0) p.scale_a = array();
    if (below(8) == 0) p.meta = array();
    if (below(8) == 0) p.flags = array();
    if (below(4) == 0) p.format_a = of(formats_);
    p.dots = below(4) == 0;
    p.by_columns = below(4) == 0;
    p.reference = below(4) == 0;
    const numemu_unit* unit = of(units_);
    char text[64];
    switch (below(10)) {
      case 0:
        return numemu_trace_text(unit, &p, static_cast<std::int64_t>(below(9)) - 1, text,
                                 sizeof text, nullptr);
      case 1:
        return numemu_explain(unit, &p, below(4), word(), text, sizeof text, nullptr);
      default:
        return numemu_multiply(unit, &p);
    }
  }

  RandomSource random_;
  std::uint64_t at_ = 0;
  int used_ = 0;
  std::vector<numemu_format*> formats_;
  std::vector<numemu_unit*> units_;
  std::vector<numemu_block*> blocks_;
  std::vector<numemu_mask*> masks_;
  std::vector<numemu_operation*> operations_;
  numemu_operation* sparse_ = nullptr;
  std::vector<char> buffers_[kBuffers];
  numemu_array arrays_[kBuffers] = {};
  std::int64_t shapes_[kBuffers][NUMEMU_MOST_AXES] = {}, strides_[kBuffers][NUMEMU_MOST_AXES] = {};
};

/// Every call ends with a code, none of them a fault, and some of each kind.
void fuzz(std::uint64_t seed, std::int64_t calls) {
  Fuzzer fuzzer(seed);
  std::int64_t by_status[NUMEMU_INTERNAL + 1] = {};
  for (std::int64_t i = 0; i < calls; ++i) {
    const numemu_status status = fuzzer.call();
    if (status < NUMEMU_OK || status >= NUMEMU_INTERNAL) {
      INFO("call " << i << ": " << status << " " << numemu_message());
      REQUIRE(status < NUMEMU_INTERNAL);
    }
    ++by_status[status];
  }
  CHECK(by_status[NUMEMU_OK] > calls / 50);
  CHECK(by_status[NUMEMU_USAGE] > calls / 50);
  CHECK(by_status[NUMEMU_VALUE] > calls / 50);
}

}  // namespace

TEST_CASE("C: ten thousand random calls", "[fast]") { fuzz(1, 10'000); }

TEST_CASE("C: a million random calls", "[slow]") { fuzz(2, 1'000'000); }

}  // namespace c_fuzz_test
