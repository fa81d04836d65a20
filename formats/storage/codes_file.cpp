// What the file, the sidecar and the caller say is brought together here, and nothing is assumed.
#include "formats/storage/codes_file.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "formats/error.hpp"
#include "formats/storage/npy.hpp"
#include "formats/storage/safetensors_tensor.hpp"

namespace numemu {
namespace {

/// So that their codes can be counted; an empty array can claim any extent.
constexpr std::int64_t kLongestPackedRow = std::int64_t{1} << 53;

/// Rows along the last axis; a scalar is one row of one code.
struct Rows {
  std::int64_t count = 1, length = 1;
  explicit Rows(const ArrayShape& shape) {
    const std::int64_t elements = element_count_of(shape).value();
    if (!shape.empty()) length = shape.back();
    count = elements == 0 ? 0 : elements / length;
  }
};

ArrayShape packed_shape(ArrayShape shape, int bits) {
  if (shape.empty()) shape.push_back(1);
  shape.back() = packed_row_bytes(shape.back(), bits);
  return shape;
}

void unpack_array(const std::string& path, const Array& packed, const Format& f, BitOrder order,
                  Array& out) {
  const Rows rows(out.shape);
  const std::int64_t bad = unpack_codes(packed.as<std::uint8_t>(), rows.count, rows.length, f.bits,
                                        order, out.as<std::uint8_t>());
  if (bad >= 0) {
    throw Error(fmt::format("{}: row {}: expected zeros after its {} codes of {} bits", path, bad,
                            rows.length, f.bits));
  }
}

/// Packed bytes of a .npy file to codes.
Array unpacked(const std::string& path, Array packed, const Format& f, BitOrder order,
               const std::optional<ArrayShape>& logical) {
  check_bit_order(order, f.bits);
  require_type(path, packed.type, {ArrayType::uint8}, "packed codes of " + f.name);
  ArrayShape shape = packed.shape;
  if (logical) {
    shape = *logical;
    if (!element_count_of(shape) || packed.shape != packed_shape(shape, f.bits)) {
      throw Error(fmt::format(
          "{}: shape: expected packed rows of {} bits of the logical_shape {} "
          "in {}, found {}",
          path, f.bits, shape_text(shape), sidecar_path(path), shape_text(packed.shape)));
    }
  } else {
    if (shape.empty()) throw Error(path + ": shape: expected packed rows, found a scalar");
    const std::int64_t bytes = shape.back();
    if (bytes > kLongestPackedRow)
      throw Error(fmt::format("{}: shape: expected packed rows of at most {} bytes, found {}", path,
                              kLongestPackedRow, bytes));
    shape.back() = bytes / f.bits * 8 + bytes % f.bits * 8 / f.bits;
  }
  Array codes(ArrayType::uint8, shape);
  unpack_array(path, packed, f, order, codes);
  return codes;
}

/// The shape of an array that is not packed.
void check_logical_shape(const std::string& path, const std::optional<Sidecar>& sidecar,
                         const ArrayShape& found) {
  if (!sidecar || !sidecar->logical_shape || *sidecar->logical_shape == found) return;
  throw Error(fmt::format("{}: shape: expected the logical_shape {} in {}, found {}", path,
                          shape_text(*sidecar->logical_shape), sidecar_path(path),
                          shape_text(found)));
}

Codes read_tensor(const std::string& path, const CodesTold& told,
                  const std::optional<Sidecar>& sidecar) {
  StoredTensor tensor = read_safetensors_tensor(path, told.tensor);
  const std::string where = fmt::format("{}: tensor {}: dtype: ", path, quote_name(tensor.name));
  if (tensor.type->format.empty()) {
    throw Error(fmt::format("{}expected {}, found {}", where,
                            fmt::join(safetensors_code_types(), ", "), tensor.type->name));
  }
  const Format& f = find_format(tensor.type->format);
  if (told.format != nullptr && told.format->name != f.name) {
    throw Error(fmt::format("{}expected codes of {}, found {}, codes of {}", where,
                            told.format->name, tensor.type->name, f.name));
  }
  check_logical_shape(path, sidecar, tensor.shape);
  if (told.order == BitOrder::high_first && f.bits < 8)
    throw Error(fmt::format("{}: expected the order low-first in safetensors", path));
  Array array;
  array.type = container_type(f);
  array.shape = tensor.shape;
  if (f.bits >= 8) {
    array.data = std::move(tensor.data);
  } else {
    array.data = Bytes(tensor.elements);
    unpack_codes(reinterpret_cast<const std::uint8_t*>(tensor.data.data()), 1, tensor.elements,
                 f.bits, BitOrder::low_first, array.as<std::uint8_t>());
  }
  return {&f, std::move(array)};
}

/// The canonical name of the format in a sidecar.
const Format& format_in(const std::string& path, const Sidecar& sidecar) {
  try {
    return find_format(*sidecar.format);
  } catch (const Error& error) {
    throw Error(fmt::format("{}: format: {}", sidecar_path(path), error.what()));
  }
}

/// The sidecar, if any, after it was held against what the caller says; told.format is completed.
std::optional<Sidecar> consult_sidecar(const std::string& path, CodesTold& told) {
  std::optional<Sidecar> sidecar = read_sidecar(path);
  if (!sidecar) return sidecar;
  const Format* said = sidecar->format ? &format_in(path, *sidecar) : nullptr;
  if (said != nullptr) sidecar->format = said->name;
  SidecarTold known;
  if (told.format != nullptr) known.format = told.format->name;
  if (told.packed) known.packed = true;
  known.order = told.order;
  check_sidecar(path, *sidecar, known);
  if (told.format == nullptr) told.format = said;
  return sidecar;
}

Codes read_npy_codes(const std::string& path, const CodesTold& told,
                     const std::optional<Sidecar>& sidecar, Array array) {
  const Format& f = *told.format;
  const std::optional<ArrayShape> logical = sidecar ? sidecar->logical_shape : std::nullopt;
  if (told.packed || (sidecar && sidecar->packed.value_or(false))) {
    const std::optional<BitOrder> order = told.order || !sidecar ? told.order : sidecar->order;
    array = unpacked(path, std::move(array), f, order.value_or(BitOrder::low_first), logical);
  } else {
    check_logical_shape(path, sidecar, array.shape);
  }
  return checked_codes(path, f, std::move(array));
}

void write_tensor(const std::string& path, const Format& f, const ArrayShape& shape,
                  const std::uint8_t* codes, const std::string& tensor) {
  const SafetensorsType* type = safetensors_type_of_format(f.name);
  if (type == nullptr) {
    throw Error(fmt::format("{}: safetensors has no dtype for {}; it has {}", path, f.name,
                            fmt::join(safetensors_code_types(), ", ")));
  }
  const std::int64_t elements = element_count_of(shape).value();
  Bytes packed(f.bits < 8 ? packed_row_bytes(elements, f.bits) : 0);
  if (f.bits < 8) {
    auto* to = reinterpret_cast<std::uint8_t*>(packed.data());
    pack_codes(codes, 1, elements, f.bits, BitOrder::low_first, to);
    codes = to;
  }
  write_safetensors_tensor(path, tensor.empty() ? "codes" : tensor, *type, shape, codes);
}

// A sidecar of ours speaks for the codes that stood in a file before.
void remove_stale_sidecar(const std::string& path) {
  bool stale = false;
  try {
    stale = read_sidecar(path).has_value();
  } catch (const Error&) {  // no sidecar of ours
  }
  std::error_code ignored;
  if (stale) std::filesystem::remove(sidecar_path(path), ignored);
}

}  // namespace

Codes read_codes(const std::string& path, const CodesTold& asked) {
  CodesTold told = asked;
  const std::optional<Sidecar> sidecar = consult_sidecar(path, told);
  if (is_safetensors(path)) return read_tensor(path, told, sidecar);
  if (told.format == nullptr) {
    throw Error(fmt::format("{}: expected --format, or a sidecar {} that names the format", path,
                            sidecar_path(path)));
  }
  return read_npy_codes(path, told, sidecar, read_npy(path));
}

Codes read_numbers(const std::string& path, const CodesTold& asked) {
  CodesTold told = asked;
  const std::optional<Sidecar> sidecar = consult_sidecar(path, told);
  if (is_safetensors(path)) return read_tensor(path, told, sidecar);
  Array array = read_npy(path);
  if (told.format != nullptr) return read_npy_codes(path, told, sidecar, std::move(array));
  require_type(path, array.type, {ArrayType::float16, ArrayType::float32, ArrayType::float64},
               "numbers (or --from FORMAT, whose codes they are)");
  return checked_codes(path, find_format(to_string(array.type)), std::move(array));
}

void write_codes(const std::string& path, const Format& f, const ArrayShape& shape,
                 const void* codes, Sidecar about, const std::string& tensor) {
  about.format = f.name;
  about.logical_shape = shape;
  const auto* bytes = static_cast<const std::uint8_t*>(codes);
  const BitOrder order = about.order.value_or(BitOrder::low_first);
  if (is_safetensors(path)) {
    if (order != BitOrder::low_first)
      throw Error(path + ": expected the order low-first in safetensors");
    about.packed = f.bits < 8;
    write_tensor(path, f, shape, bytes, tensor);
  } else if (about.packed.value_or(false)) {
    check_bit_order(order, f.bits);
    const Rows rows(shape);
    Array packed(ArrayType::uint8, packed_shape(shape, f.bits));
    pack_codes(bytes, rows.count, rows.length, f.bits, order, packed.as<std::uint8_t>());
    write_npy(path, packed);
  } else {
    write_npy(path, container_type(f), shape, codes);
  }
  write_sidecar(path, about);
}

void write_array(const std::string& path, ArrayType type, const ArrayShape& shape,
                 const void* data) {
  write_npy(path, type, shape, data);
  remove_stale_sidecar(path);
}

void write_numbers(const std::string& path, const Format& f, const Array& array,
                   const std::string& tensor) {
  if (!is_safetensors(path))
    return write_array(path, array.type, array.shape, array.as<std::uint8_t>());
  write_tensor(path, f, array.shape, array.as<std::uint8_t>(), tensor.empty() ? "values" : tensor);
  remove_stale_sidecar(path);
}

}  // namespace numemu
