#include "bindings/python/arrays.hpp"

#include <fmt/format.h>

#include <array>
#include <memory>
#include <optional>
#include <utility>

#include "emu/net/tensor.hpp"
#include "formats/convert.hpp"
#include "formats/error.hpp"

namespace numemu::python {
namespace {

/// In the order of ArrayType.
constexpr std::array<const char*, 11> kDtypes = {"i1", "u1", "i2", "u2", "i4", "u4",
                                                 "i8", "u8", "f2", "f4", "f8"};

/// NumPy's numbers of types (ndarraytypes.h), which are part of its binary interface.
std::optional<ArrayType> type_of(int numpy_number) {
  static_assert(sizeof(long) == 8);
  switch (numpy_number) {
    case 1:
      return ArrayType::int8;
    case 2:
      return ArrayType::uint8;
    case 3:
      return ArrayType::int16;
    case 4:
      return ArrayType::uint16;
    case 5:
      return ArrayType::int32;
    case 6:
      return ArrayType::uint32;
    case 7:
    case 9:
      return ArrayType::int64;
    case 8:
    case 10:
      return ArrayType::uint64;
    case 11:
      return ArrayType::float32;
    case 12:
      return ArrayType::float64;
    case 23:
      return ArrayType::float16;
    default:
      return std::nullopt;
  }
}

const py::detail::PyArray_Proxy& fields(const py::array& array) {
  return *py::detail::array_proxy(array.ptr());
}

std::optional<ArrayType> type_of(const py::array& array) {
  if (!array) return std::nullopt;
  return type_of(py::detail::array_descriptor_proxy(fields(array).descr)->type_num);
}

bool native(const py::array& array) {
  const char order = py::detail::array_descriptor_proxy(fields(array).descr)->byteorder;
  return order == '=' || order == '|';
}

/// In C order, aligned, of this machine's byte order.
bool in_place(const py::array& array) {
  constexpr int kWanted =
      py::detail::npy_api::NPY_ARRAY_C_CONTIGUOUS_ | py::detail::npy_api::NPY_ARRAY_ALIGNED_;
  return (fields(array).flags & kWanted) == kWanted && native(array);
}

ArrayShape shape_of(const py::array& array) {
  const auto& a = fields(array);
  return {a.dimensions, a.dimensions + a.nd};
}

Array borrowed(const py::array& array, ArrayType type) {
  return Array::borrowed(type, shape_of(array), fields(array).data);
}

/// A function of _views.py, looked up once. No guard of a static: whoever waits for one would hold
/// the interpreter's lock.
py::handle helper(const char* name, PyObject*& known) {
  if (known == nullptr)
    known = py::object(py::module_::import("numemu._views").attr(name)).release().ptr();
  return known;
}

/// What is an array of NumPy already; else null, which py::array() is not.
py::array own_array(py::handle x) {
  return py::isinstance<py::array>(x) ? py::reinterpret_borrow<py::array>(x)
                                      : py::reinterpret_steal<py::array>(py::handle());
}

/// What another library's array is for NumPy: a view of the same elements, and the name of the
/// format that its type names.
struct Viewed {
  py::array array;
  const Format* format = nullptr;
};

/// `writing`: results go there.
Viewed viewed(py::handle x, const char* name, bool writing = false) {
  static PyObject* readers = nullptr;
  static PyObject* writers = nullptr;
  const py::handle view = writing ? helper("target", writers) : helper("view", readers);
  const auto pair = view(x, name).cast<py::tuple>();
  const py::object format = pair[1];
  return {py::reinterpret_borrow<py::array>(pair[0]),
          format.is_none() ? nullptr : &find_format(format.cast<std::string>())};
}

py::array as_plain(py::array array) {
  if (in_place(array)) return array;
  static PyObject* known = nullptr;
  const py::handle plain = helper("plain", known);
  return plain(array);
}

std::string type_name(const py::array& array) {
  return py::str(static_cast<const py::object&>(array.dtype()));
}

}  // namespace

Given given(py::handle x, const char* name) {
  py::array array = own_array(x);
  const Format* format = nullptr;
  if (!type_of(array)) {
    Viewed other = viewed(x, name);
    array = std::move(other.array);
    format = other.format;
  }
  array = as_plain(std::move(array));
  const std::optional<ArrayType> type = type_of(array);
  if (!type)
    throw Error(
        fmt::format("{}: dtype: expected numbers or codes, found {}", name, type_name(array)));
  const bool listed = PyList_Check(x.ptr()) || PyTuple_Check(x.ptr()) || PyLong_Check(x.ptr());
  return {borrowed(array, *type), format, std::move(array), listed};
}

Given as_type(Given one, ArrayType type, const char* name) {
  if (!one.listed || one.array.type == type) return one;
  if (type == ArrayType::float32 || type == ArrayType::float64) return one;
  static PyObject* known = nullptr;
  const py::handle whole = helper("whole", known);
  auto array = whole(one.owner, dtype_of(type), name).cast<py::array>();
  return {borrowed(array, type), one.format, std::move(array), true};
}

GivenNumbers numbers(py::handle x, const char* name) {
  Given one = given(x, name);
  if (one.format != nullptr)
    return {checked_codes(name, *one.format, std::move(one.array)), std::move(one.owner)};
  switch (one.array.type) {
    case ArrayType::float32:
      static const Format& single = find_format("float32");
      return {{&single, std::move(one.array)}, std::move(one.owner)};
    case ArrayType::float64:
      static const Format& wide = find_format("float64");
      return {{&wide, std::move(one.array)}, std::move(one.owner)};
    case ArrayType::float16: {
      static const Format& half = find_format("float16");
      one.array.type = container_type(half);
      return {{&half, std::move(one.array)}, std::move(one.owner)};
    }
    default: {
      static PyObject* known = nullptr;
      const py::handle exact = helper("exact_float64", known);
      const auto array = exact(one.owner, name).cast<py::array>();
      return {{&find_format("float64"), borrowed(array, ArrayType::float64)}, array};
    }
  }
}

Given codes(py::handle x, const Format* format, const char* name) {
  Given one = given(x, name);
  if (format == nullptr) format = one.format;
  if (format == nullptr) throw usage_error(fmt::format("{}: expected a format of the codes", name));
  if (one.format != nullptr && one.format->name != format->name)
    throw Error(
        fmt::format("{}: dtype: expected {}, found {}", name, format->name, one.format->name));
  one = as_type(std::move(one), container_type(*format), name);
  one.format = format;
  one.array = checked_codes(name, *format, std::move(one.array)).array;
  return one;
}

Given float32_of(py::handle x, const char* name) {
  GivenNumbers all = numbers(x, name);
  static const Format& single = find_format("float32");
  if (all.codes.format == &single)
    return {std::move(all.codes.array), nullptr, std::move(all.owner), false};
  Given rounded = {Array(ArrayType::float32, all.codes.array.shape), nullptr, {}, false};
  {
    const py::gil_scoped_release released;
    convert_codes({.format = &single, .overflow = Overflow::ieee}, *all.codes.format,
                  all.codes.array.data.data(), all.codes.array.elements(),
                  rounded.array.data.data());
  }
  return rounded;
}

Array writable(py::handle out, const char* name) {
  py::array array = own_array(out);
  if (!type_of(array)) array = viewed(out, name, true).array;
  if (!in_place(array) || !array.writeable())
    throw Error(fmt::format("{}: expected a writeable array in C order", name));
  return borrowed(array, *type_of(array));
}

Room room(py::handle out, ArrayType type, const ArrayShape& shape, const char* name) {
  if (!out || out.is_none()) {
    py::array array(dtype_of(type), shape);
    Array elements = borrowed(array, type);
    return {std::move(elements), std::move(array)};
  }
  Array array = writable(out, name);
  // Codes of bytes and half-words may stand in arrays of another type of that width: float16.
  if (array.type == ArrayType::float16 && type == ArrayType::uint16) array.type = ArrayType::uint16;
  if (array.type != type)
    throw Error(fmt::format("{}: dtype: expected {}, found {}", name, to_string(type),
                            to_string(array.type)));
  if (array.shape != shape)
    throw Error(fmt::format("{}: shape: expected {}, found {}", name, shape_text(shape),
                            shape_text(array.shape)));
  return {std::move(array), py::reinterpret_borrow<py::object>(out)};
}

py::object numpy_of(Array&& array) {
  auto owned = std::make_unique<Array>(std::move(array));
  owned->data.own();
  const Array& a = *owned;
  const py::dtype dtype = dtype_of(a.type);
  py::capsule owner(owned.get(), [](void* p) { delete static_cast<Array*>(p); });
  owned.release();
  return py::array(dtype, a.shape, a.data.data(), owner);
}

py::object numpy_of(net::Tensor&& tensor) {
  if (tensor.empty() && tensor.shape.empty()) return py::none();
  auto* const owned = new net::Tensor(std::move(tensor));
  const py::capsule owner(owned, [](void* p) { delete static_cast<net::Tensor*>(p); });
  return py::array_t<float>(owned->shape, owned->data.data(), owner);
}

py::dtype dtype_of(ArrayType type) {
  static std::array<PyObject*, kDtypes.size()> known = {};
  PyObject*& one = known[static_cast<std::size_t>(type)];
  if (one == nullptr) one = py::dtype(kDtypes[static_cast<std::size_t>(type)]).release().ptr();
  return py::reinterpret_borrow<py::dtype>(one);
}

py::dtype dtype_named(py::handle type, const char* name) {
  try {
    return py::dtype::from_args(py::reinterpret_borrow<py::object>(type));
  } catch (const py::error_already_set&) {
    throw usage_error(
        fmt::format("{}: expected a type of NumPy, found {}", name, std::string(py::str(type))));
  }
}

}  // namespace numemu::python
