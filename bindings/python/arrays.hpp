// NumPy arrays and tensors as arrays of ours, in place where they lie in C order, and back.
#pragma once
#include <string>

#include "bindings/python/python.hpp"
#include "formats/storage/codes.hpp"

namespace numemu::net {
struct Tensor;
}

namespace numemu::python {

/// An array of a caller: its elements where they are, or a copy where they are strided, unaligned
/// or of the other byte order. `owner` keeps them alive.
struct Given {
  Array array;
  /// Of codes whose type names it: bfloat16 and float8 of torch and ml_dtypes. Such an array has
  /// the type of its codes.
  const Format* format = nullptr;
  py::object owner;
  bool listed = false;  ///< of lists or numbers of Python, whose type says little
};

/// Throws Error naming `name` for what is no array of numbers.
Given given(py::handle x, const char* name);
/// Whole numbers of lists as elements of that type, which they must fit; all else as it is.
Given as_type(Given, ArrayType, const char* name);
/// Lists, Python's numbers and integers as numbers, too: float16, float32 and float64 as they are,
/// integers as float64 (Error where that is not exact), bool as 0 and 1; codes whose type names
/// their format as these.
struct GivenNumbers {
  Codes codes;
  py::object owner;
};
GivenNumbers numbers(py::handle x, const char* name);
/// Codes of the format, every element checked; or, with nullptr, of the format that the type names.
Given codes(py::handle x, const Format*, const char* name);
/// float32, as what is quantized by blocks must be; other numbers are rounded to it, to nearest
/// even.
Given float32_of(py::handle x, const char* name);

/// The elements of an array that results are written to; it outlives what is returned. Throws Error
/// where it does not lie in C order or may not be written.
Array writable(py::handle out, const char* name = "out");

/// Where results go: elements of `out` where that is an array, else of a new one.
struct Room {
  Array array;        ///< borrows the elements
  py::object object;  ///< what the caller gets: `out` itself, or the new array
};
/// Throws Error naming `name` where `out` has another type or shape, or does not lie in C order.
Room room(py::handle out, ArrayType, const ArrayShape&, const char* name = "out");
/// A new NumPy array of the elements, without a copy.
py::object numpy_of(Array&&);
/// The same of a tensor; None where it has no elements and no axes.
py::object numpy_of(net::Tensor&&);
py::dtype dtype_of(ArrayType);
/// What NumPy takes for a type: a dtype, np.float32, "f4".
py::dtype dtype_named(py::handle, const char* name);

}  // namespace numemu::python
