// The arrays of a kernel: every output of its products, held against the unit's.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "cli/product.hpp"
#include "cli/verify_input.hpp"
#include "emu/oracle/layout.hpp"
#include "emu/unit/reference/step.hpp"
#include "formats/containers.hpp"
#include "formats/error.hpp"

namespace numemu::cli {
namespace {

using oracle::Records;

/// Codes of C or D in the containers that units use.
std::uint64_t result_code(const Format* format, const Array& array, std::int64_t i) {
  if (format != nullptr) return load_code(*format, array.data.data(), i);
  std::uint64_t code = 0;  // the lowest bytes of a little-endian integer
  const auto bytes = static_cast<std::size_t>(bytes_of(array.type));
  std::memcpy(&code, array.data.data() + i * static_cast<std::int64_t>(bytes), bytes);
  return code;
}

/// Of element e of a row of A or a column of B.
std::int64_t place(const unit::Gather& gather, std::int64_t line, std::int64_t e) {
  return std::int64_t{gather.row[static_cast<std::size_t>(line)]} +
         gather.depth[static_cast<std::size_t>(e)];
}

/// A place in which arrays may be read or written by mistake.
struct Arrangement {
  std::string name;
  std::optional<unit::Gather> a, b;      ///< how A or B is read
  std::function<Place(Place)> c = {};    ///< which element of C counts
  std::function<Place(Place)> all = {};  ///< which output stands there
};

/// Outputs of products as records, built where one is needed.
class ProductRecords {
 public:
  ProductRecords(const oracle::Subject& subject, std::shared_ptr<const GemmArrays> arrays,
                 std::shared_ptr<const Array> given)
      : subject_(subject),
        layout_(oracle::layout_of(subject)),
        arrays_(std::move(arrays)),
        given_(std::move(given)) {}

  void append(std::int64_t output, Records& to) const {
    Records one(layout_, 1);
    write(output, {}, one, 0, true);
    oracle::append_record(layout_, one, 0, to);
  }

  /// The inputs of outputs under another arrangement.
  void rearrange(const Arrangement& other, const std::vector<std::int64_t>& outputs,
                 Records& to) const {
    for (std::size_t i = 0; i < outputs.size(); ++i)
      write(outputs[i], other, to, static_cast<std::int64_t>(i), false);
  }

  const oracle::Layout& layout() const { return layout_; }

 private:
  void write(std::int64_t output, const Arrangement& how, Records& to, std::int64_t i,
             bool results) const {
    for (std::size_t f = 0; f < layout_.size(); ++f) {
      if (layout_[f].result && !results) continue;
      for (std::int64_t e = 0; e < layout_[f].count; ++e)
        to.columns[f][static_cast<std::size_t>(i * layout_[f].count + e)] =
            code(layout_[f], output, e, how);
    }
  }

  std::uint64_t code(const oracle::Field& field, std::int64_t output, std::int64_t e,
                     const Arrangement& how) const {
    const unit::Batch& batch = arrays_->batch;
    const unit::Gemm& g = batch.first;
    if (field.name == "d") return result_code(subject_.unit->d_format(), *given_, output);
    Place here = place_of(output, batch);
    if (how.all) here = how.all(here);
    const auto [product, i, j] = here;
    const std::int64_t row = (batch.a_stride == 0 ? 0 : product * g.m) + i;
    const std::int64_t column = (batch.b_stride == 0 ? 0 : product * g.n) + j;
    const unit::UnitDescription& u = *subject_.unit->description();
    if (field.name == "a")
      return load_code(*g.a.format, g.a.codes,
                       product * batch.a_stride + place(how.a ? *how.a : *g.a.gather, i, e));
    if (field.name == "b")
      return load_code(*g.b.format, g.b.codes,
                       product * batch.b_stride + place(how.b ? *how.b : *g.b.gather, j, e));
    if (field.name == "sa") return g.scale_a[row * field.count + e];
    if (field.name == "sb") return g.scale_b[column * field.count + e];
    if (field.name == "e") return g.kept[row * field.count + e];
    if (field.name == "c") {
      if (g.c == nullptr) return 0;
      const Place of_c = how.c ? how.c(here) : here;
      return result_code(subject_.unit->c_format(), arrays_->c,
                         batch.c_shared ? of_c.i * g.n + of_c.j : output_of(of_c, batch));
    }
    if (field.name == "r")
      return unit::Draw{g.seed, g.tensor, output_of(here, batch)}.at(
          e, u.accumulator.rounding.random_bits);
    return 0;
  }

