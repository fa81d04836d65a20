#include "bindings/c/columns.hpp"

#include <algorithm>
#include <exception>
#include <limits>
#include <vector>

#include "bindings/c/call.hpp"

namespace numemu::c {

void require_columns(const oracle::Layout& layout, Columns columns, std::int64_t n) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() / sizeof(std::uint64_t);
  std::int64_t most = 1;
  for (const oracle::Field& field : layout) most = std::max(most, field.count);
  require_within("n", n, 0, kMost / most);
  if (n != 0) required(columns, "columns");
}

oracle::Records records_of(const oracle::Layout& layout, Columns columns, std::int64_t first,
                           std::int64_t n, bool results) {
  oracle::Records records(layout, n);
  if (n == 0) return records;  // columns may be NULL
  for (std::size_t f = 0; f < layout.size(); ++f) {
    if (columns[f] == nullptr || (layout[f].result && !results)) continue;
    const std::int64_t count = layout[f].count;
    std::copy_n(columns[f] + first * count, n * count, records.columns[f].begin());
  }
  return records;
}

void give_records(const oracle::Layout& layout, const oracle::Records& records, std::int64_t first,
                  Columns columns, bool inputs) {
  if (records.size == 0) return;
  for (std::size_t f = 0; f < layout.size(); ++f) {
    if (columns[f] == nullptr || (!layout[f].result && !inputs)) continue;
    std::copy(records.columns[f].begin(), records.columns[f].end(),
              columns[f] + first * layout[f].count);
  }
}

void in_pieces(const oracle::Layout& layout, std::int64_t n,
               const std::function<void(std::int64_t first, std::int64_t n)>& body) {
  constexpr std::int64_t kCodes = 1 << 14, kLeast = 16;
  std::int64_t codes = 0;
  for (const oracle::Field& field : layout) codes += field.count;
  const std::int64_t piece = std::max(kCodes / codes, kLeast);
  if (n <= piece) {
    if (n > 0) body(0, n);
    return;
  }
  const std::int64_t pieces = (n + piece - 1) / piece;
  std::int64_t failed = pieces;
  std::exception_ptr error;
#pragma omp parallel for schedule(dynamic)
  for (std::int64_t p = 0; p < pieces; ++p) {
    try {
      body(p * piece, std::min(piece, n - p * piece));
    } catch (...) {
#pragma omp critical(numemu_c_pieces)
      if (p < failed) {
        failed = p;
        error = std::current_exception();
      }
    }
  }
  if (error != nullptr) std::rethrow_exception(error);
}

}  // namespace numemu::c
