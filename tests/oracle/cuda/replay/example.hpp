// One dot that owns its operands, for checks written by hand.
#pragma once
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "emu/oracle/recording/batch.hpp"
#include "tests/oracle/cuda/replay/rule.hpp"

namespace numemu::oracle::recording::replay {

/// All operands are zero, scales are one, the metadata keeps the first of each group.
class Example {
 public:
  Example(const std::string& kind, const std::string& instruction) {
    const int found = find_instruction(kind, instruction);
    if (found < 0) throw std::runtime_error("no instruction " + kind + " " + instruction);
    instruction_ = &instructions()[static_cast<std::size_t>(found)];
    const Instruction& i = *instruction_;
    const TileBytes bytes = tile_bytes(i);
    a_.resize(bytes.a / static_cast<std::size_t>(i.m));
    b_.resize(bytes.b / static_cast<std::size_t>(i.n));
    c_.resize(static_cast<std::size_t>(info(i.c).bytes));
    const std::uint8_t one = i.scale == Element::ue4m3 ? 0x38 : 0x7f;
    scale_a_.resize(static_cast<std::size_t>(i.scales()), one);
    scale_b_ = scale_a_;
    metadata_.resize(static_cast<std::size_t>(i.groups()), 0x4);
  }

  const Instruction& instruction() const { return *instruction_; }
  Example& a(int kept, std::uint64_t code) { return store(a_, instruction_->a, kept, code); }
  Example& b(int k, std::uint64_t code) { return store(b_, instruction_->b, k, code); }
  Example& c(std::uint64_t code) { return store(c_, instruction_->c, 0, code); }
  /// A dense product.
  Example& product(int k, std::uint64_t code_a, std::uint64_t code_b) {
    return a(k, code_a).b(k, code_b);
  }
  Example& scales(int block, std::uint8_t of_a, std::uint8_t of_b) {
    scale_a_.at(static_cast<std::size_t>(block)) = of_a;
    scale_b_.at(static_cast<std::size_t>(block)) = of_b;
    return *this;
  }
  Example& metadata(int group, std::uint8_t word) {
    metadata_.at(static_cast<std::size_t>(group)) = word;
    return *this;
  }

  Dot dot() const {
    return {instruction_,     a_.data(),       b_.data(),      c_.data(),
            metadata_.data(), scale_a_.data(), scale_b_.data()};
  }
  std::uint64_t answer(const Rule& rule) const { return recording::answer(rule, dot()); }
  /// The result of the specification on a chip.
  std::uint64_t answer(const std::string& chip) const {
    return answer(rules(chip, *instruction_).at(0));
  }
  /// The same with one thing changed.
  template <class Field, class Value>
  std::uint64_t answer(const std::string& chip, Field Rule::*field, Value value) const {
    Rule rule = rules(chip, *instruction_).at(0);
    rule.*field = value;
    return answer(rule);
  }

  /// As in a file, with `d`.
  std::vector<std::uint8_t> record(std::uint64_t d) const {
    std::vector<std::uint8_t> bytes;
    for (const auto* part : {&a_, &b_, &c_, &scale_a_, &scale_b_, &metadata_})
      bytes.insert(bytes.end(), part->begin(), part->end());
    const std::size_t size = bytes.size();
    bytes.resize(size + static_cast<std::size_t>(info(instruction_->d).bytes));
    store_code(bytes.data() + size, info(instruction_->d).bytes, d);
    return bytes;
  }

 private:
  Example& store(std::vector<std::uint8_t>& to, Element e, int at, std::uint64_t code) {
    const int bytes = info(e).bytes;
    if (static_cast<std::size_t>((at + 1) * bytes) > to.size())
      throw std::runtime_error("no element " + std::to_string(at));
    store_code(to.data() + at * bytes, bytes, code);
    return *this;
  }

  const Instruction* instruction_;
  std::vector<std::uint8_t> a_, b_, c_, scale_a_, scale_b_, metadata_;
};

}  // namespace numemu::oracle::recording::replay
