// The arrays of a product, from files or from memory: checked against the unit and each other.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/array_files.hpp"
#include "api/units.hpp"
#include "emu/unit/sparse/kept_index.hpp"
#include "emu/unit/sparse/pattern.hpp"
#include "emu/unit/sparse/ptx.hpp"
#include "formats/codec.hpp"
#include "formats/convert.hpp"
#include "formats/error.hpp"
#include "formats/storage/codes_file.hpp"
#include "formats/storage/npy.hpp"
#include "formats/storage/output_files.hpp"

namespace numemu::api {
namespace {

using unit::Unit;
using unit::UnitDescription;

constexpr std::int64_t kMost = kMostOperandElements;

/// One array: in a file, which is opened when it is read, or in memory.
struct Source {
  std::string name = {};  ///< its path, or "a"; empty: there is none
  std::optional<Array> memory = {};
  const Format* format = nullptr;  ///< of codes in memory
  std::optional<StoredArray> stored = {};

  bool given() const { return !name.empty(); }
  StoredArray& open() {
    if (!stored) stored = open_input(name);
    return *stored;
  }
  ArrayType type() { return memory ? memory->type : read_array(open()).type; }
  /// `told_by()`: the words about who told the format of a file.
  template <class ToldBy>
  Codes codes(const Format* told, const ToldBy& told_by) {
    if (memory) return checked_codes(name, *told, std::move(*memory));
    return read_codes(open(), {.format = told, .told_by = told_by()});
  }
  Array array() { return memory ? std::move(*memory) : read_npy(name); }
};

/// All of a product, and what is said about them.
struct Inputs {
  Source a = {}, b = {}, c = {}, d = {}, scale_a = {}, scale_b = {}, meta = {};
  std::string format_a = {}, format_b = {}, meta_layout = {};
  ProductShape shape = ProductShape::batches;
  bool by_columns = false;
  std::uint64_t seed = 0;
  const char* option = "--";  ///< stands before the name of what a caller gives

