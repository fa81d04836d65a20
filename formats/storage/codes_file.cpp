// Combines file, sidecar and arguments, and assumes nothing.
#include "formats/storage/codes_file.hpp"

#include <fmt/format.h>

#include <utility>

#include "formats/error.hpp"
#include "formats/joined.hpp"
#include "formats/storage/safetensors.hpp"
#include "formats/storage/sidecar.hpp"

namespace numemu {
namespace {

/// So that their codes can be counted; an empty array can claim any extent.
constexpr std::int64_t kLongestPackedRow = std::int64_t{1} << 53;

void unpack_array(const std::string& path, const Array& packed, const Format& f, BitOrder order,
                  const std::string& shape_said_by, Array& out) {
  const PackedRows rows(out.shape);
  const std::int64_t bad = unpack_codes(packed.as<std::uint8_t>(), rows.count, rows.length, f.bits,
                                        order, out.as<std::uint8_t>());
  if (bad >= 0) {
    throw Error(fmt::format("{}: row {}: expected zeros after its {} of {}", path, bad,
                            counted(rows.length, "code"),
                            named_by(counted(f.bits, "bit"), shape_said_by)));
  }
}

/// The path of the sidecar if it is the source of a value, else "".
std::string if_sidecar(const std::string& path, bool says) {
  return says ? sidecar_path(path) : std::string();
}

/// The arguments of the caller, the additions of the sidecar, and the source of each.
struct Consulted {
  CodesTold told;
  std::optional<Sidecar> sidecar;
  std::string format_said_by;  ///< the sidecar's path where the caller named no format
};

/// Packed bytes of a .npy file to codes.
Array unpacked(const std::string& path, const Consulted& known, Array packed) {
  const Format& f = *known.told.format;
  const std::optional<Sidecar>& sidecar = known.sidecar;
  const std::optional<ArrayShape> logical = sidecar ? sidecar->logical_shape : std::nullopt;
  const std::optional<BitOrder> said =
      known.told.order || !sidecar ? known.told.order : sidecar->order;
  const BitOrder order = said.value_or(BitOrder::low_first);
  const bool by_sidecar = !known.told.packed || !known.format_said_by.empty();
  try {
    check_bit_order(order, f.bits);
  } catch (const Error& error) {
    if (!by_sidecar) throw;
    throw Error(fmt::format("{}: packed: {}", sidecar_path(path), error.what()), error.kind());
  }
  require_type(path, packed.type, {ArrayType::uint8},
               "packed codes of " + named_by(f.name, if_sidecar(path, by_sidecar)));
  ArrayShape shape = packed.shape;
  if (logical) {
    shape = *logical;
    if (!element_count_of(shape) || packed.shape != packed_shape(shape, f.bits)) {
      throw Error(
          fmt::format("{}: shape: expected packed rows of {} of the logical_shape {} "
                      "in {}, found {}",
                      path, counted(f.bits, "bit"), shape_text(shape), sidecar_path(path),
                      shape_text(packed.shape)));
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
  unpack_array(path, packed, f, order, if_sidecar(path, logical.has_value()), codes);
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

Codes read_tensor(InputFile& file, const Consulted& known) {
  const std::string& path = file.path();
  const CodesTold& told = known.told;
  StoredTensor tensor = read_safetensors_tensor(file, told.tensor);
  const std::string where = fmt::format("{}: tensor {}: dtype: ", path, quote_name(tensor.name));
  if (tensor.type->format.empty()) {
    throw Error(fmt::format("{}expected {}, found {}", where,
                            joined(safetensors_code_types(), ", "), tensor.type->name));
  }
  const Format& f = find_format(tensor.type->format);
  if (told.format != nullptr && told.format->name != f.name) {
    throw Error(fmt::format("{}expected codes of {}, found {}, codes of {}", where,
                            named_by(told.format->name, known.format_said_by), tensor.type->name,
                            f.name));
  }
  check_logical_shape(path, known.sidecar, tensor.shape);
  if (told.order == BitOrder::high_first && f.bits < 8)
    throw Error(fmt::format("{}: expected the order low-first in safetensors", path));
  if (known.sidecar && known.sidecar->order == BitOrder::high_first) {
    throw Error(
        fmt::format("{}: order: expected null or low-first in safetensors", sidecar_path(path)));
  }
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

/// The codebook that a sidecar names must be the one that produced the codes. `told` is the
/// caller's codebook, if any: then the sidecar's path is not opened, only the entries are compared.
void settle_codebook(const std::string& path, Sidecar& sidecar, const CodesTold& asked) {
  const Format* const told = asked.format;
  const std::optional<std::string>& digest = sidecar.codebook_sha256;
  if (told != nullptr) {
    if (told->kind != Kind::codebook || !digest) return;
    const std::string found = codebook_sha256(*told);
    if (found != *digest) {
      throw Error(fmt::format(
          "{}: format: {} of codebook_sha256 {} contradicts {} {} of codebook_sha256 {}",
          sidecar_path(path), quote_name(*sidecar.format), *digest, asked.told_by,
          quote_name(told->name), found));
    }
    sidecar.format = told->name;
    return;
  }
  const std::string found = at(sidecar_path(path) + ": format",
                               [&] { return codebook_sha256(find_format(*sidecar.format)); });
  if (digest && found != *digest) {
    throw Error(fmt::format("{}: codebook_sha256: expected {}, found {} in {}", sidecar_path(path),
                            *digest, found, codebook_file(*sidecar.format)));
  }
}

/// The sidecar, if any, checked against the arguments of the caller; completes told.format.
Consulted consult_sidecar(const StoredArray& stored, const CodesTold& asked) {
  const std::string& path = stored.path();
  Consulted known{asked, stored.sidecar, ""};
  if (!known.sidecar) return known;
  Sidecar& sidecar = *known.sidecar;
  CodesTold& told = known.told;
  if (sidecar.format && !codebook_file(*sidecar.format).empty())
    settle_codebook(path, sidecar, told);
  if (told.format != nullptr && sidecar.format && *sidecar.format != told.format->name) {
    throw Error(fmt::format("{}: format: {} contradicts {} {}", sidecar_path(path),
                            quote_name(*sidecar.format), told.told_by,
                            quote_name(told.format->name)));
  }
  SidecarTold said;
  if (told.packed) said.packed = true;
  said.order = told.order;
  check_sidecar(path, sidecar, said);
  if (told.format == nullptr && sidecar.format) {
    told.format = &find_format(*sidecar.format);
    known.format_said_by = sidecar_path(path);
  }
  return known;
}

/// Compares the array with its digests before any other check.
Codes read_npy_codes(StoredArray& stored, const Consulted& known) {
  const std::string& path = stored.path();
  Array array = read_array(stored);
  if (known.told.format == nullptr) {
    require_type(path, array.type, {ArrayType::float16, ArrayType::float32, ArrayType::float64},
                 known.told.told_by.empty()
                     ? "numbers (codes need a sidecar that names their format)"
                     : "numbers (for codes: --from FORMAT)");
    return checked_codes(path, find_format(to_string(array.type)), std::move(array));
  }
  if (known.told.packed || (known.sidecar && known.sidecar->packed.value_or(false))) {
    array = unpacked(path, known, std::move(array));
  } else {
    if (known.told.order)
      throw Error(path + ": expected packed codes for --order, found codes that are not packed");
    check_logical_shape(path, known.sidecar, array.shape);
  }
  return checked_codes(path, *known.told.format, std::move(array), known.format_said_by);
}

Codes read_any(StoredArray& stored, const Consulted& known) {
  if (!is_safetensors(stored.path())) return read_npy_codes(stored, known);
  stored.rewind();
  Codes codes = read_tensor(*stored.file, known);
  stored.check_digest();
  return codes;
}

}  // namespace

Codes read_codes(StoredArray& stored, const CodesTold& asked) {
  const std::string& path = stored.path();
  const Consulted known = consult_sidecar(stored, asked);
  if (!is_safetensors(path) && known.told.format == nullptr) {
    throw Error(fmt::format("{}: expected --format, or a sidecar {} that names the format", path,
                            sidecar_path(path)));
  }
  return read_any(stored, known);
}

Codes read_codes(const std::string& path, const CodesTold& asked) {
  StoredArray stored = open_stored(path);
  return read_codes(stored, asked);
}

Codes read_numbers(StoredArray& stored, const CodesTold& asked) {
  return read_any(stored, consult_sidecar(stored, asked));
}

Codes read_numbers(const std::string& path, const CodesTold& asked) {
  StoredArray stored = open_stored(path);
  return read_numbers(stored, asked);
}

}  // namespace numemu
