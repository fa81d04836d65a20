#include "emu/oracle/dots/draft.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "emu/unit/reference/alignment.hpp"
#include "formats/codec.hpp"

namespace numemu::oracle {

namespace {

using unit::leading_exponent;

Value shifted(Value v, int exponent) {
  v.exponent += exponent;
  return v;
}

/// Exponents (x, sum - x) of two factors, the most even first.
std::vector<int> first_exponents(int sum, const Reach& x, const Reach& y) {
  std::vector<int> all;
  for (int e = std::max(x.least, sum - y.greatest); e <= std::min(x.greatest, sum - y.least); ++e)
    all.push_back(e);
  std::stable_sort(all.begin(), all.end(),
                   [sum](int p, int q) { return std::abs(2 * p - sum) < std::abs(2 * q - sum); });
  return all;
}

/// With the subnormal numbers.
Reach whole_reach(const Format& f) { return {last_exponent(f), normal_reach(f).greatest}; }

/// A power of two that a scale can be, subnormal or not.
Reach scale_reach(const Format& f) {
  const bool subnormal = f.field_zero == FieldZero::subnormal;
  return {subnormal ? last_exponent(f) : normal_reach(f).least, normal_reach(f).greatest};
}

std::optional<std::uint64_t> floating_code(const Format& f, const Value& v) {
  const bool low_binade = f.field_zero == FieldZero::normal || f.field_zero == FieldZero::scale;
  const int least = (low_binade ? 0 : 1) - f.bias, leading = leading_exponent(v);
  const bool normal = leading >= least;
  const int last = (normal ? leading : least) - f.mantissa_bits;
  const int zeros = std::countr_zero(v.significand), lowest = v.exponent + zeros;
  if (lowest < last || (!normal && f.field_zero != FieldZero::subnormal)) return std::nullopt;
  const std::int64_t field = normal ? leading + f.bias : 0;
  if (field >> f.exponent_bits != 0) return std::nullopt;
  const std::uint64_t significand = v.significand >> zeros << (lowest - last);
  const std::uint64_t hidden = std::uint64_t{1} << f.mantissa_bits;
  const std::uint64_t magnitude =
      (static_cast<std::uint64_t>(field) << f.mantissa_bits) | (significand & (hidden - 1));
  if (magnitude > f.largest_code() || (magnitude == 0 && f.has_zero())) return std::nullopt;
  return magnitude | (v.negative ? f.sign_bit() : 0);
}

std::optional<std::uint64_t> integer_code(int bits, bool is_signed, const Value& v) {
  if (v.exponent < -63 || v.exponent > 63 || leading_exponent(v) >= bits) return std::nullopt;
  const int zeros = std::countr_zero(v.significand);
  if (v.exponent + zeros < 0) return std::nullopt;
  const std::uint64_t magnitude = v.significand >> zeros << (v.exponent + zeros);
  const std::uint64_t end = std::uint64_t{1} << (bits - 1);
  if (is_signed && magnitude > end - (v.negative ? 0 : 1)) return std::nullopt;
  return v.negative ? (~magnitude + 1) & (2 * end - 1) : magnitude;
}

}  // namespace

Value number(std::int64_t significand, int exponent) {
  if (significand == 0) return {};
  const bool negative = significand < 0;
  const auto magnitude = static_cast<std::uint64_t>(negative ? -significand : significand);
  return {Class::finite, negative, false, exponent, magnitude};
}

std::optional<std::uint64_t> exact_code(const Format* format, int bits, const Value& v) {
  if (v.kind == Class::zero) {
    if (format == nullptr || !v.negative) return 0;
    return format->has_negative_zero() ? std::optional(format->sign_bit()) : std::nullopt;
  }
  if (v.kind != Class::finite) return std::nullopt;
  if (format == nullptr) return integer_code(bits, true, v);
  if (v.negative && !format->is_signed) return std::nullopt;
  switch (format->kind) {
    case Kind::floating:
      return floating_code(*format, v);
    case Kind::integer:
      return integer_code(format->bits, format->is_signed, v);
    case Kind::sign:
      return leading_exponent(v) == 0 && std::has_single_bit(v.significand)
                 ? std::optional<std::uint64_t>(v.negative ? 1 : 0)
                 : std::nullopt;
    case Kind::codebook:
      break;
  }
  return std::nullopt;
}

Reach normal_reach(const Format& f) {
  if (f.kind != Kind::floating) return {0, f.kind == Kind::integer ? f.bits - 1 : 0};
  const bool low_binade = f.field_zero == FieldZero::normal || f.field_zero == FieldZero::scale;
  return {(low_binade ? 0 : 1) - f.bias, leading_exponent(decode(f, f.largest_code()))};
}

int last_exponent(const Format& f) {
  return f.kind == Kind::floating ? normal_reach(f).least - f.mantissa_bits : 0;
}

Reach product_reach(const Ports& ports) {
  const Reach a = normal_reach(*ports.a), b = normal_reach(*ports.b);
  Reach reach{a.least + b.least, a.greatest + b.greatest};
  if (ports.scale != nullptr) {
    const Reach scale = normal_reach(*ports.scale);
    reach.least += 2 * scale.least;
    reach.greatest += 2 * scale.greatest;
  }
  return reach;
}

Draft::Draft(const Ports& ports, std::string aspect, std::string id)
    : ports_(&ports),
      aspect_(std::move(aspect)),
      id_(std::move(id)),
      scale_exponents_(static_cast<std::size_t>(ports.scales())) {
  dot_.a.assign(static_cast<std::size_t>(ports.kept()), 0);
  dot_.b.assign(static_cast<std::size_t>(ports.k), 0);
  if (ports.scale != nullptr) {
    const auto one = exact_code(ports.scale, 0, number(1));
    dot_.scale_a.assign(scale_exponents_.size(), static_cast<std::uint8_t>(one.value_or(0)));
    dot_.scale_b = dot_.scale_a;
  }
  for (int p = 0; !ports.sparsity.dense() && p < ports.kept(); ++p)
    dot_.kept.push_back(static_cast<std::uint8_t>(p % ports.sparsity.kept));
}

Draft& Draft::only_if(bool expressible) {
  expressible_ = expressible_ && expressible;
  return *this;
}

Draft& Draft::factors(int position, std::optional<std::uint64_t> a,
                      std::optional<std::uint64_t> b) {
  only_if(position >= 0 && position < ports_->kept() && a && b);
  if (!expressible_) return *this;
  dot_.a[static_cast<std::size_t>(position)] = *a;
  b_of_position_.emplace_back(position, *b);
  return *this;
}

Draft& Draft::factors(int position, const Value& a, const Value& b) {
  return factors(position, exact_code(ports_->a, 0, a), exact_code(ports_->b, 0, b));
}

Draft& Draft::b(int k, std::optional<std::uint64_t> code) {
  only_if(k >= 0 && k < ports_->k && code);
  if (expressible_) b_of_k_.emplace_back(k, *code);
  return *this;
}

Draft& Draft::keep(int group, const std::vector<std::uint8_t>& places) {
  const auto kept = static_cast<std::size_t>(ports_->sparsity.kept);
  const std::size_t first = static_cast<std::size_t>(group) * kept;
  only_if(!ports_->sparsity.dense() && first + kept <= dot_.kept.size() && places.size() == kept);
  if (expressible_)
    std::copy(places.begin(), places.end(), dot_.kept.begin() + static_cast<std::ptrdiff_t>(first));
  return *this;
}

Draft& Draft::keep(const std::vector<std::uint8_t>& places) {
  only_if(!ports_->sparsity.dense());
  for (int g = 0; expressible_ && g < ports_->k / ports_->sparsity.group; ++g) keep(g, places);
  return *this;
}

Draft& Draft::c_code(std::optional<std::uint64_t> code) {
  only_if(code.has_value());
  if (code) dot_.c = *code;
  return *this;
}

Draft& Draft::c(const Value& v) { return c_code(exact_code(ports_->c, ports_->bits, v)); }

Draft& Draft::scales(int block, std::optional<std::uint64_t> a, std::optional<std::uint64_t> b) {
  only_if(block >= 0 && block < ports_->scales() && a && b);
  if (!expressible_) return *this;
  dot_.scale_a[static_cast<std::size_t>(block)] = static_cast<std::uint8_t>(*a);
  dot_.scale_b[static_cast<std::size_t>(block)] = static_cast<std::uint8_t>(*b);
  return *this;
}

Draft& Draft::common_scale(int exponent) {
  return only_if(ports_->scales() == 1 && set_scale(0, exponent));
}

Draft& Draft::least_scales() {
  if (ports_->scales() == 0) return *this;
  const Format& f = *ports_->scale;
  const auto least = exact_code(&f, 0, number(1, normal_reach(f).least));
  for (int block = 0; block < ports_->scales(); ++block)
    if (!scale_exponents_[static_cast<std::size_t>(block)]) scales(block, least, least);
  return *this;
}

bool Draft::set_scale(int block, int exponent) {
  const Reach reach = scale_reach(*ports_->scale);
  for (const int first : first_exponents(exponent, reach, reach)) {
    const auto a = exact_code(ports_->scale, 0, number(1, first));
    const auto b = exact_code(ports_->scale, 0, number(1, exponent - first));
    if (!a || !b) continue;
    scales(block, a, b);
    scale_exponents_[static_cast<std::size_t>(block)] = exponent;
    return true;
  }
  return false;
}

std::optional<Draft::Codes> Draft::split_integer(const Value& v) const {
  if (v.exponent < 0 || v.exponent > 31) return std::nullopt;
  const auto magnitude = static_cast<std::int64_t>(v.significand << v.exponent);
  for (std::int64_t a = std::int64_t{1} << std::min(ports_->a->bits, 16); a > 0; --a) {
    if (magnitude % a != 0) continue;
    for (const bool negative_a : {v.negative, false}) {
      const auto code_a = exact_code(ports_->a, 0, number(negative_a ? -a : a));
      const std::int64_t b = magnitude / a;
      const auto code_b = exact_code(ports_->b, 0, number(negative_a != v.negative ? -b : b));
      if (code_a && code_b) return Codes{*code_a, *code_b};
    }
  }
  return std::nullopt;
}

/// One factor has the sign and the significand, the other is a power of two; both are normal where
/// that is possible.
std::optional<Draft::Codes> Draft::split(const Value& v) const {
  if (v.kind == Class::zero) {
    const auto a = exact_code(ports_->a, 0, v), b = exact_code(ports_->b, 0, Value{});
    if (!a || !b) return std::nullopt;
    return Codes{*a, *b};
  }
  if (ports_->a->kind == Kind::integer && ports_->b->kind == Kind::integer) return split_integer(v);
  if (ports_->a->kind != Kind::floating || ports_->b->kind != Kind::floating) return std::nullopt;
  const int sum = leading_exponent(v);
  for (const bool normal : {true, false}) {
    const Reach a = normal ? normal_reach(*ports_->a) : whole_reach(*ports_->a);
    const Reach b = normal ? normal_reach(*ports_->b) : whole_reach(*ports_->b);
    for (const int e : first_exponents(sum, a, b)) {
      const Value power_a = number(1, e), power_b = number(1, sum - e);
      auto code_a = exact_code(ports_->a, 0, shifted(v, e - sum));
      auto code_b = exact_code(ports_->b, 0, power_b);
      if (!code_a || !code_b) {
        code_a = exact_code(ports_->a, 0, power_a);
        code_b = exact_code(ports_->b, 0, shifted(v, -e));
      }
      if (code_a && code_b) return Codes{*code_a, *code_b};
    }
  }
  return std::nullopt;
}

Draft& Draft::product(int position, const Value& v) {
  only_if(position >= 0 && position < ports_->kept());
  if (!expressible_) return *this;
  Value unscaled = v;
  if (ports_->scale != nullptr && v.kind == Class::finite) {
    const int block = position / ports_->block;
    std::optional<int>& scale = scale_exponents_[static_cast<std::size_t>(block)];
    // The scales take the whole exponent where they can, else the operands take the rest.
    for (const int rest : {0, -1, -2, 1, 2}) {
      if (scale || set_scale(block, leading_exponent(v) - rest)) break;
    }
    if (!scale) return only_if(false);
    unscaled = shifted(v, -*scale);
  }
  const auto codes = split(unscaled);
  if (!codes) return only_if(false);
  return factors(position, codes->a, codes->b);
}

std::optional<Dot> Draft::dot() const {
  if (!expressible_) return std::nullopt;
  Dot dot = dot_;
  const unit::Sparsity& s = ports_->sparsity;
  for (const auto& [position, code] : b_of_position_) {
    const auto at = static_cast<std::size_t>(position);
    const int k = s.dense() ? position : position / s.kept * s.group + dot.kept[at];
    dot.b[static_cast<std::size_t>(k)] = code;
  }
  for (const auto& [k, code] : b_of_k_) dot.b[static_cast<std::size_t>(k)] = code;
  return dot;
}

void Sheet::add(const std::string& aspect, const Draft& draft) {
  const auto dot = draft.dot();
  if (!dot) return;
  std::vector<std::uint64_t> key = dot->a;
  key.insert(key.end(), dot->b.begin(), dot->b.end());
  key.push_back(dot->c);
  for (const auto* bytes : {&dot->scale_a, &dot->scale_b, &dot->kept})
    key.insert(key.end(), bytes->begin(), bytes->end());
  if (seen_.insert(std::move(key)).second || !draft.id().empty())
    questions_.push_back({aspect, *dot, draft.id()});
}

}  // namespace numemu::oracle
