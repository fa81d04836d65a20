// Sizes are computed with overflow checks, memory is taken uninitialised.
#include "formats/storage/array.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <new>

#include "formats/error.hpp"
#include "formats/joined.hpp"
#include "formats/suggest.hpp"

namespace numemu {
namespace {

struct TypeRow {
  std::string_view name;
  int bytes;
};

/// In the order of ArrayType.
constexpr std::array<TypeRow, 11> kTypes = {{{"int8", 1},
                                             {"uint8", 1},
                                             {"int16", 2},
                                             {"uint16", 2},
                                             {"int32", 4},
                                             {"uint32", 4},
                                             {"int64", 8},
                                             {"uint64", 8},
                                             {"float16", 2},
                                             {"float32", 4},
                                             {"float64", 8}}};
static_assert(kTypes[static_cast<std::size_t>(ArrayType::float64)].name == "float64");

constexpr std::size_t kAlignment = 64;
/// Faulting in 4 KiB pages takes longer than reading a cached file into them.
constexpr std::size_t kHugePage = std::size_t{1} << 21;

}  // namespace

int bytes_of(ArrayType type) { return kTypes[static_cast<std::size_t>(type)].bytes; }

std::string_view to_string(ArrayType type) { return kTypes[static_cast<std::size_t>(type)].name; }

ArrayType parse_array_type(std::string_view name) {
  return static_cast<ArrayType>(
      index_named("array type", name, kTypes, [](const auto& type) { return type.name; }));
}

std::optional<std::int64_t> element_count_of(const ArrayShape& shape) {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) {
    if (__builtin_mul_overflow(count, extent, &count)) return std::nullopt;
  }
  return count;
}

std::string shape_text(const ArrayShape& shape) { return fmt::format("[{}]", joined(shape, ", ")); }

std::string counted(std::int64_t n, std::string_view noun) {
  return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
}

Bytes::Bytes(std::int64_t size) : size_(size) {
  if (size <= 0) return;
  const std::size_t alignment =
      static_cast<std::size_t>(size) >= 2 * kHugePage ? kHugePage : kAlignment;
  const std::size_t rounded =
      (static_cast<std::size_t>(size) + alignment - 1) / alignment * alignment;
  data_.reset(static_cast<std::byte*>(std::aligned_alloc(alignment, rounded)));
  if (data_ == nullptr) throw std::bad_alloc();
  if (alignment == kHugePage) madvise(data_.get(), rounded, MADV_HUGEPAGE);
}

Bytes Bytes::borrowed(void* data, std::int64_t size) {
  Bytes bytes;
  bytes.data_ = {static_cast<std::byte*>(data), Free(false)};
  bytes.size_ = size;
  return bytes;
}

void Bytes::own() {
  if (data_.get_deleter().owned) return;
  Bytes copy(size_);
  std::copy_n(data(), size_, copy.data());
  *this = std::move(copy);
}

namespace {

std::int64_t byte_count(ArrayType type, const ArrayShape& shape) {
  std::int64_t bytes = 0;
  const std::optional<std::int64_t> count = element_count_of(shape);
  if (!count || __builtin_mul_overflow(*count, std::int64_t{bytes_of(type)}, &bytes))
    throw std::bad_alloc();
  return bytes;
}

}  // namespace

Array::Array(ArrayType t, ArrayShape s) : type(t), shape(std::move(s)) {
  data = Bytes(byte_count(type, shape));
}

Array Array::borrowed(ArrayType type, ArrayShape shape, void* elements) {
  Array array;
  array.data = Bytes::borrowed(elements, byte_count(type, shape));
  array.type = type;
  array.shape = std::move(shape);
  return array;
}

}  // namespace numemu
