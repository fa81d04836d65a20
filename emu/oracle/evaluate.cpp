#include "emu/oracle/evaluate.hpp"

#include <cstring>

#include "emu/oracle/exact_sum.hpp"
#include "emu/unit/reference/dot.hpp"
#include "emu/unit/reference/register.hpp"
#include "emu/unit/sparse/kept_index.hpp"
#include "formats/codec.hpp"
#include "formats/containers.hpp"

namespace numemu::oracle {
namespace {

using Column = std::vector<std::uint64_t>;

/// The record's codes of one field, in containers as units read them.
class Container {
 public:
  Container(const Records& records, const Layout& layout, std::string_view name)
      : field_(find_field(layout, name)) {
    if (field_ < 0) return;
    const Field& field = layout[static_cast<std::size_t>(field_)];
    column_ = &records.columns[static_cast<std::size_t>(field_)];
    count_ = field.count;
    format_ = field.format;
    bytes_ = format_ != nullptr ? container_bytes(*format_)
             : field.bits <= 8  ? 1
             : field.bits <= 16 ? 2
                                : 4;
    data_.resize(static_cast<std::size_t>(count_));
  }
  /// nullptr where the layout has no such field.
  const void* of(std::int64_t record) {
    if (field_ < 0) return nullptr;
    auto* at = reinterpret_cast<std::uint8_t*>(data_.data());
    for (std::int64_t e = 0; e < count_; ++e) {
      const std::uint64_t code = (*column_)[static_cast<std::size_t>(record * count_ + e)];
      if (format_ != nullptr) {
        store_code(*format_, at, e, code);
      } else {
        std::memcpy(at + e * bytes_, &code, static_cast<std::size_t>(bytes_));
      }
    }
    return at;
  }

 private:
  int field_;
  const Column* column_ = nullptr;
  std::int64_t count_ = 0;
  int bytes_ = 1;
  const Format* format_ = nullptr;
  Column data_;  // aligned for any container
};

void evaluate_unit(const Subject& s, const Layout& layout, Records& records) {
  const unit::UnitDescription& u = *s.unit->description();
  Container a(records, layout, "a"), b(records, layout, "b"), c(records, layout, "c"),
      sa(records, layout, "sa"), sb(records, layout, "sb"), e(records, layout, "e");
  const std::int64_t products = layout[0].count;
  const unit::Gather a_row = unit::Gather::matrix(1, products),
                     b_row = unit::Gather::matrix(1, s.k);
  const int random = find_field(layout, "r");
  std::vector<std::uint32_t> words(static_cast<std::size_t>(random_words(s)));
  Column& d = records.columns[static_cast<std::size_t>(find_field(layout, "d"))];
  for (std::int64_t i = 0; i < records.size; ++i) {
    unit::Gemm g{1, 1, s.k, {s.a, a.of(i), &a_row}, {s.b, b.of(i), &b_row}, c.of(i)};
    g.scale_a = static_cast<const std::uint8_t*>(sa.of(i));
    g.scale_b = static_cast<const std::uint8_t*>(sb.of(i));
    g.kept = static_cast<const std::uint8_t*>(e.of(i));
    if (g.kept != nullptr) unit::check_index({u.sparsity}, g.kept, 1, s.k, i);
    for (std::size_t w = 0; w < words.size(); ++w) {
      words[w] = static_cast<std::uint32_t>(records.columns[static_cast<std::size_t>(
          random)][static_cast<std::size_t>(i) * words.size() + w]);
    }
    d[static_cast<std::size_t>(i)] = unit::ReferenceDot(u, g).code(0, 0, nullptr, words);
  }
}

}  // namespace

void evaluate(const Subject& s, Records& records) {
  const Layout layout = layout_of(s);
  if (s.operation == Operation::unit) return evaluate_unit(s, layout, records);
  ExactSum sum(s, layout);
  const int random = find_field(layout, "random");
  Column& out = records.columns[static_cast<std::size_t>(find_field(layout, "out"))];
  Column& flags = records.columns[static_cast<std::size_t>(find_field(layout, "flags"))];
  for (std::int64_t i = 0; i < records.size; ++i) {
    const ExactSum::Result exact = sum.of(records, i);
    const std::uint64_t word = random < 0 ? 0 : records.code(random, i);
    const Encoded encoded =
        encode(*s.to, exact.value, s.rounding, s.overflow, static_cast<std::uint32_t>(word));
    out[static_cast<std::size_t>(i)] = encoded.code;
    flags[static_cast<std::size_t>(i)] = encoded.flags | (exact.invalid ? kInvalid : 0);
  }
}

Value exact_result(const Subject& s, const Records& records, std::int64_t i) {
  return ExactSum(s, layout_of(s)).of(records, i).value;
}

}  // namespace numemu::oracle
