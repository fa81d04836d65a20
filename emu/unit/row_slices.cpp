#include "emu/unit/row_slices.hpp"

#include <algorithm>

#include "emu/unit/description/fields.hpp"
#include "emu/unit/operand.hpp"
#include "emu/unit/reference/register.hpp"
#include "formats/containers.hpp"

namespace numemu::unit {
namespace {

const std::byte* moved(const void* array, std::int64_t elements, int bytes) {
  return static_cast<const std::byte*>(array) + elements * bytes;
}

/// The gather of rows [begin, end), which must read nothing before `base`, nor `limit` elements
/// from there or more; false where they do.
bool read_from(const Gather& whole, std::int64_t begin, std::int64_t end, std::int64_t base,
               std::int64_t limit, std::int64_t reach, Gather& out) {
  out.row.clear();
  for (std::int64_t r = begin; r < end; ++r) {
    const std::int64_t offset = whole.row[static_cast<std::size_t>(r)] - base;
    if (offset < 0 || offset + reach >= limit) return false;
    out.row.push_back(static_cast<std::int32_t>(offset));
  }
  out.depth = whole.depth;
  return true;
}

}  // namespace

std::vector<RowSlice> slice_rows(const Operand& a, std::int64_t rows) {
  const Gather& gather = *a.gather;
  const Padding& padding = gather.padding;
  if (rows == 0 || gather.depth.empty() || a.prepared != nullptr) return {};
  const bool padded = !padding.identity();
  if (!padded && a.format->bits == 32) return {};
  const std::int64_t reach = *std::ranges::max_element(gather.depth);
  const std::int64_t size =
      padded ? padding.padded_size() : *std::ranges::max_element(gather.row) + reach + 1;
  if (size < 2 * kSliceElements) return {};
  std::vector<RowSlice> slices;
  if (!padded) {
    const std::int64_t count = (size + kSliceElements - 1) / kSliceElements;
    const std::int64_t each = (rows + count - 1) / count;
    for (std::int64_t r = 0; r < rows; r += each) {
      RowSlice& slice = slices.emplace_back();
      slice.begin = r;
      slice.end = std::min(rows, r + each);
      slice.first = gather.row[static_cast<std::size_t>(r)];
      if (!read_from(gather, slice.begin, slice.end, slice.first, kSliceElements * 3 / 2, reach,
                     slice.gather))
        return {};
    }
    return slices;
  }
  // Whole images: the border of each is its own.
  const std::int64_t images = padding.outer, image = padding.padded_size() / images;
  if (images < 2 || rows % images != 0) return {};
  const std::int64_t each = std::max<std::int64_t>(1, kSliceElements / image);
  for (std::int64_t i = 0; i < images; i += each) {
    const std::int64_t end = std::min(images, i + each);
    RowSlice& slice = slices.emplace_back();
    slice.begin = rows / images * i;
    slice.end = rows / images * end;
    slice.first = padding.source_size() / images * i;
    slice.gather.padding = padding;
    slice.gather.padding.outer = end - i;
    if (!read_from(gather, slice.begin, slice.end, image * i, image * (end - i), reach,
                   slice.gather))
      return {};
  }
  return slices;
}

Gemm gemm_of(const UnitDescription& unit, const Gemm& whole, const RowSlice& slice) {
  Gemm g = whole;
  g.m = slice.end - slice.begin;
  g.a.codes = moved(whole.a.codes, slice.first, container_bytes(*whole.a.format));
  g.a.gather = &slice.gather;
  const int c_bytes = bytes_of(c_format(unit), unit.accumulator);
  const int d_bytes = bytes_of(result_format(unit), result_register(unit));
  if (whole.c != nullptr) g.c = moved(whole.c, slice.begin * whole.n, c_bytes);
  g.d = const_cast<std::byte*>(moved(whole.d, slice.begin * whole.n, d_bytes));
  return g;
}

}  // namespace numemu::unit
