// text:FILE: bytes to numbers, position to split.
#include "emu/net/data/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <utility>

#include "emu/net/data/byte_source.hpp"
#include "emu/net/data/load_dataset.hpp"
#include "emu/net/ops/elementwise.hpp"
#include "formats/digest.hpp"
#include "formats/error.hpp"
#include "formats/random.hpp"

namespace numemu::net {
namespace {

constexpr std::int64_t kMostContext = std::int64_t{1} << 20;

}  // namespace

TextSamples::TextSamples(const std::string& name, std::vector<std::uint8_t> text,
                         std::int64_t context, const std::string& vocabulary, bool all_test)
    : context_(context), tokens_(std::move(text)) {
  if (context < 1) throw Error(name + ": expected a context of at least 1 character");
  const auto size = static_cast<std::int64_t>(tokens_.size());
  validation_start_ = all_test ? 0 : size * 90 / 100;
  test_start_ = all_test ? 0 : size * 95 / 100;
  const auto windows = [&](const char* split, std::int64_t first, std::int64_t last) {
    const std::int64_t count = (last - first - 1) / context;
    if (count < 1) {
      throw Error(fmt::format("{}: expected at least {} characters for {}, found {} of {}", name,
                              context + 1, split, last - first, size));
    }
    return count;
  };
  facts_.kind = DataKind::text;
  facts_.noun = "windows";
  facts_.target_shape = {context};
  facts_.input_shape = {context};
  if (!all_test) facts_.sizes.validation = windows("validation", validation_start_, test_start_);
  facts_.sizes.test = windows("test", test_start_, size);
  if (!all_test) facts_.sizes.train = windows("training", 0, validation_start_);
  facts_.sizes.calibration = std::min(kCalibration, facts_.sizes.train);

  std::array<bool, 256> used{};
  for (const std::uint8_t byte : tokens_) used[byte] = vocabulary.empty();
  for (const char byte : vocabulary) used[static_cast<std::uint8_t>(byte)] = true;
  std::array<std::uint8_t, 256> number{};
  for (std::size_t byte = 0; byte < used.size(); ++byte) {
    if (!used[byte]) continue;
    number[byte] = static_cast<std::uint8_t>(vocabulary_.size());
    vocabulary_ += static_cast<char>(byte);
  }
  facts_.classes = static_cast<std::int64_t>(vocabulary_.size());
  const std::string whole =
      sha256_hex({reinterpret_cast<const char*>(tokens_.data()), tokens_.size()});
  std::string text_of_digest = fmt::format("{} context {}", whole, context);
  if (!vocabulary.empty()) text_of_digest += " vocabulary " + vocabulary_;
  if (all_test) text_of_digest += " test";
  facts_.digest = sha256_hex(text_of_digest).substr(0, 16);
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    if (!used[tokens_[i]]) {
      throw Error(fmt::format("{}: byte {}: expected a character of the vocabulary, found byte {}",
                              name, i, tokens_[i]));
    }
    tokens_[i] = number[tokens_[i]];
  }
}

void TextSamples::read(Part part, std::int64_t id, const AugmentDraw*, float* x,
                       TargetSpan targets) const {
  const std::int64_t start = part == Part::train        ? 0
                             : part == Part::validation ? validation_start_
                                                        : test_start_;
  const std::uint8_t* const from = tokens_.data() + start + id * context_;
  for (std::int64_t t = 0; t < context_; ++t) {
    x[t] = static_cast<float>(from[t]);
    targets.classes[t] = from[t + 1];
  }
}

Dataset load_text(const std::string& place) {
  const SourceOptions options("text", place, {"context", "vocabulary", "test"});
  const std::string& path = options.path();
  std::string vocabulary;
  if (const std::string from = options.text("vocabulary"); from == "bytes") {
    for (int byte = 0; byte < 256; ++byte) vocabulary += static_cast<char>(byte);
  } else if (!from.empty()) {
    const std::vector<std::uint8_t> bytes = ByteSource(from).read_all("text");
    vocabulary.assign(bytes.begin(), bytes.end());
    if (vocabulary.empty()) throw Error(from + ": expected a text with characters");
  }
  ByteSource source(path);
  return Dataset("text", std::make_shared<TextSamples>(
                             path, source.read_all("text"),
                             options.whole("context", TextSamples::kContext, 1, kMostContext),
                             vocabulary, options.choice("test", {"last", "all"}) == "all"));
}

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
