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
#include "formats/version.hpp"

namespace numemu::cli {
namespace {

using unit::Unit;
using unit::UnitDescription;

constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();

/// The axes of an operand: [products,] lines, depth; the last two exchanged where `transposed`. A
/// vector is one line.
GemmSide side_of(const std::string& path, const Array& array, GemmShape shape, bool transposed) {
  const ArrayShape& found = array.shape;
  const std::size_t least = 1, most = shape == GemmShape::batches ? 3 : 2;
  if (found.size() < least || found.size() > most) {
    throw Error(fmt::format("{}: shape: expected {}, found {}", path,
                            shape == GemmShape::dots      ? "N x K"
                            : shape == GemmShape::batches ? "a matrix or a batch of matrices"
                                                          : "a matrix",
                            shape_text(found)));
  }
  if (array.elements() > kMost)
    throw Error(fmt::format("{}: shape: expected at most {} elements, found {}", path, kMost,
                            shape_text(found)));
  if (found.size() == 1) return {false, 1, 1, found[0]};
  if (shape == GemmShape::dots) return {true, found[0], 1, found[1]};
  const std::size_t at = found.size() - 2;
  GemmSide side{at == 1, at == 1 ? found[0] : 1, found[at], found[at + 1]};
  if (transposed) std::swap(side.lines, side.depth);
  return side;
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

/// Whether D is whole numbers of 16 bits.
bool whole_halves(const Unit& unit) {
  const UnitDescription* u = unit.description();
  if (unit.d_format() != nullptr) return false;
  const unit::Register& r = unit::result_register(*u);
  return r.bits == 16 && r.fraction == 0;
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
  if (whole_halves(unit)) return ArrayType::int16;
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

/// The operands meet: as many products, and K.
void check_sides(const Unit& unit, const GemmFiles& files, const GemmArrays& arrays) {
  const UnitDescription* u = unit.description();
  const bool sparse = u != nullptr && !u->sparsity.dense();
  const GemmSide &a = arrays.side_a, &b = arrays.side_b;
  const std::string shape_a = shape_text(arrays.a.array.shape),
                    shape_b = shape_text(arrays.b.array.shape);
  if (a.batched && b.batched && a.products != b.products)
    throw Error(fmt::format("{}, {}: shape: expected as many products in both, found {} and {}",
                            files.a, files.b, shape_a, shape_b));
  const auto kept = [&](std::int64_t k) { return sparse ? unit::kept_depth(u->sparsity, k) : k; };
  if (sparse && b.depth % u->sparsity.group != 0 && a.depth != kept(b.lines))
    throw Error(fmt::format("{}: shape: K is {}, expected a multiple of {} ({}:{})", files.b,
                            b.depth, u->sparsity.group, u->sparsity.kept, u->sparsity.group));
  if (a.depth == kept(b.depth)) return;
  if (files.shape == GemmShape::dots)
    throw Error(fmt::format("{}, {}: shape: expected N x K and N x K, found {} and {}", files.a,
                            files.b, shape_a, shape_b));
  const char *is = files.b_by_columns() ? "N x K" : "K x N",
             *other = files.b_by_columns() ? "K x N" : "N x K";
  if (a.depth == kept(b.lines) && arrays.b.array.shape.size() > 1)
    throw Error(
        fmt::format("{}: shape: expected {}, found {}: with the K of {} it is {}, give "
                    "--b-layout {}",
                    files.b, is, shape_b, files.a, other, files.b_by_columns() ? "kn" : "nk"));
  if (a.lines == kept(b.depth) && arrays.a.array.shape.size() > 1)
    throw Error(fmt::format("{}: shape: expected M x K, found {}: with the K of {} it is K x M",
                            files.a, shape_a, files.b));
  throw Error(fmt::format("{}, {}: shape: expected M x K and {} of one K, found {} and {}{}",
                          files.a, files.b, is, shape_a, shape_b,
                          sparse ? fmt::format(" ({} of {} elements of K are kept)",
                                               u->sparsity.kept, u->sparsity.group)
                                 : ""));
}

void check_outputs(const GemmFiles& files, const unit::Batch& batch) {
  const unit::Gemm& g = batch.first;
  const std::int64_t lines = g.m == 0 ? 0 : kMost / g.m;
  if (g.m == 0 || g.n == 0 || (g.n <= lines && batch.count <= lines / g.n)) return;
  throw Error(fmt::format("{}, {}: shape: expected at most {} outputs, found {} x {} x {}", files.a,
                          files.b, kMost, batch.count, g.m, g.n));
}

}  // namespace

ArrayShape GemmSide::lines_of(GemmShape shape, std::int64_t width) const {
  if (shape == GemmShape::dots) return batched ? ArrayShape{products, width} : ArrayShape{width};
  return batched ? ArrayShape{products, lines, width} : ArrayShape{lines, width};
}

void read_gemm(const Unit& unit, const GemmFiles& files, GemmArrays& arrays) {
  check_format_d(unit, files.format_d);
  std::vector<StoredArray> a = open_inputs({{files.a, "codes"}, {files.scale_a, "scales"}});
  std::vector<StoredArray> b = open_inputs({{files.b, "codes"}, {files.scale_b, "scales"}});
  arrays.a = read_operand(unit, true, files.format_a, a[0]);
  arrays.b = read_operand(unit, false, files.format_b, b[0]);
  GemmSide& side_a = arrays.side_a;
  GemmSide& side_b = arrays.side_b;
  side_a = side_of(files.a, arrays.a.array, files.shape, false);
  side_b = side_of(files.b, arrays.b.array, files.shape, !files.b_by_columns());
  check_sides(unit, files, arrays);

  unit::Gemm& g = arrays.gemm;
  g.m = side_a.lines;
  g.n = side_b.lines;
  g.k = side_b.depth;
  unit::Batch& batch = arrays.batch;
  batch.count = side_a.batched ? side_a.products : side_b.products;
  if (side_a.batched) batch.a_stride = side_a.lines * side_a.depth;
  if (side_b.batched) batch.b_stride = side_b.lines * side_b.depth;
  check_outputs(files, batch);
  arrays.gather_a = unit::Gather::matrix(g.m, side_a.depth);
  arrays.gather_b = unit::Gather::matrix(g.n, g.k, !files.b_by_columns());
  g.a = {arrays.a.format, arrays.a.array.data.data(), &arrays.gather_a};
  g.b = {arrays.b.format, arrays.b.array.data.data(), &arrays.gather_b};
  unit.require_operands(*arrays.a.format, *arrays.b.format);
  read_all_scales(unit, files, a[1], b[1], arrays);
  read_meta(unit, files, arrays);
  const bool batched = side_a.batched || side_b.batched;
  const ArrayShape own = GemmSide{batched, batch.count, g.m, 0}.lines_of(files.shape, g.n);
  // One number for each dot.
  const ArrayShape results = files.shape == GemmShape::dots ? ArrayShape{batch.count} : own;
  if (!files.c.empty()) {
    arrays.c = read_c(unit, files.c);
    if (batch.outputs() == 1 && arrays.c.elements() == 1) arrays.c.shape = results;
    batch.c_shared = batched && files.shape == GemmShape::batches && arrays.c.shape.size() == 2;
    if (batch.c_shared) {
      require_shape(files.c, arrays.c.shape, {g.m, g.n}, "M x N, for all products");
    } else {
      require_shape(files.c, arrays.c.shape, results,
                    files.shape == GemmShape::dots ? "N"
                    : batched                      ? "products x M x N"
                                                   : "M x N");
    }
    g.c = arrays.c.data.data();
  }
  arrays.d = Array(result_type(unit), results);
  g.d = arrays.d.data.data();
}

Array read_gemm_result(const Unit& unit, const std::string& path, const Array& d) {
  const Format* format = unit.d_format() != nullptr ? unit.d_format() : narrow_integer(unit);
  const auto read = [&] {
    if (format == nullptr) return read_int32(path, register_bits(unit));
    StoredArray stored = open_input(path);
    return read_codes(stored, {.format = format,
                               .told_by = fmt::format("unit {}, which gives", unit.row().name)})
        .array;
  };
  Array array = read();
  if (array.elements() == 1 && d.elements() == 1) array.shape = d.shape;
  require_shape(path, array.shape, d.shape, "the shape of D");
  return array;
}

void add_gemm_result(const Unit& unit, const std::string& path, const Array& d, std::uint64_t seed,
                     OutputFiles& files) {
  const Format* format = unit.d_format() != nullptr ? unit.d_format() : narrow_integer(unit);
  if (format == nullptr || whole_halves(unit) || format->name == "float32" ||
      format->name == "float64")
    return files.add_array("values", path, d.type, d.shape, d.data.data());
  Sidecar about;
  about.numemu = NUMEMU_VERSION;
  const UnitDescription* u = unit.description();
  about.rounding = to_string(unit::result_register(*u).rounding);
  about.overflow = to_string(unit::result_register(*u).overflow);
  if (u->accumulator.rounding.stochastic()) about.seed = seed;
  files.add_codes("codes", path, *format, d.shape, d.data.data(), about);
}

}  // namespace numemu::cli
