// The arrays of a kernel: every output of its products, held against the unit's.
#include <fmt/format.h>

#include <cstring>
#include <utility>

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

/// Outputs of products as records, built where one is needed.
class ProductRecords {
 public:
  ProductRecords(const oracle::Subject& subject, const GemmArrays& arrays, const Array& given)
      : subject_(subject), layout_(oracle::layout_of(subject)), arrays_(arrays), given_(given) {}

  void append(std::int64_t output, Records& to) const {
    Records one(layout_, 1);
    for (std::size_t f = 0; f < layout_.size(); ++f) {
      for (std::int64_t e = 0; e < layout_[f].count; ++e)
        one.columns[f][static_cast<std::size_t>(e)] = code(layout_[f], output, e);
    }
    oracle::append_record(layout_, one, 0, to);
  }

 private:
  std::uint64_t code(const oracle::Field& field, std::int64_t output, std::int64_t e) const {
    const unit::Batch& batch = arrays_.batch;
    const unit::Gemm& g = batch.first;
    const auto [product, i, j] = place_of(output, batch);
    const std::int64_t row = (batch.a_stride == 0 ? 0 : product * g.m) + i;
    const std::int64_t column = (batch.b_stride == 0 ? 0 : product * g.n) + j;
    const unit::UnitDescription& u = *subject_.unit->description();
    if (field.name == "a")
      return load_code(*g.a.format, g.a.codes, product * batch.a_stride + place(*g.a.gather, i, e));
    if (field.name == "b")
      return load_code(*g.b.format, g.b.codes, product * batch.b_stride + place(*g.b.gather, j, e));
    if (field.name == "sa") return g.scale_a[row * field.count + e];
    if (field.name == "sb") return g.scale_b[column * field.count + e];
    if (field.name == "e") return g.kept[row * field.count + e];
    if (field.name == "d") return result_code(subject_.unit->d_format(), given_, output);
    if (field.name == "c")
      return g.c == nullptr ? 0
                            : result_code(subject_.unit->c_format(), arrays_.c,
                                          batch.c_shared ? i * g.n + j : output);
    if (field.name == "r")
      return unit::Draw{g.seed, g.tensor, output}.at(e, u.accumulator.rounding.random_bits);
    return 0;
  }

  const oracle::Subject& subject_;
  const oracle::Layout layout_;
  const GemmArrays& arrays_;
  const Array& given_;
};

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
  const Array given = read_gemm_result(unit, o.d, arrays.d);
  unit::multiply_batch(unit, arrays.batch);

  const oracle::Subject subject = oracle::unit_subject(unit, g.k, g.a.format, g.b.format);
  Verified verified{oracle::Verifier(subject, compared_by(o)), o.d, owner};
  const ProductRecords records(subject, arrays, given);
  constexpr std::int64_t kPiece = std::int64_t{1} << 16;
  const std::int64_t outputs = arrays.batch.outputs();
  if (outputs == 0) throw Error(o.d + ": expected results, found none");
  for (std::int64_t first = 0; verified.complete && first < outputs; first += kPiece) {
    oracle::Checked piece;
    for (std::int64_t i = first; i < std::min(first + kPiece, outputs); ++i) {
      piece.want.push_back(result_code(unit.d_format(), arrays.d, i));
      piece.compared.push_back(verified.verifier.comparer().compare(
          piece.want.back(), result_code(unit.d_format(), given, i)));
    }
    piece.append = [&](std::int64_t i, Records& to) { records.append(first + i, to); };
    verified.complete = verified.verifier.take(piece);
  }
  return verified;
}

}  // namespace numemu::cli
