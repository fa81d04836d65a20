#include "bindings/c/arrays.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "bindings/c/call.hpp"

namespace numemu::c {
namespace {

static_assert(static_cast<int>(ArrayType::float64) == NUMEMU_FLOAT64);

using Strides = std::array<std::int64_t, NUMEMU_MOST_AXES>;

/// An array that may be used: its elements lie within the address space.
struct Checked {
  ArrayType type;
  ArrayShape shape;
  Strides strides = {};
  std::int64_t elements = 0;
  bool as_it_is = true;  ///< C order, aligned
};

Checked checked(const char* name, const numemu_array& array) {
  if (array.type < NUMEMU_INT8 || array.type > NUMEMU_FLOAT64)
    throw usage_error(
        fmt::format("{}: type: expected 0 to {}, found {}", name, NUMEMU_FLOAT64, array.type));
  if (array.axes < 0 || array.axes > NUMEMU_MOST_AXES)
    throw usage_error(
        fmt::format("{}: axes: expected 0 to {}, found {}", name, NUMEMU_MOST_AXES, array.axes));
  if (array.axes > 0 && array.shape == nullptr)
    throw usage_error(fmt::format("{}: shape: expected a pointer, found NULL", name));
  Checked c{static_cast<ArrayType>(array.type), {array.shape, array.shape + array.axes}};
  for (const std::int64_t extent : c.shape) {
    if (extent < 0)
      throw usage_error(
          fmt::format("{}: shape: expected extents from 0 on, found {}", name, extent));
  }
  const std::optional<std::int64_t> count = element_count_of(c.shape);
  std::int64_t bytes = 0, low = 0, high = 0, c_order = bytes_of(c.type);
  bool fits = count && !__builtin_mul_overflow(*count, c_order, &bytes);
  if (fits && *count == 0) return c;
  for (std::size_t axis = c.shape.size(); fits && axis-- > 0;) {
    c.strides[axis] = array.strides == nullptr ? c_order : array.strides[axis];
    c.as_it_is = c.as_it_is && (c.shape[axis] == 1 || c.strides[axis] == c_order);
    std::int64_t reach = 0;
    fits = !__builtin_mul_overflow(c.strides[axis], c.shape[axis] - 1, &reach) &&
           !__builtin_add_overflow(reach < 0 ? low : high, reach, reach < 0 ? &low : &high);
    c_order *= c.shape[axis];
  }
  if (array.data == nullptr && fits)
    throw usage_error(fmt::format("{}: data: expected a pointer, found NULL", name));
  // The last byte of the user's half of the address space, and of any array.
  const auto begin = static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(array.data));
  std::int64_t end = 0;
  if (!fits || begin < 0 || begin + low < 0 || __builtin_add_overflow(begin, high, &end) ||
      __builtin_add_overflow(end, bytes_of(c.type), &end))
    throw usage_error(fmt::format("{}: shape: expected elements within the address space, found {}",
                                  name, shape_text(c.shape)));
  c.elements = *count;
  c.as_it_is = c.as_it_is && begin % bytes_of(c.type) == 0;
  return c;
}

/// Memory for a copy. An array with strides of 0 may have more elements than there is memory.
Array room_for(const char* name, const Checked& c) {
  const std::int64_t memory = std::int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGE_SIZE);
  if (c.elements > memory / bytes_of(c.type))
    throw memory_error(
        fmt::format("{}: expected elements that fit the memory, or lie in C order and "
                    "aligned; found {}",
                    name, shape_text(c.shape)));
  return Array(c.type, c.shape);
}

/// Calls copy(bytes of the caller, bytes in C order, how many) for each element, or each row of
/// neighbours.
template <class Copy>
void each_row(const Checked& c, char* strided, char* in_order, const Copy& copy) {
  const std::size_t axes = c.shape.size();
  const std::int64_t width = bytes_of(c.type);
  const bool rows = axes > 0 && c.strides[axes - 1] == width;
  const std::size_t outer = rows ? axes - 1 : axes;
  const std::int64_t row = rows ? c.shape[axes - 1] : 1;
  Strides at = {};
  for (std::int64_t done = 0; done < c.elements; done += row, in_order += row * width) {
    copy(strided, in_order, static_cast<std::size_t>(row * width));
    for (std::size_t axis = outer; axis-- > 0;) {
      if (++at[axis] < c.shape[axis]) {
        strided += c.strides[axis];
        break;
      }
      // Never past the last element: the stride of an extent of 1 may be any number.
      strided -= c.strides[axis] * (c.shape[axis] - 1);
      at[axis] = 0;
    }
  }
}

bool is_signed_integer(ArrayType type) {
  return type <= ArrayType::int64 && static_cast<int>(type) % 2 == 0;
}

}  // namespace

Array in(const char* name, const numemu_array& array, std::int64_t most) {
  Checked c = checked(name, array);
  if (c.elements > most)
    throw Error(fmt::format("{}: shape: expected at most {} elements, found {}", name, most,
                            shape_text(c.shape)));
  if (c.as_it_is) return Array::borrowed(c.type, std::move(c.shape), array.data);
  Array copy = room_for(name, c);
  each_row(c, static_cast<char*>(array.data), reinterpret_cast<char*>(copy.data.data()),
           [](const char* from, char* to, std::size_t bytes) { std::memcpy(to, from, bytes); });
  return copy;
}

std::optional<Array> optional_in(const char* name, const numemu_array* array) {
  return array == nullptr ? std::nullopt : std::optional(in(name, *array));
}

Codes codes_in(const char* name, const Format& format, const numemu_array& given) {
  Array array = in(name, given);
  if (same_bits(array.type, container_type(format))) array.type = container_type(format);
  return checked_codes(name, format, std::move(array));
}

bool same_bits(ArrayType x, ArrayType y) {
  return x == y || (bytes_of(x) == bytes_of(y) && !is_signed_integer(x) && !is_signed_integer(y));
}

Out::Out(const char* name, const numemu_array& given, ArrayType type) : to_(&given) {
  Checked c = checked(name, given);
  if (!same_bits(c.type, type)) require_type(name, c.type, {type}, "results");
  c.type = type;
  own_ = !c.as_it_is;
  array_ = own_ ? room_for(name, c) : Array::borrowed(type, std::move(c.shape), given.data);
}

Out::Out(const char* name, const numemu_array* given, ArrayType type, const ArrayShape& expected) {
  if (given == nullptr) return;
  *this = Out(name, *given, type);
  if (array_.shape != expected)
    throw usage_error(fmt::format("{}: shape: expected {}, found {}", name, shape_text(expected),
                                  shape_text(array_.shape)));
}

void Out::finish(const Array& written) {
  if (own_) take(written);
}

void Out::take(const Array& written) {
  if (to_ == nullptr) return;
  const Checked c = checked("results", *to_);
  each_row(c, static_cast<char*>(to_->data),
           const_cast<char*>(reinterpret_cast<const char*>(written.data.data())),
           [](char* to, const char* from, std::size_t bytes) { std::memcpy(to, from, bytes); });
}

}  // namespace numemu::c
