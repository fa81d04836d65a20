// A panel of some columns and rows is turned into lines, quantized and turned back while it lies in
// the first-level cache.
#include "formats/scaling/quantize_columns.hpp"

#include <algorithm>
#include <vector>

#include "formats/scaling/fast_blocks.hpp"
#include "formats/simd/philox.hpp"
#include "formats/simd/transpose.hpp"

namespace numemu {
namespace {

// 16 KiB of elements: a panel and what becomes of it stay in the first-level cache.
constexpr std::int64_t kPanelElements = 4096;
constexpr std::int64_t kCacheLine = 16;  // elements
// Rows of a panel where there are enough: one call of fill_random() per column draws many words.
constexpr std::int64_t kRows = 128;

/// How each matrix is cut: whole blocks in each panel but for the last of a column.
struct Panels {
  std::int64_t outer, length, across;
  std::int64_t rows, columns;  ///< of a panel
  std::int64_t down, beside;   ///< panels

  Panels(std::int64_t matrices, std::int64_t n, std::int64_t width, std::int64_t block)
      : outer(matrices), length(n), across(width) {
    const auto whole_blocks = [&](std::int64_t most) {
      return std::min(length, std::max(block, most / block * block));
    };
    rows = whole_blocks(kRows);
    columns = std::clamp<std::int64_t>(kPanelElements / rows, 1, across);
    if (columns < across && columns > kCacheLine) columns -= columns % kCacheLine;
    rows = std::max(rows, whole_blocks(kPanelElements / columns));
    down = (length + rows - 1) / rows;
    beside = (across + columns - 1) / columns;
  }
  std::int64_t count() const { return outer * down * beside; }
};

class PanelJob {
 public:
  PanelJob(const BlockQuantization& how, const FastBlocks& fast, const Panels& panels,
           float tensor_scale, const float* x, float* y)
      : how_(how), fast_(fast), panels_(panels), tensor_scale_(tensor_scale), x_(x), y_(y) {}

  BlockCounts run(std::int64_t panel) const {
    const Panels& p = panels_;
    const std::int64_t c0 = panel % p.beside * p.columns, c = std::min(p.columns, p.across - c0);
    const std::int64_t r0 = panel / p.beside % p.down * p.rows, r = std::min(p.rows, p.length - r0);
    const std::int64_t o = panel / (p.beside * p.down), first = (o * p.length + r0) * p.across + c0;
    alignas(64) float lines[kPanelElements], values[kPanelElements];
    alignas(64) std::uint32_t words[kPanelElements];
    simd::transpose_words(x_ + first, r, c, p.across, lines, r);
    if (how_.element.rounding.stochastic()) draw(o * p.across + c0, c, r0, r, words);
    BlockLayout layout;
    layout.outer = c;
    layout.length = r;
    layout.size = how_.format->size;
    layout.per_line = (r + layout.size - 1) / layout.size;
    layout.blocks = c * layout.per_line;
    const BlockCounts counts =
        fast_.quantize(layout, lines, tensor_scale_, 0, layout.blocks, {}, values, words);
    simd::transpose_words(values, c, r, r, y_ + first, p.across);
    return counts;
  }

 private:
  /// Random bits of `count` lines' elements [r0, r0 + r).
  void draw(std::int64_t line, std::int64_t count, std::int64_t r0, std::int64_t r,
            std::uint32_t* words) const {
    const Conversion& element = how_.element;
    for (std::int64_t i = 0; i < count; ++i, words += r) {
      const std::int64_t from = (line + i) * panels_.length + r0;
      if (element.random_words != nullptr) {
        std::copy_n(element.random_words + from, r, words);
      } else {
        simd::fill_random(element.random, element.rounding.random_bits,
                          static_cast<std::uint64_t>(from), r, words);
      }
    }
  }

  const BlockQuantization& how_;
  const FastBlocks& fast_;
  const Panels& panels_;
  float tensor_scale_;
  const float* x_;
  float* y_;
};

}  // namespace

BlockCounts quantize_columns(const BlockQuantization& how, std::int64_t outer, std::int64_t length,
                             std::int64_t across, const float* x, float* y) {
  const BlockLayout layout = block_layout(*how.format, {outer * across, length}, 1);
  BlockCounts counts{.tensor_scale = tensor_scale_of(how, x, layout.elements())};
  if (layout.elements() == 0) return counts;
  const FastBlocks fast(how);
  if (!fast.serves(layout, counts.tensor_scale))
    return quantize_columns_reference(how, outer, length, across, x, y);
  const Panels panels(outer, length, across, how.format->size);
  const PanelJob job(how, fast, panels, counts.tensor_scale, x, y);
  const std::int64_t n = panels.count();
#pragma omp parallel if (n > 4)
  {
    BlockCounts local;
#pragma omp for schedule(static) nowait
    for (std::int64_t panel = 0; panel < n; ++panel) local += job.run(panel);
#pragma omp critical(numemu_block_counts)
    counts += local;
  }
  return counts;
}

BlockCounts quantize_columns_reference(const BlockQuantization& how, std::int64_t outer,
                                       std::int64_t length, std::int64_t across, const float* x,
                                       float* y) {
  const BlockLayout layout = block_layout(*how.format, {outer * across, length}, 1);
  thread_local std::vector<float> lines, values;
  lines.resize(static_cast<std::size_t>(layout.elements()));
  values.resize(lines.size());
  transpose(x, outer, length, across, lines.data());
  const BlockCounts counts = quantize_blocks(how, layout, lines.data(), {}, values.data());
  transpose(values.data(), outer, across, length, y);
  return counts;
}

void transpose(const float* in, std::int64_t count, std::int64_t rows, std::int64_t columns,
               float* out) {
  const std::int64_t bands = (rows + kCacheLine - 1) / kCacheLine, tasks = count * bands;
#pragma omp parallel for schedule(static) if (tasks > 1 && count * rows * columns > kPanelElements)
  for (std::int64_t task = 0; task < tasks; ++task) {
    const std::int64_t matrix = task / bands * rows * columns, first = task % bands * kCacheLine;
    simd::transpose_words(in + matrix + first * columns, std::min(kCacheLine, rows - first),
                          columns, columns, out + matrix + first, rows);
  }
}

}  // namespace numemu
