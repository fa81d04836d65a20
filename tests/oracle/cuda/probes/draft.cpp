// Finds the factors of a draft: normal operands of nearly equal exponents first, scales before
// elements where blocks have their own.
#include "tests/oracle/cuda/probes/draft.hpp"

#include <algorithm>
#include <cstdlib>
#include <tuple>

namespace numemu::oracle::recording::probing {
namespace {

std::size_t index(int i) { return static_cast<std::size_t>(i); }

/// Exponents of powers of two that a floating-point element holds.
struct Range {
  int least, greatest;
};
Range normals(Element e) { return {least_exponent(e), greatest_exponent(e)}; }

/// Exponents (a, b) with a + b = sum, the most even first.
std::vector<std::pair<int, int>> splits(int sum, Range a) {
  std::vector<std::pair<int, int>> found;
  for (int x = a.least; x <= a.greatest; ++x) found.emplace_back(x, sum - x);
  std::stable_sort(found.begin(), found.end(), [](const auto& p, const auto& q) {
    return std::abs(p.first - p.second) < std::abs(q.first - q.second);
  });
  return found;
}

}  // namespace

int k_of(const Instruction& i, const std::vector<std::uint8_t>& metadata, int position) {
  if (i.sparsity == Sparsity::dense) return position;
  const int per_group = i.group() / 2;
  const int group = position / per_group;
  const int slot = position % per_group;
  const int word = metadata.at(index(group));
  const auto field = [word](int n) { return (word >> (2 * n)) & 3; };
  switch (i.sparsity) {
    case Sparsity::one_of_two:  // halves of 16 bits are selected: (0, 1) or (2, 3)
      return group * 2 + field(0) / 2;
    case Sparsity::pairs_of_four:
      return group * 8 + field(slot / 2) * 2 + slot % 2;
    default:
      return group * 4 + field(slot);
  }
}

int together(const Instruction& i, int n) {
  if (i.scales() > 1) return 16 * n;
  return !is_integer(i.a) && info(i.a).bits <= 8 ? 4 * (n / 2) + n % 2 : n;
}

int top_exponent(const Instruction& i) {
  if (is_integer(i.a)) return 0;
  const int limit = i.d == Element::f16 ? 15 : 16;
  if (i.scales() > 1) return limit;
  return std::min(limit, greatest_exponent(i.a) + greatest_exponent(i.b));
}

Draft::Draft(const Instruction& instruction, std::string id, std::string question)
    : instruction_(&instruction) {
  probe_.id = std::move(id);
  probe_.question = std::move(question);
  probe_.metadata.assign(index(instruction.groups()), kFirstTwo);
  scale_exponents_.resize(index(instruction.scales()));
  if (instruction.block != 0) {
    const auto one = static_cast<std::uint8_t>(*scale_code(instruction.scale, 0));
    probe_.scale_a.assign(index(instruction.scales()), one);
    probe_.scale_b = probe_.scale_a;
  }
  if (instruction.scales() == 1) scale_exponents_[0] = 0;
}

Draft& Draft::only_if(bool condition) {
  expressible_ = expressible_ && condition;
  return *this;
}

Draft& Draft::codes(int position, Code a, Code b) {
  only_if(position < instruction_->kept() && a && b);
  if (expressible_) placed_.push_back({position, *a, *b});
  return *this;
}

Draft& Draft::factors(int position, Exact a, Exact b) {
  return codes(position, code_of(instruction_->a, a), code_of(instruction_->b, b));
}

Draft& Draft::c_code(Code code) {
  only_if(code.has_value());
  if (code) probe_.c = *code;
  return *this;
}
Draft& Draft::c(Exact value) { return c_code(code_of(instruction_->c, value)); }

Draft& Draft::b_code(int k, Code code) {
  only_if(code && k < instruction_->k);
  if (expressible_) b_codes_.emplace_back(k, *code);
  return *this;
}

Draft& Draft::metadata(std::uint8_t every_group) {
  only_if(instruction_->sparsity != Sparsity::dense);
  std::fill(probe_.metadata.begin(), probe_.metadata.end(), every_group);
  return *this;
}
Draft& Draft::metadata(int group, std::uint8_t word) {
  only_if(group < instruction_->groups());
  if (expressible_) probe_.metadata[index(group)] = word;
  return *this;
}

Draft& Draft::scales(int block, Code a, Code b) {
  only_if(block < instruction_->scales() && a && b);
  if (!expressible_) return *this;
  probe_.scale_a[index(block)] = static_cast<std::uint8_t>(*a);
  probe_.scale_b[index(block)] = static_cast<std::uint8_t>(*b);
  return *this;
}

Draft& Draft::common_scale(int exponent) {
  return only_if(instruction_->scales() == 1 && set_scale(0, exponent));
}

Draft& Draft::least_scales() {
  const Element e = instruction_->scale;
  const Code least = e == Element::ue8m0 ? Code(0) : scale_code(e, e == Element::none ? 0 : -6);
  for (int block = 0; block < instruction_->scales(); ++block)
    if (!scale_exponents_[index(block)]) scales(block, least, least);
  return *this;
}

bool Draft::set_scale(int block, int exponent) {
  const Element scale = instruction_->scale;
  const Range range = scale == Element::ue8m0
                          ? Range{-127, 127}
                          : Range{subnormal_exponent(scale), greatest_exponent(scale)};
  for (const auto& [a, b] : splits(exponent, range)) {
    const Code code_a = scale_code(scale, a), code_b = scale_code(scale, b);
    if (!code_a || !code_b) continue;
    scales(block, code_a, code_b);
    scale_exponents_[index(block)] = exponent;
    return true;
  }
  return false;
}

Draft::Split Draft::split_integer(Exact value) const {
  const auto magnitude = static_cast<std::int64_t>(value.significand << value.exponent);
  for (std::int64_t a = static_cast<std::int64_t>(largest(instruction_->a).significand); a > 0;
       --a) {
    if (magnitude % a != 0) continue;
    for (const bool negative_a : {value.negative, false}) {
      const Exact x = {negative_a, static_cast<std::uint64_t>(a), 0};
      const Exact y = {negative_a != value.negative, static_cast<std::uint64_t>(magnitude / a), 0};
      const Split found = {code_of(instruction_->a, x), code_of(instruction_->b, y)};
      if (found.a && found.b) return found;
    }
  }
  return {};
}

// A carries the sign and the significand, B a power of two.
Draft::Split Draft::split(Exact value) const {
  if (is_integer(instruction_->a)) return split_integer(value);
  const int leading = leading_exponent(value);
  const Range normal_a = normals(instruction_->a), normal_b = normals(instruction_->b);
  const Range all_a = {subnormal_exponent(instruction_->a), normal_a.greatest};
  for (const bool both_normal : {true, false}) {
    for (const auto& [a, b] : splits(leading, both_normal ? normal_a : all_a)) {
      if (both_normal && b < normal_b.least) continue;
      const Exact x = {value.negative, value.significand, value.exponent - leading + a};
      const Split found = {code_of(instruction_->a, x), code_of(instruction_->b, power(b))};
      if (found.a && found.b) return found;
    }
  }
  return {};
}

Draft& Draft::product(int position, Exact value) {
  only_if(position < instruction_->kept());
  if (!expressible_) return *this;
  if (instruction_->block == 0) {
    const Split found = split(value);
    return codes(position, found.a, found.b);
  }
  const int block = position / instruction_->block;
  std::optional<int>& scale = scale_exponents_[index(block)];
  // The scale takes the whole exponent where it can, else the elements take what it lacks.
  const int leading = leading_exponent(value);
  for (const int rest : {0, -1, -2, 1, 2}) {
    if (scale || set_scale(block, leading - rest)) break;
  }
  if (!scale) return only_if(false);
  const Split found = split({value.negative, value.significand, value.exponent - *scale});
  return codes(position, found.a, found.b);
}

Probe Draft::probe() const {
  Probe probe = probe_;
  probe.a.assign(index(instruction_->kept()), 0);
  probe.b.assign(index(instruction_->k), 0);
  for (const Placed& at : placed_) {
    probe.a[index(at.position)] = at.a;
    probe.b[index(k_of(*instruction_, probe.metadata, at.position))] = at.b;
  }
  for (const auto& [k, code] : b_codes_) probe.b[index(k)] = code;
  return probe;
}

}  // namespace numemu::oracle::recording::probing
