// A paper machine for layouts alone: it counts ones, knows every instruction with fragments, and
// can be broken.
#pragma once
#include <functional>
#include <utility>

#include "tests/oracle/cuda/layout/layout_check.hpp"
#include "tests/oracle/cuda/layout/layout_questions.hpp"
#include "tests/oracle/cuda/paper/paper_machine.hpp"

namespace numemu::oracle::recording {

class CountingMachine : public PaperMachine {
 public:
  using Disturbance = std::function<void(const Instruction&, TileRegisters&)>;

  explicit CountingMachine(Disturbance before = {}, Disturbance after = {})
      : PaperMachine("H100"), before_(std::move(before)), after_(std::move(after)) {}

  bool has(const Instruction& i) const override { return has_fragments(i.kind); }

 protected:
  void disturb(const Instruction& i, TileRegisters& held) const override {
    if (before_) before_(i, held);
  }
  void disturb_sums(const Instruction& i, TileRegisters& held) const override {
    if (after_) after_(i, held);
  }

  /// Exact for operands 0 and 1 and scales 1 and 2; anything else gives a code of all ones.
  void compute(Batch& batch) const override {
    const Instruction& i = *batch.instruction;
    for (int t = 0; t < batch.count; ++t) {
      const Tiles tile = tile_of(batch, t);
      for (int row = 0; row < i.m; ++row)
        for (int column = 0; column < i.n; ++column) {
          const int place = row * i.n + column;
          store_code(tile.d + place * info(i.d).bytes, info(i.d).bytes, dot(i, tile, row, column));
        }
    }
  }

 private:
  static constexpr std::uint64_t kUnknown = 1 << 10;

  static std::uint64_t dot(const Instruction& i, const Tiles& tile, int row, int column) {
    std::uint64_t sum = ones(tile.c, row * i.n + column, i.c);
    for (int kept = 0; kept < i.kept(); ++kept) {
      const int k = chosen(i, tile.metadata + row * i.groups(), kept);
      const int block = i.block == 0 ? 0 : k / i.block;
      const std::uint64_t scale = i.block == 0
                                      ? 1
                                      : scale_of(tile.scale_a[row * i.scales() + block], i) *
                                            scale_of(tile.scale_b[column * i.scales() + block], i);
      sum += ones(tile.a, row * i.kept() + kept, i.a) * ones(tile.b, column * i.k + k, i.b) * scale;
    }
    return sum >= kUnknown ? ~std::uint64_t{0} : code(sum, i.d);
  }

  static std::uint64_t ones(const std::uint8_t* codes, int place, Element e) {
    const std::uint64_t code = load_code(codes + place * info(e).bytes, info(e).bytes);
    return code == 0 ? 0 : code == one(e) ? 1 : kUnknown;
  }
  static std::uint64_t scale_of(std::uint8_t code, const Instruction& i) {
    const std::uint64_t unit = one(i.scale);
    const std::uint64_t step = i.scale == Element::ue8m0 ? 1 : 8;
    return code == unit ? 1 : code == unit + step ? 2 : kUnknown;
  }
  /// PTX ISA, "Sparse matrix storage", with words of four bits.
  static int chosen(const Instruction& i, const std::uint8_t* words, int kept) {
    switch (i.sparsity) {
      case Sparsity::dense:
        return kept;
      case Sparsity::one_of_two:
        return 2 * kept + (words[kept] == 0b1110 ? 1 : 0);
      case Sparsity::two_of_four:
        return 4 * (kept / 2) + (kept % 2 == 0 ? words[kept / 2] % 4 : words[kept / 2] / 4);
      case Sparsity::pairs_of_four:
        break;
    }
    const int word = words[kept / 4];
    return 8 * (kept / 4) + 2 * (kept % 4 < 2 ? word % 4 : word / 4) + kept % 2;
  }
  static std::uint64_t code(std::uint64_t number, Element e) {
    if (is_integer(e) || number == 0) return number;
    int exponent = 0;
    while (number >> (exponent + 1) != 0) ++exponent;
    const auto biased = static_cast<std::uint64_t>(info(e).bias + exponent);
    const std::uint64_t fraction = number - (std::uint64_t{1} << exponent);
    return biased << info(e).mantissa_bits | fraction << (info(e).mantissa_bits - exponent);
  }

  Disturbance before_, after_;
};

}  // namespace numemu::oracle::recording
