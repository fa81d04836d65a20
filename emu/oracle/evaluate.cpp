#include "emu/oracle/evaluate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <vector>

#include "emu/oracle/codes_of_sums.hpp"
#include "emu/unit/batch.hpp"
#include "emu/unit/operand.hpp"
#include "emu/unit/reference/alignment.hpp"
#include "emu/unit/sparse/kept_index.hpp"
#include "formats/codec.hpp"
#include "formats/containers.hpp"
#include "formats/error.hpp"
#include "formats/value.hpp"

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

unit::Outcome UnitDot::outcome(const Records& records, std::int64_t i, const unit::ShortEnds* ends,
                               unit::Trace* trace) {
  return unit::ReferenceDot(*description_, gemm(records, i))
      .outcome(0, 0, 0, 0, trace, words_, ends);
}

namespace {

using unit::Exponents;

const unit::UnitDescription* description_of(const Subject& s) {
  return s.unit != nullptr ? s.unit->description() : nullptr;
}

Exponents range_of(const Subject& s, const Layout& layout) {
  const Arithmetic arithmetic = row_of(s.operation).arithmetic;
  if (arithmetic != Arithmetic::products) return unit::exponents_of(*s.a);
  Exponents range = product_range(unit::exponents_of(*s.a), unit::exponents_of(*s.b));
  if (const unit::UnitDescription* u = description_of(s)) {
    if (u->scaling.format != nullptr) {
      const Exponents scales = unit::exponents_of(*u->scaling.format);
      range = product_range(range, product_range(scales, scales));
    }
    range.low -= u->scaling.shift;
    constexpr int kTableBits = 32;
    if (u->core == unit::CoreKind::table) range = join(range, {0, kTableBits});
    if (s.unit->c_format() == nullptr)
      range = join(range, {-unit::result_register(*u).fraction, unit::result_register(*u).bits});
  }
  if (const int c = find_field(layout, "c"); c >= 0) {
    const Format* format = layout[static_cast<std::size_t>(c)].format;
    if (format != nullptr) range = join(range, unit::exponents_of(*format));
  }
  return range;
}

/// v * scale, exact: scales have few bits.
Value times(Value v, const Value& scale) {
  if (scale.kind == Class::nan) return scale;
  if (v.kind != Class::finite) return v;
  if (scale.kind == Class::zero) return {.negative = v.negative};
  v.significand *= scale.significand;
  v.exponent += scale.exponent;
  return v;
}

}  // namespace

ExactSum::ExactSum(const Subject& s, const Layout& layout)
    : subject_(s),
      layout_(layout),
      row_(row_of(s.operation)),
      a_(find_field(layout, is_unary(row_) ? "in" : "a")),
      b_(find_field(layout, "b")),
      c_(find_field(layout, "c")),
      scale_a_(find_field(layout, "sa")),
      scale_b_(find_field(layout, "sb")),
      kept_(find_field(layout, "e")),
      sum_(range_of(s, layout), s.k + 2) {}

Value ExactSum::element(const Records& records, int field, std::int64_t at, std::int64_t i) const {
  const Field& f = layout_[static_cast<std::size_t>(field)];
  const std::uint64_t code = records.code(field, i * f.count + at);
  if (f.format != nullptr) {
    if (code > f.format->last_code())
      throw Error(fmt::format("{}: {:#x} is not a code of {}", f.name, code, f.format->name));
    return decode(*f.format, code);
  }
  const unit::Register& r = unit::result_register(*description_of(subject_));
  const int above = 64 - f.bits;
  return unit::value_of_sum(static_cast<std::int64_t>(code << above) >> above, -r.fraction);
}

Value ExactSum::scaled(const Records& records, std::int64_t i, std::int64_t p, Value a) const {
  const unit::UnitDescription* u = description_of(subject_);
  if (u == nullptr) return a;
  if (u->scaling.block != 0) {
    for (const int field : {scale_a_, scale_b_}) {
      const Field& f = layout_[static_cast<std::size_t>(field)];
      std::uint64_t code = records.code(field, i * f.count + p / u->scaling.block);
      if (f.format->is_signed) code &= ~f.format->sign_bit();
      a = times(a, decode(*f.format, code));
    }
  }
  a.exponent -= u->scaling.shift;
  return a;
}

