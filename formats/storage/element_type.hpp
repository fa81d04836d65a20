// Types of an array's elements as types of the language, for code that reads any of them.
#pragma once
#include <cstdint>
#include <string>

#include "formats/error.hpp"
#include "formats/storage/array.hpp"

namespace numemu {

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