  const oracle::Subject subject_;
  const oracle::Layout layout_;
  const std::shared_ptr<const GemmArrays> arrays_;
  const std::shared_ptr<const Array> given_;
};

/// Arrays of the other order in memory, and rows and columns in another place.
std::vector<Arrangement> arrangements(const unit::Gemm& g, std::int64_t depth_a) {
  const std::int64_t m = g.m, n = g.n, k = g.k;
  if (m * n == 1) return {};
  const auto transposed = [m, n](Place p) {
    const std::int64_t at = p.i * n + p.j;
    return Place{p.product, at % m, at / m};
  };
  const bool nk = *g.b.gather == unit::Gather::matrix(n, k);
  return {{.name = "A is transposed", .a = unit::Gather::matrix(m, depth_a, true), .b = {}},
          {.name = "B is transposed", .a = {}, .b = unit::Gather::matrix(n, k, nk)},
          {.name = "A and B are transposed",
           .a = unit::Gather::matrix(m, depth_a, true),
           .b = unit::Gather::matrix(n, k, nk)},
          {.name = "C is transposed",
           .a = {},
           .b = {},
           .c =
               [m, n](Place p) {
                 const std::int64_t at = p.j * m + p.i;
                 return Place{p.product, at / n, at % n};
               }},
          {.name = "D is transposed", .a = {}, .b = {}, .all = transposed},
          {.name = "rows of D one too late",
           .a = {},
           .b = {},
           .all =
               [m](Place p) {
                 return Place{p.product, (p.i + m - 1) % m, p.j};
               }},
          {.name = "rows of D one too early",
           .a = {},
           .b = {},
           .all =
               [m](Place p) {
                 return Place{p.product, (p.i + 1) % m, p.j};
               }},
          {.name = "rows of D in reverse order",
           .a = {},
           .b = {},
           .all =
               [m](Place p) {
                 return Place{p.product, m - 1 - p.i, p.j};
               }},
          {.name = "columns of D one too late",
           .a = {},
           .b = {},
           .all =
               [n](Place p) {
                 return Place{p.product, p.i, (p.j + n - 1) % n};
               }},
          {.name = "columns of D one too early",
           .a = {},
           .b = {},
           .all =
               [n](Place p) {
                 return Place{p.product, p.i, (p.j + 1) % n};
               }},
          {.name = "columns of D in reverse order", .a = {}, .b = {}, .all = [n](Place p) {
             return Place{p.product, p.i, n - 1 - p.j};
           }}};
}

}  // namespace

Verified verify_arrays(const VerifyOptions& o) {
  const unit::Unit& unit = unit_named(o.unit);
  const auto owner = std::make_shared<GemmArrays>();
  GemmArrays& arrays = *owner;
  GemmFiles files = o.arrays;
  files.shape = o.dots ? GemmShape::dots : GemmShape::batches;
  read_gemm(unit, files, arrays);
  unit::Gemm& g = arrays.gemm;
  g.seed = o.seed;
  const auto given = std::make_shared<const Array>(read_gemm_result(unit, o.d, arrays.d));
  unit::multiply_batch(unit, arrays.batch);

  const oracle::Subject subject = oracle::unit_subject(unit, g.k, g.a.format, g.b.format);
  Verified verified{oracle::Verifier(subject, compared_by(o)), o.d, owner};
  const auto records = std::make_shared<const ProductRecords>(subject, owner, given);
  constexpr std::int64_t kPiece = std::int64_t{1} << 16;
  const std::int64_t outputs = arrays.batch.outputs();
  if (outputs == 0) throw Error(o.d + ": expected results, found none");
  for (std::int64_t first = 0; verified.complete && first < outputs; first += kPiece) {
    oracle::Checked piece;
    for (std::int64_t i = first; i < std::min(first + kPiece, outputs); ++i) {
      piece.want.push_back(result_code(unit.d_format(), arrays.d, i));
      piece.compared.push_back(verified.verifier.comparer().compare(
          piece.want.back(), result_code(unit.d_format(), *given, i)));
    }
    piece.append = [&](std::int64_t i, Records& to) { records->append(first + i, to); };
    verified.complete = verified.verifier.take(piece);
  }
  for (Arrangement& other : arrangements(arrays.batch.first, records->layout().front().count))
    verified.rules.push_back(
        {.family = "layout",
         .name = other.name,
         .inputs = [records, other](Records& to, const oracle::Sample& sample) {
           records->rearrange(other, sample.number, to);
         }});
  return verified;
}

}  // namespace numemu::cli
