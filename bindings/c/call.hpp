// What every function of numemu.h shares: errors as codes, arrays of the caller, texts.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "bindings/c/numemu.h"
#include "formats/conversion.hpp"
#include "formats/error.hpp"
#include "formats/rounding.hpp"
#include "formats/storage/array.hpp"

struct numemu_format {
  const numemu::Format* format;
};
struct numemu_rounding {
  numemu::Rounding rounding;
  numemu::Overflow overflow;
};

namespace numemu::c {

/// Keeps the line of the exception that is being handled for numemu_message().
numemu_status fail() noexcept;

/// Runs f, whose exceptions become codes.
template <class F>
numemu_status guarded(const F& f) noexcept {
  try {
    f();
    return NUMEMU_OK;
  } catch (...) {
    return fail();
  }
}

/// Throws a usage Error "NAME: expected WHAT, found NULL".
template <class T>
T& required(T* pointer, const char* name) {
  if (pointer == nullptr) throw usage_error(std::string(name) + ": expected a pointer, found NULL");
  return *pointer;
}

/// The caller's structure; members beyond its `size` are 0. Throws Error where `size` was not set.
template <class T>
T members_of(const T* given, const char* name) {
  T out{};
  const std::size_t size = required(given, name).size;
  if (size < sizeof(std::size_t) || size > std::size_t{1} << 16)
    throw usage_error(std::string(name) + ": size: expected sizeof the structure, found " +
                      std::to_string(size));
  const std::size_t copied = size < sizeof(T) ? size : sizeof(T);
  const auto* from = reinterpret_cast<const unsigned char*>(given);
  auto* to = reinterpret_cast<unsigned char*>(&out);
  for (std::size_t i = 0; i < copied; ++i) to[i] = from[i];
  return out;
}
/// The same with all 0 for NULL.
template <class T>
T members_or_zero(const T* given, const char* name) {
  return given == nullptr ? T{} : members_of(given, name);
}
/// Fills the caller's structure as far as it reaches.
template <class T>
void give(const T& made, T* to, const char* name) {
  const std::size_t size = members_of(to, name).size;
  const std::size_t copied = size < sizeof(T) ? size : sizeof(T);
  const auto* from = reinterpret_cast<const unsigned char*>(&made);
  auto* out = reinterpret_cast<unsigned char*>(to);
  for (std::size_t i = sizeof(std::size_t); i < copied; ++i) out[i] = from[i];
}

/// An array of the caller, checked: type, axes, extents, pointer.
class Given {
 public:
  Given(const numemu_array* array, const char* name);

  ArrayType type() const { return type_; }
  const ArrayShape& shape() const { return shape_; }
  std::int64_t elements() const { return elements_; }
  const char* name() const { return name_; }
  /// The elements to read: where they are if they lie in C order and are aligned, else a copy.
  Array read() const;
  /// Room for the elements, the caller's own or a copy that finish() writes back.
  Array room() const;
  void finish(const Array& made) const;
  /// Throws Error unless the type or the shape is the expected one.
  void require_type(ArrayType expected) const;
  void require_shape(const ArrayShape& expected) const;

 private:
  bool in_place() const;
  template <class Move>
  void each(const Move& move) const;

  const numemu_array* array_;
  const char* name_;
  ArrayType type_ = ArrayType::uint8;
  ArrayShape shape_, strides_;
  std::int64_t elements_ = 0;
};

/// An array to be written where it is given: computed in place or copied at the end.
class Result {
 public:
  Result(const numemu_array* array, const char* name, ArrayType type, const ArrayShape& shape);
  explicit operator bool() const { return given_.has_value(); }
  /// nullptr where none is asked for.
  void* data() { return given_ ? array_.data.data() : nullptr; }
  template <class T>
  T* as() {
    return static_cast<T*>(data());
  }
  Array& array() { return array_; }
  void finish() const {
    if (given_) given_->finish(array_);
  }

 private:
  std::optional<Given> given_;
  Array array_;
};

/// Writes the text into the caller's room, cut where it does not fit.
void write_text(const std::string& made, char* text, std::size_t room, std::size_t* length);

/// Random bits of a conversion of `elements` numbers.
void set_random(const numemu_random*, Conversion&);
/// How numbers are rounded to a format; RNE saturating where the handle is NULL. Integers have
/// their full two's complement range.
Conversion conversion_to(const Format&, const numemu_rounding*, const numemu_random*);
numemu_counts counts_of(const FlagCounts&);

}  // namespace numemu::c
