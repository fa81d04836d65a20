#include "emu/oracle/unit_dot.hpp"

#include <cstring>

#include "emu/unit/sparse/kept_index.hpp"
#include "formats/containers.hpp"

namespace numemu::oracle {

UnitDot::Container UnitDot::container(const Layout& layout, std::string_view name) const {
  Container c;
  c.field = find_field(layout, name);
  if (c.field < 0) return c;
  const Field& field = layout[static_cast<std::size_t>(c.field)];
  c.format = field.format;
  c.bytes = field.bits <= 8 ? 1 : field.bits <= 16 ? 2 : 4;  // of what has no format
  c.data.resize(static_cast<std::size_t>(field.count));
  return c;
}

const void* UnitDot::Container::of(const Records& records, std::int64_t i) {
  if (field < 0) return nullptr;
  auto* at = reinterpret_cast<std::uint8_t*>(data.data());
  const auto count = static_cast<std::int64_t>(data.size());
  const std::uint64_t* codes = records.columns[static_cast<std::size_t>(field)].data() + i * count;
  for (std::int64_t e = 0; e < count; ++e) {
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
      random_(find_field(layout, "r")),
      a_row_(unit::Gather::matrix(1, static_cast<std::int64_t>(a_.data.size()))),
      b_row_(unit::Gather::matrix(1, s.k)),
      words_(static_cast<std::size_t>(random_words(s))) {}

const unit::Gemm& UnitDot::gemm(const Records& records, std::int64_t i) {
  unit::Gemm& g = gemm_;
  g = {1, 1, subject_.k, {}, {}, c_.of(records, i)};
  g.a = {subject_.a, a_.of(records, i), &a_row_};
  g.b = {subject_.b, b_.of(records, i), &b_row_};
  g.scale_a = static_cast<const std::uint8_t*>(scale_a_.of(records, i));
  g.scale_b = static_cast<const std::uint8_t*>(scale_b_.of(records, i));
  g.kept = static_cast<const std::uint8_t*>(kept_.of(records, i));
  if (g.kept != nullptr) unit::check_index({description_->sparsity}, g.kept, 1, subject_.k);
  const auto first = static_cast<std::int64_t>(words_.size()) * i;
  for (std::size_t w = 0; w < words_.size(); ++w) {
    const std::uint64_t word = records.code(random_, first + static_cast<std::int64_t>(w));
    words_[w] = static_cast<std::uint32_t>(word);
  }
  return g;
}

unit::Outcome UnitDot::outcome(const Records& records, std::int64_t i,
                               const unit::ShortEnds* ends) {
  return unit::ReferenceDot(*description_, gemm(records, i))
      .outcome(0, 0, 0, 0, nullptr, words_, ends);
}

}  // namespace numemu::oracle
