// Reads the operands, C, scales and metadata of a product.
#include "cli/gemm_arrays.hpp"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "cli/gemm_side_arrays.hpp"
#include "cli/input_arrays.hpp"
#include "emu/unit/sparse/pattern.hpp"
#include "formats/convert.hpp"
#include "formats/error.hpp"
#include "formats/storage/codes_file.hpp"
#include "formats/storage/npy.hpp"
#include "formats/storage/output_files.hpp"
#include "formats/version.hpp"

namespace numemu::cli {
namespace {

using unit::Unit;
using unit::UnitDescription;

/// A vector A is one row, a vector B one column.
void require_matrix(const std::string& path, Array& array, bool is_a) {
  if (array.shape.size() == 1)
    array.shape = is_a ? ArrayShape{1, array.shape[0]} : ArrayShape{array.shape[0], 1};
  if (array.shape.size() != 2)
    throw Error(
        fmt::format("{}: shape: expected a matrix, found {}", path, shape_text(array.shape)));
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  if (array.elements() > kMost)
    throw Error(fmt::format("{}: shape: expected at most {} elements, found {}", path, kMost,
                            shape_text(array.shape)));
}

/// float32 numbers as a unit takes them that drops their low bits (tf32, xf32).
Codes truncated(StoredArray& stored, const Format& format) {
  Codes codes = read_codes(stored, {.format = &find_format("float32")});
  auto* words = codes.array.as<std::uint32_t>();
  const std::uint32_t kept = ~std::uint32_t{0} << format.container_shift;
  for (std::int64_t i = 0; i < codes.array.elements(); ++i) words[i] &= kept;
  codes.format = &format;
  return codes;
}

/// The operand's format: the unit's or, where the unit takes any, that of the option or a sidecar.
Codes read_operand(const Unit& unit, bool is_a, const std::string& name, StoredArray& stored) {
  const char* option = is_a ? "--format-a" : "--format-b";
  const UnitDescription* u = unit.description();
  const Format* own = u == nullptr ? nullptr : is_a ? u->a : u->b;
  const Format* told = name.empty() ? nullptr : &find_format(name);
  if (own != nullptr && told != nullptr && own->name != told->name)
    throw Error(fmt::format("{}: {} contradicts unit {}, which takes {}", option, told->name,
                            unit.row().name, own->name));
  if (own == nullptr && told == nullptr && !stored.sidecar)
    throw Error(fmt::format("{}: expected a format: unit {} takes any", option, unit.row().name));
  const Format* format = own != nullptr ? own : told;
  const std::string told_by =
      told != nullptr ? option : fmt::format("unit {}, which takes", unit.row().name);
  Codes codes = format != nullptr && format->container_shift != 0 && !stored.sidecar
                    ? truncated(stored, *format)
                    : read_codes(stored, {.format = format, .told_by = told_by});
  require_matrix(stored.path(), codes.array, is_a);
  return codes;
}

int register_bits(const Unit& unit) {
  const UnitDescription* u = unit.description();
  return u == nullptr ? 32 : unit::result_register(*u).bits;
}

/// The format of C's or D's codes where it is two's complement of at most 16 bits; nullptr: int32.
const Format* narrow_integer(const Unit& unit) {
  const int bits = register_bits(unit);
  return bits > 16 ? nullptr : &find_format("int" + std::to_string(bits));
}

Array read_int32(const std::string& path, int bits) {
  Array array = read_npy(path);
  if (array.type != ArrayType::int32)
    throw Error(fmt::format("{}: dtype: expected int32, found {}", path, to_string(array.type)));
  const auto* values = array.as<std::int32_t>();
  for (std::int64_t i = 0; bits < 32 && i < array.elements(); ++i) {
    const std::int64_t end = std::int64_t{1} << (bits - 1);
    if (values[i] < -end || values[i] >= end)
      throw Error(fmt::format("{}: element {}: expected a number of {} bits, found {}", path, i,
                              bits, values[i]));
  }
  return array;
}

/// float16 C where the unit's is float32: widened, exactly.
Array widened(const Codes& half) {
  Array wide(ArrayType::float32, half.array.shape);
  convert_codes({.format = &find_format("float32"), .overflow = Overflow::ieee}, *half.format,
                half.array.data.data(), half.array.elements(), wide.data.data());
  return wide;
}

Array read_c(const Unit& unit, const std::string& path) {
  const Format* format = unit.c_format();
  const std::string told_by = fmt::format("unit {}, whose C is", unit.row().name);
  if (format == nullptr) {
    const Format* narrow = narrow_integer(unit);
    if (narrow == nullptr) return read_int32(path, register_bits(unit));
    StoredArray stored = open_input(path);
    return read_codes(stored, {.format = narrow, .told_by = told_by}).array;
  }
  StoredArray stored = open_input(path);
  if (format->name == "float32" && unit.d_format()->name == "float32") {
    const ArrayType type = read_array(stored).type;
    if (type == ArrayType::uint16 || type == ArrayType::float16)
      return widened(read_codes(stored, {.format = &find_format("float16"), .told_by = told_by}));
  }
  return read_codes(stored, {.format = format, .told_by = told_by}).array;
}

ArrayType result_type(const Unit& unit) {
  if (const Format* format = unit.d_format()) return container_type(*format);
  const Format* narrow = narrow_integer(unit);
  return narrow == nullptr ? ArrayType::int32 : container_type(*narrow);
}

void check_format_d(const Unit& unit, const std::string& name) {
  if (name.empty() || name == unit.row().result) return;
  const Format& told = find_format(name);
  const Format* own = unit.d_format() != nullptr ? unit.d_format() : narrow_integer(unit);
  if (own == nullptr || own->name != told.name)
    throw Error(fmt::format("--format-d: {} contradicts unit {}, which gives {}", told.name,
                            unit.row().name, unit.row().result));
}

}  // namespace

void read_gemm(const Unit& unit, const GemmFiles& files, GemmArrays& arrays) {
  const UnitDescription* u = unit.description();
  check_format_d(unit, files.format_d);
  std::vector<StoredArray> a = open_inputs({{files.a, "codes"}, {files.scale_a, "scales"}});
  std::vector<StoredArray> b = open_inputs({{files.b, "codes"}, {files.scale_b, "scales"}});
  arrays.a = read_operand(unit, true, files.format_a, a[0]);
  arrays.b = read_operand(unit, false, files.format_b, b[0]);
  const bool sparse = u != nullptr && !u->sparsity.dense();
  unit::Gemm& g = arrays.gemm;
  g.m = arrays.a.array.shape[0];
  g.k = arrays.b.array.shape[0];
  g.n = arrays.b.array.shape[1];
  const std::int64_t depth = arrays.a.array.shape[1];
  const auto depth_of_a = [&](std::int64_t k) {
    return sparse ? unit::kept_depth(u->sparsity, k) : k;
  };
  if (depth != depth_of_a(g.k) && depth == depth_of_a(g.n))
    throw Error(fmt::format("{}: shape: expected K x N, found {}, which fits {} as N x K", files.b,
                            shape_text(arrays.b.array.shape), files.a));
  if (sparse && g.k % u->sparsity.group != 0) {
    throw Error(fmt::format("{}: shape: K is {}, expected a multiple of {} ({}:{})", files.b, g.k,
                            u->sparsity.group, u->sparsity.kept, u->sparsity.group));
  }
  const std::int64_t expected = depth_of_a(g.k);
  require_shape(files.a, arrays.a.array.shape, {g.m, expected},
                sparse ? fmt::format("M x {} kept of the {} rows of B", expected, g.k)
                       : fmt::format("M x K, B has {} rows", g.k));
  constexpr std::int64_t kMostOutputs = std::numeric_limits<std::int32_t>::max();
  if (g.n != 0 && g.m > kMostOutputs / g.n)
    throw Error(fmt::format("{}, {}: shape: expected at most {} outputs, found {} x {}", files.a,
                            files.b, kMostOutputs, g.m, g.n));
  arrays.gather_a = unit::Gather::matrix(g.m, depth);
  arrays.gather_b = unit::Gather::matrix(g.n, g.k, true);
  g.a = {arrays.a.format, arrays.a.array.data.data(), &arrays.gather_a};
  g.b = {arrays.b.format, arrays.b.array.data.data(), &arrays.gather_b};
  unit.require_operands(*arrays.a.format, *arrays.b.format);
  read_all_scales(unit, files, a[1], b[1], arrays);
  read_meta(unit, files, arrays);
  if (!files.c.empty()) {
    arrays.c = read_c(unit, files.c);
    if (g.m * g.n == 1 && arrays.c.elements() == 1) arrays.c.shape = {1, 1};
    require_shape(files.c, arrays.c.shape, {g.m, g.n}, "M x N");
    g.c = arrays.c.data.data();
  }
  arrays.d = Array(result_type(unit), {g.m, g.n});
  g.d = arrays.d.data.data();
}

void write_gemm_result(const Unit& unit, const std::string& path, const Array& d,
                       std::uint64_t seed) {
  const Format* format = unit.d_format() != nullptr ? unit.d_format() : narrow_integer(unit);
  if (format == nullptr) return write_array(path, d.type, d.shape, d.data.data());
  if (format->name == "float32" || format->name == "float64") {
    return write_array(path, d.type, d.shape, d.data.data());
  }
  Sidecar about;
  about.numemu = NUMEMU_VERSION;
  const UnitDescription* u = unit.description();
  about.rounding = to_string(unit::result_register(*u).rounding);
  about.overflow = to_string(unit::result_register(*u).overflow);
  if (u->accumulator.rounding.stochastic()) about.seed = seed;
  write_codes(path, *format, d.shape, d.data.data(), about);
}

}  // namespace numemu::cli
