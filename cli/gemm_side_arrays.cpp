#include "cli/gemm_side_arrays.hpp"

#include <fmt/format.h>

#include <utility>

#include "emu/unit/sparse/kept_index.hpp"
#include "emu/unit/sparse/ptx.hpp"
#include "formats/codec.hpp"
#include "formats/error.hpp"
#include "formats/storage/codes_file.hpp"
#include "formats/storage/npy.hpp"

namespace numemu::cli {

using unit::Unit;
using unit::UnitDescription;

namespace {

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

Array read_scales(const Unit& unit, StoredArray& stored, const ArrayShape& expected,
                  const std::string& why, std::int64_t& nans) {
  const Format& format = *unit.description()->scaling.format;
  Array array =
      read_codes(stored, {.format = &format,
                          .told_by = fmt::format("unit {}, whose scales are", unit.row().name)})
          .array;
  add_axis_of_one(array, expected);
  require_shape(stored.path(), array.shape, expected, why);
  for (std::int64_t i = 0; i < array.elements(); ++i) {
    const std::uint8_t code = array.as<std::uint8_t>()[i];
    nans += decode(format, format.is_signed ? code & 0x7fu : code).kind == Class::nan;
  }
  return array;
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

}  // namespace

unit::MetaLayout meta_layout_of(const GemmFiles& files) {
  return unit::parse_meta_layout(files.meta_layout.empty() ? "index" : files.meta_layout);
}

void check_meta_layout(const GemmFiles& files) {
  meta_layout_of(files);
  if (!files.meta_layout.empty() && files.meta.empty())
    throw Error("--meta-layout: expected together with --meta");
}

void require_shape(const std::string& path, const ArrayShape& found, const ArrayShape& expected,
                   const std::string& why) {
  if (found == expected) return;
  throw Error(fmt::format("{}: shape: expected {} ({}), found {}", path, shape_text(expected), why,
                          shape_text(found)));
}

void read_all_scales(const Unit& unit, const GemmFiles& files, StoredArray& scale_a,
                     StoredArray& scale_b, GemmArrays& arrays) {
  const UnitDescription* u = unit.description();
  const bool scaled = u != nullptr && u->scaling.block != 0;
  for (const auto& [option, path] :
       {std::pair("--scale-a", &files.scale_a), {"--scale-b", &files.scale_b}}) {
    if (scaled == !path->empty()) continue;
    throw Error(scaled
                    ? fmt::format("{}: expected scales: unit {} has one {} per {} elements", option,
                                  unit.row().name, u->scaling.format->name, u->scaling.block)
                    : fmt::format("{}: unit {} has no block scales", option, unit.row().name));
  }
  if (!scaled) return;
  unit::Gemm& g = arrays.gemm;
  const int block = u->scaling.block;
  const std::int64_t blocks = (g.k + block - 1) / block;
  const std::string why = fmt::format("one scale per {} of K = {}", block, g.k);
  const bool dots = files.shape == GemmShape::dots, by_columns = files.b_by_columns();
  const GemmSide& side = arrays.side_b;
  arrays.scale_a = read_scales(unit, scale_a, arrays.side_a.lines_of(files.shape, blocks),
                               (dots ? "N x blocks, " : "M x blocks, ") + why, arrays.nan_scales);
  const GemmSide rows{side.batched, side.products, blocks, 0};
  arrays.scale_b =
      read_scales(unit, scale_b,
                  by_columns ? side.lines_of(files.shape, blocks) : rows.lines_of(files.shape, g.n),
                  (by_columns ? "N x blocks, " : "blocks x N, ") + why, arrays.nan_scales);
  if (!by_columns) arrays.scale_b = transposed(arrays.scale_b, side.products, blocks, g.n);
  g.scale_a = arrays.scale_a.as<std::uint8_t>();
  g.scale_b = arrays.scale_b.as<std::uint8_t>();
}

void read_meta(const Unit& unit, const GemmFiles& files, GemmArrays& arrays) {
  const UnitDescription* u = unit.description();
  const bool sparse = u != nullptr && !u->sparsity.dense();
  if (sparse == files.meta.empty())
    throw Error(sparse ? fmt::format("--meta: expected the metadata of unit {}", unit.row().name)
                       : fmt::format("--meta: unit {} is dense", unit.row().name));
  if (!sparse) return;
  const unit::Pattern pattern = pattern_of(*u);
  unit::Gemm& g = arrays.gemm;
  const std::int64_t kept = unit::kept_depth(pattern, g.k);
  Array meta = read_npy(files.meta);
  const auto layout = meta_layout_of(files);
  const std::int64_t rows = arrays.side_a.products * g.m;
  const bool words = layout == unit::MetaLayout::ptx && meta.type == ArrayType::uint32;
  if (meta.type != ArrayType::uint8 && !words)
    throw Error(fmt::format("{}: dtype: expected uint8{}, found {}", files.meta,
                            layout == unit::MetaLayout::ptx ? " or uint32" : "",
                            to_string(meta.type)));
  try {
    if (layout == unit::MetaLayout::index) {
      const ArrayShape expected = arrays.side_a.lines_of(files.shape, kept);
      add_axis_of_one(meta, expected);
      require_shape(files.meta, meta.shape, expected, "an index per kept element");
      unit::check_index(pattern, meta.as<std::uint8_t>(), rows, g.k);
      arrays.kept = std::move(meta);
    } else {
      const std::int64_t per_row = words ? unit::ptx_words_per_row<std::uint32_t>(pattern, g.k)
                                         : unit::ptx_words_per_row<std::uint8_t>(pattern, g.k);
      require_shape(files.meta, meta.shape, arrays.side_a.lines_of(files.shape, per_row),
                    "4 bits per group, rows start a word");
      arrays.kept = Array(ArrayType::uint8, {rows, kept});
      auto* index = arrays.kept.as<std::uint8_t>();
      if (words) {
        unit::decode_ptx(pattern, meta.as<std::uint32_t>(), rows, g.k, index);
      } else {
        unit::decode_ptx(pattern, meta.as<std::uint8_t>(), rows, g.k, index);
      }
    }
  } catch (const Error& error) {
    const std::string text = error.what();
    throw Error(text.starts_with(files.meta) ? text : files.meta + ": " + text);
  }
  g.kept = arrays.kept.as<std::uint8_t>();
}

}  // namespace numemu::cli
