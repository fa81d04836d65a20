// Policy table kmeans: a float16 codebook for every row of a table, or for every cluster of rows
// (Guan et al., "Post-training 4-bit quantization on embedding tables", 2019).
#include <algorithm>
#include <bit>
#include <cmath>

#include "emu/net/ops/elementwise.hpp"
#include "formats/portable/math.hpp"
#include "policies/table/base/row_codebook.hpp"
#include "policies/table/base/table_rule.hpp"

namespace numemu::policies {
namespace {

constexpr double kEntryBits = 16;

struct KmeansOptions final : TableRule {
  std::int64_t bits = 4, clusters = 0, iterations = kLloydIterations;

  std::vector<Option> list() override {
    return {{"bits", "of a code", &bits, 1, 8},
            {"clusters", "of rows that share a codebook; 0: every row has its own", &clusters, 0,
             65536},
            {"iterations", "of Lloyd's algorithm, at most", &iterations, 0, 65536}};
  }

  net::Tensor quantized(const net::Tensor& table) const override {
    net::Tensor values = table;
    const std::int64_t width = table.dim(-1);
    if (table.size() == 0) return values;
    const std::int64_t rows = table.size() / width;
    std::vector<std::vector<std::int64_t>> groups;
    if (clusters == 0) {
      for (std::int64_t r = 0; r < rows; ++r) groups.push_back({r});
    } else {
      const std::vector<std::int64_t> of = cluster_rows(table.data, width, clusters, iterations);
      groups.resize(static_cast<std::size_t>(clusters));
      for (std::int64_t r = 0; r < rows; ++r) groups[of[r]].push_back(r);
    }
    const auto count = static_cast<std::int64_t>(groups.size());
    net::for_each_row(count, table.size() / count, [&](std::int64_t g) {
      std::vector<float> elements;
      for (const std::int64_t r : groups[g]) {
        const auto first = table.data.begin() + r * width;
        elements.insert(elements.end(), first, first + width);
      }
      const std::vector<float> book = lloyd_codebook(elements, static_cast<int>(bits), iterations);
      for (const std::int64_t r : groups[g]) {
        for (std::int64_t c = 0; c < width; ++c)
          values.data[r * width + c] = nearest_entry(book, table.data[r * width + c]);
      }
    });
    return values;
  }

  double stored_bits(const net::Shape& shape) const override {
    const auto n = static_cast<double>(net::element_count(shape));
    if (n == 0) return 0;
    const double rows = n / static_cast<double>(shape.back());
    const double books = clusters == 0 ? rows : static_cast<double>(clusters);
    const double number = clusters == 0 ? 0 : portable::log2(static_cast<double>(clusters));
    return n * static_cast<double>(bits) + rows * number + books * std::ldexp(kEntryBits, bits);
  }
};

}  // namespace

extern const PolicyKind table_kmeans{
    .key = "table",
    .name = "kmeans",
    .summary = "tables become codes of float16 codebooks, one for each row or cluster of rows",
    .source = "Guan et al., 2019 (arXiv 1911.02079)",
    .options = make_options<KmeansOptions>,
    .bind = make_table_policy};

}  // namespace numemu::policies