void ExactSum::add_product(const Value& a, const Value& b, Result& result) {
  const bool infinite = a.kind == Class::infinite || b.kind == Class::infinite;
  const bool zero = a.kind == Class::zero || b.kind == Class::zero;
  result.invalid |= is_signalling(a) || is_signalling(b) || (infinite && zero);
  if (a.kind == Class::finite && b.kind == Class::finite) {
    const auto product = static_cast<unsigned __int128>(a.significand) * b.significand;
    const auto high = static_cast<std::uint64_t>(product >> 64);
    const auto width =
        static_cast<int>(high != 0 ? 64 + std::bit_width(high)
                                   : std::bit_width(static_cast<std::uint64_t>(product)));
    result.largest_term = std::max(result.largest_term, a.exponent + b.exponent + width - 1);
  }
  sum_.add_product(a, b);
}

void ExactSum::add(const Value& c, Result& result) {
  result.invalid |= is_signalling(c);
  if (c.kind == Class::finite)
    result.largest_term = std::max(result.largest_term, unit::leading_exponent(c));
  sum_.add(c);
}

ExactSum::Result ExactSum::of(const Records& records, std::int64_t i) {
  if (row_.arithmetic != Arithmetic::products) return of_few(records, i);
  Result result;
  const unit::UnitDescription* u = description_of(subject_);
  const bool table = u != nullptr && u->core == unit::CoreKind::table;
  bool any_nan = false;
  sum_.clear();
  const std::int64_t products = layout_[static_cast<std::size_t>(a_)].count;
  for (std::int64_t p = 0; p < products; ++p) {
    std::int64_t k = p;
    if (kept_ >= 0) {
      const unit::Sparsity& s = u->sparsity;
      k = p / s.kept * s.group + static_cast<std::int64_t>(records.code(kept_, i * products + p));
    }
    if (table) {
      const std::uint64_t at = records.code(a_, i * products + p) << subject_.b->bits |
                               records.code(b_, i * subject_.k + k);
      add(unit::value_of_sum((*u->products)[static_cast<std::size_t>(at)], 0), result);
      continue;
    }
    const Value a = scaled(records, i, p, element(records, a_, p, i));
    const Value b = element(records, b_, k, i);
    any_nan |= a.kind == Class::nan || b.kind == Class::nan;
    add_product(row_.negates_products ? -a : a, b, result);
  }
  if (c_ >= 0) {
    const Value c = element(records, c_, 0, i);
    any_nan |= c.kind == Class::nan;
    add(row_.negates_last ? -c : c, result);
  }
  finish(any_nan, result);
  return result;
}

void ExactSum::finish(bool any_nan, Result& result) const {
  // A sum that cancels is -0 when rounded down (IEEE 754-2019, 6.3).
  result.value = sum_.sum(subject_.rounding.mode == RoundingMode::rdn);
  result.invalid |= result.value.kind == Class::nan && !any_nan;
}

ExactSum::Result ExactSum::of_few(const Records& records, std::int64_t i) {
  Result result;
  const Value a = element(records, a_, 0, i);
  if (row_.arithmetic == Arithmetic::number) {
    result.value = a;
    if (a.kind == Class::finite) result.largest_term = unit::leading_exponent(a);
  } else if (row_.arithmetic == Arithmetic::root) {
    static_cast<ExactResult&>(result) = exact_root_of(a);
  } else if (row_.arithmetic == Arithmetic::sum) {
    const Value b = element(records, b_, 0, i);
    sum_.clear();
    add(a, result);
    add(row_.negates_last ? -b : b, result);
    finish(a.kind == Class::nan || b.kind == Class::nan, result);
  } else {
    static_cast<ExactResult&>(result) = exact_of(a, element(records, b_, 0, i));
  }
  return result;
}

ExactResult ExactSum::exact_of(const Value& a, const Value& b) {
  if (row_.arithmetic == Arithmetic::quotient) return exact_quotient_of(a, b);
  // Numbers stand to each other as their difference to zero; that of like infinities is NaN.
  sum_.clear();
  sum_.add(a);
  sum_.add(-b);
  const Value difference = sum_.sum();
  const bool equal = difference.kind == Class::zero || difference.kind == Class::nan;
  const std::strong_ordering order = equal                 ? std::strong_ordering::equal
                                     : difference.negative ? std::strong_ordering::less
                                                           : std::strong_ordering::greater;
  return row_.arithmetic == Arithmetic::choice ? exact_choice(row_, a, b, order)
                                               : exact_comparison(row_, a, b, order);
}

std::uint8_t flags_of(const Subject& s, const ExactResult& exact, const Encoded& encoded) {
  if (exact.divided_by_zero) return kDivideByZero;
  if (exact.invalid) return static_cast<std::uint8_t>(encoded.flags | kInvalid);
  const bool beyond = s.to->kind == Kind::integer && (encoded.flags & kOverflow) != 0;
  if (beyond) return kInvalid;
  const int hidden = row_of(s.operation).hides_inexact ? kInexact : 0;
  return static_cast<std::uint8_t>(encoded.flags & ~hidden);
}

