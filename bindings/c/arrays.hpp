// Arrays of the caller: used where they are if they lie in C order and aligned, else copied.
#pragma once
#include <cstdint>
#include <optional>

#include "bindings/c/numemu.h"
#include "formats/format.hpp"
#include "formats/storage/array.hpp"
#include "formats/storage/codes.hpp"

namespace numemu::c {

/// The elements that a call reads, borrowed or copied. Throws Error naming the array for a type,
/// extents or strides that no array has, elements that are NULL, and more than `most`.
Array in(const char* name, const numemu_array&, std::int64_t most = INT64_MAX);
/// Nothing for NULL.
std::optional<Array> optional_in(const char* name, const numemu_array*);
/// Codes of the format, every element checked: in its container's type, or one as wide.
Codes codes_in(const char* name, const Format&, const numemu_array&);

/// Whether elements of one type hold the bits of the other's as they are: unsigned and floating
/// ones that are as wide.
bool same_bits(ArrayType, ArrayType);

/// The elements that a call writes.
class Out {
 public:
  /// There are none.
  Out() = default;
  /// Throws as in(), and unless the elements hold the bits of that type.
  Out(const char* name, const numemu_array&, ArrayType);
  /// Throws unless the shape is as expected, too. Without elements where `given` is NULL.
  Out(const char* name, const numemu_array* given, ArrayType, const ArrayShape& expected);

  /// The caller's own elements, or others that finish() copies to them; nullptr where there are
  /// none.
  void* data() { return array_.data.data(); }
  template <class T>
  T* as() {
    return array_.as<T>();
  }
  Array& array() { return array_; }
  void finish() { finish(array_); }
  /// The same where array() was moved to `written`.
  void finish(const Array& written);
  /// Copies elements that were written elsewhere.
  void take(const Array& written);

 private:
  const numemu_array* to_ = nullptr;
  bool own_ = false;
  Array array_;
};

}  // namespace numemu::c