  bool dots() const { return shape == ProductShape::dots; }
};

Source in_memory(const char* name, std::optional<Array>& array) {
  if (!array) return {};
  return {.name = name, .memory = std::move(array)};
}

/// The axes of an operand: [products,] lines, depth; the last two exchanged where `transposed`. A
/// vector is one line.
ProductSide side_of(const std::string& path, const Array& array, ProductShape shape,
                    bool transposed) {
  const ArrayShape& found = array.shape;
  const std::size_t most = shape == ProductShape::batches ? 3 : 2;
  if (found.empty() || found.size() > most) {
    throw Error(
        fmt::format("{}: shape: expected {}, found {}", path,
                    shape == ProductShape::dots ? "N x K" : "a matrix or a batch of matrices",
                    shape_text(found)));
  }
  // Extents, too: beside one of 0 the others cost no elements.
  if (array.elements() > kMost ||
      std::ranges::any_of(found, [](std::int64_t extent) { return extent > kMost; }))
    throw Error(fmt::format("{}: shape: expected at most {} elements, found {}", path, kMost,
                            shape_text(found)));
  if (found.size() == 1) return {false, 1, 1, found[0]};
  if (shape == ProductShape::dots) return {true, found[0], 1, found[1]};
  const std::size_t at = found.size() - 2;
  ProductSide side{at == 1, at == 1 ? found[0] : 1, found[at], found[at + 1]};
  if (transposed) std::swap(side.lines, side.depth);
  return side;
}

/// float32 numbers as a unit takes them that drops their low bits (tf32, xf32).
Codes truncated(Source& source, const Format& format) {
  Codes codes = source.codes(&find_format("float32"), [] { return std::string(); });
  codes.array.data.own();
  auto* words = codes.array.as<std::uint32_t>();
  const std::uint32_t kept = ~std::uint32_t{0} << format.container_shift;
  for (std::int64_t i = 0; i < codes.array.elements(); ++i) words[i] &= kept;
  codes.format = &format;
  return codes;
}

/// Whether the source says itself which format its codes have.
bool names_format(const Source& source) {
  return source.memory ? source.format->name != "float32" : source.stored->sidecar.has_value();
}

/// The operand's format: the unit's or, where the unit takes any, that of the caller or a sidecar.
Codes read_operand(const Unit& unit, const std::string& option, const Format* own,
                   const std::string& name, Source& source) {
  const Format* told = !name.empty() ? &find_format(name) : source.memory ? source.format : nullptr;
  const bool cuts = own != nullptr && own->container_shift != 0 && !names_format(source);
  if (own != nullptr && told != nullptr && own->name != told->name && !(cuts && source.memory))
    throw usage_error(fmt::format("{}: {} contradicts unit {}, which takes {}", option, told->name,
                                  unit.row().name, own->name));
  if (own == nullptr && told == nullptr && !source.stored->sidecar)
    throw usage_error(
        fmt::format("{}: expected a format: unit {} takes any", option, unit.row().name));
  const Format* format = own != nullptr ? own : told;
  if (format != nullptr && format->container_shift != 0 && !names_format(source))
    return truncated(source, *format);
  return source.codes(format, [&] {
    return told != nullptr ? option : fmt::format("unit {}, which takes", unit.row().name);
  });
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

Array read_int32(Source& source, int bits) {
  Array array = source.array();
  if (array.type != ArrayType::int32)
    throw Error(
        fmt::format("{}: dtype: expected int32, found {}", source.name, to_string(array.type)));
  const auto* values = array.as<std::int32_t>();
  for (std::int64_t i = 0; bits < 32 && i < array.elements(); ++i) {
    const std::int64_t end = std::int64_t{1} << (bits - 1);
    if (values[i] < -end || values[i] >= end)
      throw Error(fmt::format("{}: element {}: expected a number of {} bits, found {}", source.name,
                              i, bits, values[i]));
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

/// C or D in the unit's type; `format` of one that is no integer. `role`: "whose C is".
Array read_in_type(const Unit& unit, const Format* format, Source& source, const char* role) {
  if (format == nullptr) format = narrow_integer(unit);
  if (format == nullptr) return read_int32(source, register_bits(unit));
  return source.codes(format, [&] { return fmt::format("unit {}, {}", unit.row().name, role); })
      .array;
}

Array read_c(const Unit& unit, Source& source) {
  const Format *c = unit.c_format(), *d = unit.d_format();
  if (c != nullptr && c->name == "float32" && d->name == "float32") {
    const ArrayType type = source.type();
    if (type == ArrayType::uint16 || type == ArrayType::float16)
      return widened(source.codes(&find_format("float16"), [&] {
        return fmt::format("unit {}, whose C is", unit.row().name);
      }));
  }
  return read_in_type(unit, c, source, "whose C is");
}

void check_format_d(const Unit& unit, const std::string& name) {
  if (name.empty() || name == unit.row().result) return;
  const Format& told = find_format(name);
  const Format* own = unit.d_format() != nullptr ? unit.d_format() : narrow_integer(unit);
  if (own == nullptr || own->name != told.name)
    throw usage_error(fmt::format("--format-d: {} contradicts unit {}, which gives {}", told.name,
                                  unit.row().name, unit.row().result));
}

/// The operands meet: as many products, and K.
void check_sides(const Unit& unit, const Inputs& in, const Product& p) {
  const UnitDescription* u = unit.description();
  const bool sparse = u != nullptr && !u->sparsity.dense();
  const ProductSide &a = p.side_a, &b = p.side_b;
  const auto kept = [&](std::int64_t k) { return sparse ? unit::kept_depth(u->sparsity, k) : k; };
  const bool as_many = !a.batched || !b.batched || a.products == b.products;
  const bool whole = !sparse || b.depth % u->sparsity.group == 0;
  if (as_many && whole && a.depth == kept(b.depth)) return;
  const std::string shape_a = shape_text(p.a.array.shape), shape_b = shape_text(p.b.array.shape);
  if (!as_many)
    throw Error(fmt::format("{}, {}: shape: expected as many products in both, found {} and {}",
                            in.a.name, in.b.name, shape_a, shape_b));
  if (!whole && a.depth != kept(b.lines))
    throw Error(fmt::format("{}: shape: K is {}, expected a multiple of {} ({}:{})", in.b.name,
                            b.depth, u->sparsity.group, u->sparsity.kept, u->sparsity.group));
  if (a.depth == kept(b.depth)) return;
  if (in.dots())
    throw Error(fmt::format("{}, {}: shape: expected N x K and N x K, found {} and {}", in.a.name,
                            in.b.name, shape_a, shape_b));
  const char *is = in.by_columns ? "N x K" : "K x N", *other = in.by_columns ? "K x N" : "N x K";
  if (a.depth == kept(b.lines) && p.b.array.shape.size() > 1)
    throw Error(fmt::format("{}: shape: expected {}, found {}: with the K of {} it is {}{}",
                            in.b.name, is, shape_b, in.a.name, other,
                            *in.option == '\0' ? ""
                            : in.by_columns    ? ", give --b-layout kn"
                                               : ", give --b-layout nk"));
  if (a.lines == kept(b.depth) && p.a.array.shape.size() > 1)
    throw Error(fmt::format("{}: shape: expected M x K, found {}: with the K of {} it is K x M",
                            in.a.name, shape_a, in.b.name));
  throw Error(fmt::format("{}, {}: shape: expected M x K and {} of one K, found {} and {}{}",
                          in.a.name, in.b.name, is, shape_a, shape_b,
                          sparse ? fmt::format(" ({} of {} elements of K are kept)",
                                               u->sparsity.kept, u->sparsity.group)
                                 : ""));
}

void check_outputs(const Inputs& in, const unit::Batch& batch) {
  const unit::Gemm& g = batch.first;
  const std::int64_t lines = g.m == 0 ? 0 : kMost / g.m;
  if (g.m == 0 || g.n == 0 || (g.n <= lines && batch.count <= lines / g.n)) return;
  throw Error(fmt::format("{}, {}: shape: expected at most {} outputs, found {} x {} x {}",
                          in.a.name, in.b.name, kMost, batch.count, g.m, g.n));
}

/// products x columns x rows of bytes from products x rows x columns.
Array transposed(const Array& array, std::int64_t products, std::int64_t rows,
                 std::int64_t columns) {
  Array out(ArrayType::uint8, {products, columns, rows});
  const auto* from = array.as<std::uint8_t>();
  auto* to = out.as<std::uint8_t>();
  for (std::int64_t p = 0; p < products; ++p) {
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < columns; ++c)
        to[(p * columns + c) * rows + r] = from[(p * rows + r) * columns + c];
    }
  }
  return out;
}

/// One scale or index a line may stand without its axis, as numemu vectors writes them.
void add_axis_of_one(Array& array, const ArrayShape& expected) {
  ArrayShape without = expected;
  without.pop_back();
  if (!without.empty() && expected.back() == 1 && array.shape == without) array.shape = expected;
}

/// Throws Error unless the shape of the array is the expected one; `why` explains where that comes
/// from.
void require_shape(const std::string& name, const ArrayShape& found, const ArrayShape& expected,
                   std::string_view why) {
  if (found == expected) return;
  throw Error(fmt::format("{}: shape: expected {} ({}), found {}", name, shape_text(expected), why,
                          shape_text(found)));
}

Array read_scales(const Unit& unit, Source& source, const ArrayShape& expected,
                  const std::string& why, std::int64_t& nans) {
  const Format& format = *unit.description()->scaling.format;
  Array array =
      source
          .codes(&format, [&] { return fmt::format("unit {}, whose scales are", unit.row().name); })
          .array;
  add_axis_of_one(array, expected);
  require_shape(source.name, array.shape, expected, why);
  for (std::int64_t i = 0; i < array.elements(); ++i) {
    const std::uint8_t code = array.as<std::uint8_t>()[i];
    nans += decode(format, format.is_signed ? code & 0x7fu : code).kind == Class::nan;
  }
  return array;
}

/// The block scales of a unit that has them. Throws Error where they are missing, superfluous, or
/// of another shape.
void read_all_scales(const Unit& unit, Inputs& in, Product& p) {
  const UnitDescription* u = unit.description();
  const bool scaled = u != nullptr && u->scaling.block != 0;
  for (const auto& [name, source] : {std::pair("scale-a", &in.scale_a), {"scale-b", &in.scale_b}}) {
    if (scaled == source->given()) continue;
    const std::string option = std::string(in.option) + name;
    throw Error(scaled
                    ? fmt::format("{}: expected scales: unit {} has one {} per {} elements", option,
                                  unit.row().name, u->scaling.format->name, u->scaling.block)
                    : fmt::format("{}: unit {} has no block scales", option, unit.row().name));
  }
  if (!scaled) return;
  unit::Gemm& g = p.gemm;
  const int block = u->scaling.block;
  const std::int64_t blocks = (g.k + block - 1) / block;
  const std::string why = fmt::format("one scale per {} of K = {}", block, g.k);
  const ProductSide& side = p.side_b;
  p.scale_a = read_scales(unit, in.scale_a, p.side_a.lines_of(in.shape, blocks),
                          (in.dots() ? "N x blocks, " : "M x blocks, ") + why, p.nan_scales);
  const ProductSide rows{side.batched, side.products, blocks, 0};
  p.scale_b =
      read_scales(unit, in.scale_b,
                  in.by_columns ? side.lines_of(in.shape, blocks) : rows.lines_of(in.shape, g.n),
                  (in.by_columns ? "N x blocks, " : "blocks x N, ") + why, p.nan_scales);
  if (!in.by_columns) p.scale_b = transposed(p.scale_b, side.products, blocks, g.n);
  g.scale_a = p.scale_a.as<std::uint8_t>();
  g.scale_b = p.scale_b.as<std::uint8_t>();
}

/// The pattern of a sparse unit; 4-bit integers keep and drop pairs.
unit::Pattern pattern_of(const UnitDescription& u) {
  unit::Pattern pattern;
  pattern.kept = u.sparsity.kept;
  pattern.group = u.sparsity.group;
  pattern.pairwise =
      u.a != nullptr && u.a->kind == Kind::integer && u.a->bits == 4 && u.sparsity.group == 8;
  return pattern;
}

unit::MetaLayout meta_layout_of(const std::string& layout) {
  return unit::parse_meta_layout(layout.empty() ? "index" : layout);
}

/// The metadata of a sparse unit; an illegal pattern is named with its position.
void read_meta(const Unit& unit, Inputs& in, Product& p) {
  const UnitDescription* u = unit.description();
  const bool sparse = u != nullptr && !u->sparsity.dense();
  if (sparse != in.meta.given())
    throw Error(
        sparse ? fmt::format("{}meta: expected the metadata of unit {}", in.option, unit.row().name)
               : fmt::format("{}meta: unit {} is dense", in.option, unit.row().name));
  if (!sparse) return;
  const unit::Pattern pattern = pattern_of(*u);
  unit::Gemm& g = p.gemm;
  const std::int64_t kept = unit::kept_depth(pattern, g.k);
  Array meta = in.meta.array();
  const auto layout = meta_layout_of(in.meta_layout);
  const std::int64_t rows = p.side_a.products * g.m;
  const bool words = layout == unit::MetaLayout::ptx && meta.type == ArrayType::uint32;
  if (meta.type != ArrayType::uint8 && !words)
    throw Error(fmt::format("{}: dtype: expected uint8{}, found {}", in.meta.name,
                            layout == unit::MetaLayout::ptx ? " or uint32" : "",
                            to_string(meta.type)));
  try {
    if (layout == unit::MetaLayout::index) {
      const ArrayShape expected = p.side_a.lines_of(in.shape, kept);
      add_axis_of_one(meta, expected);
      require_shape(in.meta.name, meta.shape, expected, "an index per kept element");
      unit::check_index(pattern, meta.as<std::uint8_t>(), rows, g.k);
      p.kept = std::move(meta);
    } else {
      const std::int64_t per_row = words ? unit::ptx_words_per_row<std::uint32_t>(pattern, g.k)
                                         : unit::ptx_words_per_row<std::uint8_t>(pattern, g.k);
      require_shape(in.meta.name, meta.shape, p.side_a.lines_of(in.shape, per_row),
                    "4 bits per group, rows start a word");
      p.kept = Array(ArrayType::uint8, {rows, kept});
      auto* index = p.kept.as<std::uint8_t>();
      if (words) {
        unit::decode_ptx(pattern, meta.as<std::uint32_t>(), rows, g.k, index);
      } else {
        unit::decode_ptx(pattern, meta.as<std::uint8_t>(), rows, g.k, index);
      }
    }
  } catch (const Error& error) {
    const std::string text = error.what();
    throw Error(text.starts_with(in.meta.name) ? text : in.meta.name + ": " + text, error.kind());
  }
  g.kept = p.kept.as<std::uint8_t>();
}

std::unique_ptr<Product> lay_out(UnitPtr owner, Inputs in) {
  auto product = std::make_unique<Product>();
  Product& p = *product;
  p.unit = std::move(owner);
  p.shape = in.shape;
  const Unit& unit = *p.unit;
  const UnitDescription* u = unit.description();
  const bool files = *in.option != '\0';
  p.a = read_operand(unit, files ? "--format-a" : "a", u == nullptr ? nullptr : u->a, in.format_a,
                     in.a);
  p.b = read_operand(unit, files ? "--format-b" : "b", u == nullptr ? nullptr : u->b, in.format_b,
                     in.b);
  ProductSide &side_a = p.side_a, &side_b = p.side_b;
  side_a = side_of(in.a.name, p.a.array, in.shape, false);
  side_b = side_of(in.b.name, p.b.array, in.shape, !in.by_columns);
  check_sides(unit, in, p);

  meta_layout_of(in.meta_layout);  // also where there is no metadata

  unit::Gemm& g = p.gemm;
  g.seed = in.seed;
  g.m = side_a.lines;
  g.n = side_b.lines;
  g.k = side_b.depth;
  unit::Batch& batch = p.batch;
  batch.count = side_a.batched ? side_a.products : side_b.products;
  if (side_a.batched) batch.a_stride = side_a.lines * side_a.depth;
  if (side_b.batched) batch.b_stride = side_b.lines * side_b.depth;
  check_outputs(in, batch);
  // Without outputs nothing is gathered, however long the other axes are.
  const bool none = batch.outputs() == 0;
  p.gather_a = unit::Gather::matrix(none ? 0 : g.m, none ? 0 : side_a.depth);
  p.gather_b = unit::Gather::matrix(none ? 0 : g.n, none ? 0 : g.k, !in.by_columns);
  g.a = {p.a.format, p.a.array.data.data(), &p.gather_a};
  g.b = {p.b.format, p.b.array.data.data(), &p.gather_b};
  unit.require_operands(*p.a.format, *p.b.format);
  read_all_scales(unit, in, p);
  read_meta(unit, in, p);
  const bool batched = side_a.batched || side_b.batched;
  const ArrayShape own = ProductSide{batched, batch.count, g.m, 0}.lines_of(in.shape, g.n);
  // One number for each dot.
  const ArrayShape results = in.dots() ? ArrayShape{batch.count} : own;
  if (in.c.given()) {
    p.c = read_c(unit, in.c);
    if (batch.outputs() == 1 && p.c.elements() == 1) p.c.shape = results;
    batch.c_shared = batched && !in.dots() && p.c.shape.size() == 2;
    if (batch.c_shared) {
      require_shape(in.c.name, p.c.shape, {g.m, g.n}, "M x N, for all products");
    } else {
      require_shape(in.c.name, p.c.shape, results,
                    in.dots() ? "N"
                    : batched ? "products x M x N"
                              : "M x N");
    }
    g.c = p.c.data.data();
  }
  if (in.d.given()) {
    require_type(in.d.name, in.d.type(), {result_type(unit)}, "results");
    p.d = in.d.array();
    require_shape(in.d.name, p.d.shape, results, "the shape of D");
  } else {
    p.d = Array(result_type(unit), results);
  }
  g.d = p.d.data.data();
  return product;
}

}  // namespace

ArrayType result_type(const Unit& unit) {
  if (const Format* format = unit.d_format()) return container_type(*format);
  const Format* narrow = narrow_integer(unit);
  if (whole_halves(unit)) return ArrayType::int16;
  return narrow == nullptr ? ArrayType::int32 : container_type(*narrow);
}

ArrayType c_type(const Unit& unit) {
  if (const Format* format = unit.c_format()) return container_type(*format);
  const Format* narrow = narrow_integer(unit);
  return narrow == nullptr ? ArrayType::int32 : container_type(*narrow);
}

ArrayShape ProductSide::lines_of(ProductShape shape, std::int64_t width) const {
  if (shape == ProductShape::dots) return batched ? ArrayShape{products, width} : ArrayShape{width};
  return batched ? ArrayShape{products, lines, width} : ArrayShape{lines, width};
}

std::unique_ptr<Product> read_product(UnitPtr unit, const ProductFiles& files) {
  check_format_d(*unit, files.format_d);
  std::vector<StoredArray> a = open_inputs({{files.a, "codes"}, {files.scale_a, "scales"}});
  std::vector<StoredArray> b = open_inputs({{files.b, "codes"}, {files.scale_b, "scales"}});
  const auto opened = [](const std::string& name, StoredArray& stored) {
    return Source{.name = name, .stored = std::move(stored)};
  };
  return lay_out(std::move(unit),
                 {.a = opened(files.a, a[0]),
                  .b = opened(files.b, b[0]),
                  .c = {.name = files.c},
                  .scale_a = opened(files.scale_a, a[1]),
                  .scale_b = opened(files.scale_b, b[1]),
                  .meta = {.name = files.meta},
                  .format_a = files.format_a,
                  .format_b = files.format_b,
                  .meta_layout = files.meta_layout,
                  .shape = files.shape,
                  .by_columns = files.b_by_columns || files.shape == ProductShape::dots,
                  .seed = files.seed});
}

std::unique_ptr<Product> make_product(UnitPtr unit, Operands o) {
  if (o.a.format == nullptr || o.b.format == nullptr)
    throw Error("a, b: expected codes of a format");
  return lay_out(std::move(unit),
                 {.a = {.name = "a", .memory = std::move(o.a.array), .format = o.a.format},
                  .b = {.name = "b", .memory = std::move(o.b.array), .format = o.b.format},
                  .c = in_memory("c", o.c),
                  .d = in_memory("d", o.d),
                  .scale_a = in_memory("scale-a", o.scale_a),
                  .scale_b = in_memory("scale-b", o.scale_b),
                  .meta = in_memory("meta", o.meta),
                  .meta_layout = o.meta_layout,
                  .shape = o.shape,
                  .by_columns = o.b_by_columns || o.shape == ProductShape::dots,
                  .seed = o.seed,
                  .option = ""});
}

void check_meta_layout(const ProductFiles& files) {
  meta_layout_of(files.meta_layout);
  if (!files.meta_layout.empty() && files.meta.empty())
    throw usage_error("--meta-layout: expected together with --meta");
}

Array read_result(const Product& p, const std::string& path) {
  Source source{.name = path};
  Array array = read_in_type(*p.unit, p.unit->d_format(), source, "which gives");
  if (array.elements() == 1 && p.d.elements() == 1) array.shape = p.d.shape;
  require_shape(path, array.shape, p.d.shape, "the shape of D");
  return array;
}

void require_results(const Product& p, const Array& results, const std::string& name) {
  require_type(name, results.type, {p.d.type}, "results");
  require_shape(name, results.shape, p.d.shape, "the shape of D");
}

void write_result(const Product& p, const std::string& path, const std::string& flags) {
  const Unit& unit = *p.unit;
  OutputFiles files;
  const Format* format = unit.d_format() != nullptr ? unit.d_format() : narrow_integer(unit);
  if (format == nullptr || whole_halves(unit) || format->name == "float32" ||
      format->name == "float64") {
    files.add_array("values", path, p.d.type, p.d.shape, p.d.data.data());
  } else {
    Sidecar about;
    about.numemu = NUMEMU_VERSION;
    const UnitDescription* u = unit.description();
    about.rounding = to_string(unit::result_register(*u).rounding);
    about.overflow = to_string(unit::result_register(*u).overflow);
    if (u->accumulator.rounding.stochastic()) about.seed = p.gemm.seed;
    files.add_codes("codes", path, *format, p.d.shape, p.d.data.data(), about);
  }
  if (!flags.empty())
    files.add_array("flags", flags, p.flags.type, p.flags.shape, p.flags.data.data());
  files.publish();
}

}  // namespace numemu::api