namespace {

/// Computes the result of each record, with the record's number in every error.
void for_each_record(const Layout& layout, Records& records,
                     const std::function<Encoded(std::int64_t i)>& result) {
  const int flags = find_field(layout, "flags");
  const int out = std::max(find_field(layout, "d"), find_field(layout, "out"));
  for (std::int64_t i = 0; i < records.size; ++i) {
    const auto at = static_cast<std::size_t>(i);
    try {
      const Encoded encoded = result(i);
      records.columns[static_cast<std::size_t>(out)][at] = encoded.code;
      if (flags >= 0) records.columns[static_cast<std::size_t>(flags)][at] = encoded.flags;
    } catch (const Error& error) {
      throw RecordError(i, error.what());
    }
  }
}

}  // namespace

RecordError::RecordError(std::int64_t number, const std::string& what)
    : Error(fmt::format("record {}: {}", number, what)), record(number), text(what) {}

void require_codes(const Layout& layout, const Records& records, bool results) {
  for (std::size_t f = 0; f < layout.size(); ++f) {
    const Field& field = layout[f];
    if (field.result && !results) continue;
    const std::uint64_t last = field.format != nullptr ? field.format->last_code()
                                                       : ~std::uint64_t{0} >> (64 - field.bits);
    const auto& codes = records.columns[f];
    const auto bad = std::find_if(codes.begin(), codes.end(),
                                  [last](std::uint64_t code) { return code > last; });
    if (bad == codes.end()) continue;
    throw RecordError(
        (bad - codes.begin()) / field.count,
        field.format != nullptr
            ? fmt::format("{}: {:#x} is not a code of {}", field.name, *bad, field.format->name)
            : fmt::format("{}: expected at most {} bits, found {:#x}", field.name, field.bits,
                          *bad));
  }
}

void evaluate(const Subject& s, Records& records, const unit::ShortEnds* ends) {
  if (s.codes) return evaluate_codes(s, records, ends);
  const Layout layout = layout_of(s);
  if (s.operation == Operation::unit) {
    UnitDot dot(s, layout);
    return for_each_record(layout, records, [&](std::int64_t i) {
      const unit::Outcome outcome = dot.outcome(records, i, ends);
      return Encoded{outcome.code, outcome.flags};
    });
  }
  ExactSum sum(s, layout);
  const int random = find_field(layout, "random");
  for_each_record(layout, records, [&](std::int64_t i) {
    const ExactSum::Result exact = sum.of(records, i);
    const std::uint64_t word = random < 0 ? 0 : records.code(random, i);
    Encoded encoded =
        encode(*s.to, exact.value, s.rounding, s.overflow, static_cast<std::uint32_t>(word));
    encoded.flags = flags_of(s, exact, encoded);
    return encoded;
  });
}

namespace {

/// Two's complement of `bits` bits, as a container of any width holds it.
std::uint64_t extended(std::uint64_t code, int bits) {
  const int above = 64 - bits;
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(code << above) >> above);
}

/// The reference looks at metadata, the fast path takes them as they are.
void check_kept(const Subject& s, const Layout& layout, const Records& records) {
  const int e = find_field(layout, "e");
  if (e < 0) return;
  const auto& codes = records.columns[static_cast<std::size_t>(e)];
  const std::vector<std::uint8_t> kept(codes.begin(), codes.end());
  unit::check_index({s.unit->description()->sparsity}, kept.data(), records.size, s.k);
}

}  // namespace

void evaluate_without_flags(const Subject& s, const Layout& layout, Records& records) {
  // A batch draws other random words than its records say.
  if (s.unit == nullptr || s.codes || find_field(layout, "r") >= 0) return evaluate(s, records);
  const auto c = static_cast<std::size_t>(find_field(layout, "c"));
  const auto d = static_cast<std::size_t>(find_field(layout, "d"));
  if (layout[c].format == nullptr) {
    for (std::uint64_t& code : records.columns[c]) code = extended(code, layout[c].bits);
  }
  try {
    check_kept(s, layout, records);
    UnitDot(s, layout).multiply(records, Path::fast);
  } catch (const Error&) {
    return evaluate(s, records);  // which names the record
  }
  for (std::uint64_t& code : records.columns[d]) code &= ~std::uint64_t{0} >> (64 - layout[d].bits);
}

Value exact_result(const Subject& s, const Records& records, std::int64_t i) {
  return ExactSum(s, layout_of(s)).of(records, i).value;
}

}  // namespace numemu::oracle
