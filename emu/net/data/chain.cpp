// The text of chain: which characters may follow, drawn once, and one draw of 3 bits a character.
#include "emu/net/data/chain.hpp"

#include <array>
#include <memory>
#include <numeric>
#include <utility>

#include "emu/net/data/sources.hpp"
#include "emu/net/data/text.hpp"
#include "emu/net/ops/elementwise.hpp"
#include "formats/digest.hpp"
#include "formats/random.hpp"

namespace numemu::net {
namespace chain {
namespace {

constexpr std::size_t kLetters = 27, kFollowers = 4;
/// By draw: probabilities 1/2, 1/4, 1/8, 1/8.
constexpr std::array<std::size_t, 8> kFollower = {0, 0, 0, 0, 1, 1, 2, 3};

RandomSource source(const char* use) { return {0, Stream::data, tensor_word(use), 0}; }

/// Four different letters behind each two, the likeliest first; the likeliest is the same for all
/// two that end alike, so that models can learn the text in steps.
std::vector<std::array<std::uint8_t, kFollowers>> followers() {
  const RandomSource random = source("chain/followers");
  std::vector<std::array<std::uint8_t, kFollowers>> all(kLetters * kLetters);
  for (std::size_t pair = 0; pair < all.size(); ++pair) {
    std::array<std::uint8_t, kLetters> letters{};
    std::iota(letters.begin(), letters.end(), std::uint8_t{0});
    for (std::size_t k = 0; k < kFollowers; ++k) {
      const std::size_t place = k == 0 ? pair % kLetters : kLetters + kFollowers * pair + k;
      const std::uint64_t r = random.bits(place, 32);
      std::swap(letters[k], letters[k + (r * (kLetters - k) >> 32)]);
      all[pair][k] = letters[k];
    }
  }
  return all;
}

}  // namespace

std::vector<std::uint8_t> generate() {
  const auto next = followers();
  const RandomSource random = source("chain/characters");
  std::vector<std::uint8_t> text(kCharacters);
  std::size_t pair = 0;
  for (std::size_t t = 0; t < text.size(); ++t) {
    const std::uint8_t letter = next[pair][kFollower[random.bits(t, 3)]];
    text[t] = letter == 26 ? ' ' : static_cast<std::uint8_t>('a' + letter);
    pair = pair % kLetters * kLetters + letter;
  }
  return text;
}

}  // namespace chain

Dataset load_chain() {
  return Dataset("chain", std::make_shared<TextSamples>("chain", chain::generate()));
}

}  // namespace numemu::net
