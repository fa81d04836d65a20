// XNOR and popcount: the unit against counted bits.
#include <fmt/format.h>

#include <bit>

#include "emu/unit/unit.hpp"
#include "experiments/binarized/parts.hpp"
#include "experiments/binarized/sign_products.hpp"
#include "formats/random.hpp"

namespace numemu::experiments::binarized {

std::vector<std::int32_t> sign_products(const std::vector<std::uint8_t>& a,
                                        const std::vector<std::uint8_t>& b, std::int64_t depth) {
  const auto size = [&](const std::vector<std::uint8_t>& codes) {
    return static_cast<std::int64_t>(codes.size()) / depth;
  };
  const Format& sign = find_format("sign1");
  const unit::Gather rows = unit::Gather::matrix(size(a), depth),
                     columns = unit::Gather::matrix(size(b), depth);
  std::vector<std::int32_t> d(static_cast<std::size_t>(size(a) * size(b)));
  unit::find_unit("neutral.xnor")
      .multiply({.m = size(a),
                 .n = size(b),
                 .k = depth,
                 .a = {&sign, a.data(), &rows},
                 .b = {&sign, b.data(), &columns},
                 .d = d.data()});
  return d;
}

void add_xnor(const ExperimentRun& run, Conclusion& conclusion) {
  constexpr std::int64_t kLines = 16, kWord = 64;
  for (const std::int64_t depth : run.settings.whole_numbers("lengths", 1, 65536)) {
    const std::int64_t words = (depth + kWord - 1) / kWord;
    const RandomSource random{run.seed, Stream::vectors, static_cast<std::uint32_t>(depth)};
    std::vector<std::uint64_t> packed(static_cast<std::size_t>(2 * kLines * words));
    std::vector<std::uint8_t> a, b;
    for (std::int64_t line = 0; line < 2 * kLines; ++line) {
      for (std::int64_t k = 0; k < depth; ++k) {
        const auto bit =
            static_cast<std::uint8_t>(random.bits(static_cast<std::uint64_t>(line * depth + k), 1));
        (line < kLines ? a : b).push_back(bit);
        packed[line * words + k / kWord] |= std::uint64_t{bit} << (k % kWord);
      }
    }
    const std::vector<std::int32_t> d = sign_products(a, b, depth);
    std::int64_t differ = 0;
    for (std::int64_t i = 0; i < kLines; ++i) {
      for (std::int64_t j = 0; j < kLines; ++j) {
        std::int64_t agree = 0;
        for (std::int64_t w = 0; w < words; ++w) {
          const std::int64_t used = std::min(kWord, depth - w * kWord);
          const std::uint64_t mask = ~std::uint64_t{0} >> (kWord - used);
          agree +=
              std::popcount(~(packed[i * words + w] ^ packed[(kLines + j) * words + w]) & mask);
        }
        differ += d[i * kLines + j] != 2 * agree - depth;
      }
    }
    conclusion.findings.push_back(exact_finding(
        fmt::format("products of {} signs that differ from 2 popcount(XNOR) - {}, of {}", depth,
                    depth, kLines * kLines),
        0, static_cast<double>(differ), differ == 0));
  }
  conclusion.about("xnor");
}

}  // namespace numemu::experiments::binarized
