// An array as files hold it: an element type, a shape, and bytes in C order.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/error.hpp"

namespace numemu {

enum class ArrayType : std::uint8_t {
  int8,
  uint8,
  int16,
  uint16,
  int32,
  uint32,
  int64,
  uint64,
  float16,
  float32,
  float64
};

/// Bytes of one element.
int bytes_of(ArrayType);
/// "float32"
std::string_view to_string(ArrayType);
/// The type of that name; Error with the nearest known name.
ArrayType parse_array_type(std::string_view name);

/// Extents, slowest axis first; {} is a scalar.
using ArrayShape = std::vector<std::int64_t>;

/// Product of the extents (all must be >= 0; 1 for a scalar); nothing where it exceeds 2^63 - 1. An
/// extent of zero makes any product zero.
std::optional<std::int64_t> element_count_of(const ArrayShape&);
/// "[128, 28, 28, 1]"
std::string shape_text(const ArrayShape&);
/// "1 byte", "2 bytes": nouns whose plural ends in s.
std::string counted(std::int64_t n, std::string_view noun);

/// Bytes that start uninitialised (zeroing 64 MB costs as much as reading them) and are aligned to
/// 64 bytes; or those of a caller.
class Bytes {
 public:
  Bytes() = default;
  explicit Bytes(std::int64_t size);
  /// The caller's, which outlive this. What reads an array does not write to it: it owns its bytes
  /// first where it must.
  static Bytes borrowed(void* data, std::int64_t size);
  /// Copies borrowed bytes.
  void own();
  std::byte* data() { return data_.get(); }
  const std::byte* data() const { return data_.get(); }
  std::int64_t size() const { return size_; }

 private:
  struct Free {
    Free() : owned(true) {}
    explicit Free(bool own) : owned(own) {}
    void operator()(std::byte* p) const {
      if (owned) std::free(p);
    }
    bool owned;
  };
  std::unique_ptr<std::byte, Free> data_;
  std::int64_t size_ = 0;
};

/// C order, host byte order.
struct Array {
  ArrayType type = ArrayType::float32;
  ArrayShape shape;
  Bytes data;

  Array() = default;
  /// Uninitialised elements; throws std::bad_alloc, also where the size overflows.
  Array(ArrayType type, ArrayShape shape);
  /// The elements of a caller, without a copy; they outlive all that is made of the array.
  static Array borrowed(ArrayType type, ArrayShape shape, void* elements);
  std::int64_t elements() const { return data.size() / bytes_of(type); }
  /// The elements; T must be the type's.
  template <class T>
  T* as() {
    return reinterpret_cast<T*>(data.data());
  }
  template <class T>
  const T* as() const {
    return reinterpret_cast<const T*>(data.data());
  }
};

/// f(T()) with the type T of the elements. Throws Error for float16, which is no type here.
template <class F>
auto with_element_type(ArrayType type, const F& f) {
  switch (type) {
    case ArrayType::int8:
      return f(std::int8_t());
    case ArrayType::uint8:
      return f(std::uint8_t());
    case ArrayType::int16:
      return f(std::int16_t());
    case ArrayType::uint16:
      return f(std::uint16_t());
    case ArrayType::int32:
      return f(std::int32_t());
    case ArrayType::uint32:
      return f(std::uint32_t());
    case ArrayType::int64:
      return f(std::int64_t());
    case ArrayType::uint64:
      return f(std::uint64_t());
    case ArrayType::float32:
      return f(float());
    case ArrayType::float64:
      return f(double());
    case ArrayType::float16:
      break;
  }
  throw Error(std::string(to_string(type)) + ": expected another type of numbers");
}

}  // namespace numemu
