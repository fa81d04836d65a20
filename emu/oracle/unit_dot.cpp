#include "emu/oracle/unit_dot.hpp"

#include <cstring>

#include "emu/unit/batch.hpp"
#include "emu/unit/sparse/kept_index.hpp"
#include "formats/containers.hpp"

namespace numemu::oracle {

UnitDot::Container UnitDot::container(const Layout& layout, std::string_view name) {
  Container c;
  c.field = find_field(layout, name);
  if (c.field < 0) return c;
  const Field& field = layout[static_cast<std::size_t>(c.field)];
  c.format = field.format;
  // Of what has no format.
  c.bytes = field.bits <= 8 ? 1 : field.bits <= 16 ? 2 : field.bits <= 32 ? 4 : 8;
  c.count = field.count;
  return c;
}

const void* UnitDot::Container::of(const Records& records, std::int64_t i, std::int64_t n) {
  if (field < 0) return nullptr;
  data.resize(static_cast<std::size_t>(n * count));
  auto* at = reinterpret_cast<std::uint8_t*>(data.data());
  const std::uint64_t* codes = records.columns[static_cast<std::size_t>(field)].data() + i * count;
  for (std::int64_t e = 0; e < n * count; ++e) {
    if (format != nullptr) {
      store_code(*format, at, e, codes[e]);
    } else {
      std::memcpy(at + e * bytes, codes + e, static_cast<std::size_t>(bytes));
    }
  }
  return at;
}

UnitDot::UnitDot(const Subject& s, const Layout& layout, const unit::UnitDescription* description)
    : subject_(s),
      description_(description != nullptr ? description : s.unit->description()),
      a_(container(layout, "a")),
      b_(container(layout, "b")),
      c_(container(layout, "c")),
      scale_a_(container(layout, "sa")),
      scale_b_(container(layout, "sb")),
      kept_(container(layout, "e")),
      d_(container(layout, "d")),
      random_(find_field(layout, "r")),
      a_row_(unit::Gather::matrix(1, a_.count)),
      b_row_(unit::Gather::matrix(1, s.k)),
      words_(static_cast<std::size_t>(random_words(s))) {}

unit::Gemm UnitDot::gemm(const Records& records, std::int64_t i, std::int64_t n) {
  unit::Gemm g = {1, 1, subject_.k, {}, {}, c_.of(records, i, n)};
  g.a = {subject_.a, a_.of(records, i, n), &a_row_};
  g.b = {subject_.b, b_.of(records, i, n), &b_row_};
  g.scale_a = static_cast<const std::uint8_t*>(scale_a_.of(records, i, n));
  g.scale_b = static_cast<const std::uint8_t*>(scale_b_.of(records, i, n));
  g.kept = static_cast<const std::uint8_t*>(kept_.of(records, i, n));
  return g;
}

const unit::Gemm& UnitDot::gemm(const Records& records, std::int64_t i) {
  gemm_ = gemm(records, i, 1);
  if (gemm_.kept != nullptr) unit::check_index({description_->sparsity}, gemm_.kept, 1, subject_.k);
  const auto first = static_cast<std::int64_t>(words_.size()) * i;
  for (std::size_t w = 0; w < words_.size(); ++w) {
    const std::uint64_t word = records.code(random_, first + static_cast<std::int64_t>(w));
    words_[w] = static_cast<std::uint32_t>(word);
  }
  return gemm_;
}

void UnitDot::multiply(Records& records, Path path) {
  std::vector<std::uint64_t>& codes = records.columns[static_cast<std::size_t>(d_.field)];
  std::vector<std::uint8_t> d(codes.size() * static_cast<std::size_t>(d_.bytes));
  unit::Batch all;
  all.first = gemm(records, 0, records.size);
  all.first.d = d.data();
  all.count = records.size;
  all.a_stride = a_.count;
  all.b_stride = b_.count;
  path == Path::fast ? unit::multiply_batch(*subject_.unit, all)
                     : unit::multiply_batch_reference(*subject_.unit, all);
  for (std::size_t i = 0; i < codes.size(); ++i) {
    codes[i] = 0;
    std::memcpy(&codes[i], d.data() + i * static_cast<std::size_t>(d_.bytes),
                static_cast<std::size_t>(d_.bytes));
  }
}

unit::Outcome UnitDot::outcome(const Records& records, std::int64_t i,
                               const unit::ShortEnds* ends) {
  return unit::ReferenceDot(*description_, gemm(records, i))
      .outcome(0, 0, 0, 0, nullptr, words_, ends);
}

}  // namespace numemu::oracle
