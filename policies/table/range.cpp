// Policy table range: uniform codes with a float16 scale and bias for every row of a table, or for
// the whole (Guan et al., "Post-training 4-bit quantization on embedding tables", 2019).
#include "emu/net/ops/elementwise.hpp"
#include "policies/table/base/row_range.hpp"
#include "policies/table/base/table_rule.hpp"

namespace numemu::policies {
namespace {

constexpr double kParameterBits = 32;  // a scale and a bias

struct RangeOptions final : TableRule {
  std::string range = "asymmetric", of = "row";
  std::int64_t bits = 4;
  GreedySearch search;

  std::vector<Option> list() override {
    return {{"range",
             "the ends of the codes: asymmetric: [min, max]; symmetric: both at the largest "
             "magnitude; greedy: [min, max] cut step by step where that lessens the squared error",
             &range,
             0,
             0,
             {"asymmetric", "symmetric", "greedy"}},
            {"bits", "of a code", &bits, 1, 8},
            {"of", "what has a range of its own", &of, 0, 0, {"row", "table"}},
            {"bins", "greedy: steps of max - min", &search.bins, 1, 65536},
            {"share", "greedy: part of the range that may be cut off", &search.share, 0, 1},
            {"best_seen",
             "greedy: the best range tried; else the best local optimum, and [min, max] where the "
             "search meets none",
             &search.best_seen}};
  }

  RowRange range_of(std::span<const float> x) const {
    if (range == "symmetric") return symmetric_range(x);
    if (range == "greedy") return greedy_range(x, static_cast<int>(bits), search);
    return asymmetric_range(x);
  }

  net::Tensor quantized(const net::Tensor& table) const override {
    net::Tensor values = table;
    const std::int64_t width = of == "row" ? table.dim(-1) : table.size();
    if (width == 0) return values;
    net::for_each_row(table.size() / width, width, [&](std::int64_t r) {
      const std::span<float> row(values.data.data() + r * width, static_cast<std::size_t>(width));
      const RowCodes codes(range_of(row), static_cast<int>(bits));
      for (float& x : row) x = codes.value(codes.code(x));
    });
    return values;
  }

  double stored_bits(const net::Shape& shape) const override {
    const auto n = static_cast<double>(net::element_count(shape));
    const double ranges = of == "table" || shape.empty() || shape.back() == 0
                              ? 1
                              : n / static_cast<double>(shape.back());
    return n * static_cast<double>(bits) + ranges * kParameterBits;
  }
};

}  // namespace

extern const PolicyKind table_range{
    .key = "table",
    .name = "range",
    .summary = "tables become uniform codes with a float16 scale and bias for each row",
    .source = "Guan et al., 2019 (arXiv 1911.02079)",
    .options = make_options<RangeOptions>,
    .bind = make_table_policy};

}  // namespace numemu::policies
