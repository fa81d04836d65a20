// The packed words: known values, every mask through both widths, every illegal value.
#include "emu/unit/sparse/ptx.hpp"

#include <map>
#include <string>
#include <vector>

#include "emu/unit/sparse/compress.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/unit/problem.hpp"
#include "tests/emu/unit/sparse/patterns.hpp"

namespace ptx_test {

using namespace numemu;
using namespace numemu::unit;

namespace {

using Bytes = std::vector<std::uint8_t>;

/// The values PTX calls meaningful, typed in from its text, and what they keep.
const std::map<std::string, std::map<int, Bytes>> kMeaningful = {
    {"1:2", {{0b0100, {0}}, {0b1110, {1}}}},
    {"2:4",
     {{0b0100, {0, 1}},
      {0b1000, {0, 2}},
      {0b1001, {1, 2}},
      {0b1100, {0, 3}},
      {0b1101, {1, 3}},
      {0b1110, {2, 3}}}},
    {"4:8.pairwise",
     {{0b0100, {0, 1, 2, 3}},
      {0b1000, {0, 1, 4, 5}},
      {0b1001, {2, 3, 4, 5}},
      {0b1100, {0, 1, 6, 7}},
      {0b1101, {2, 3, 6, 7}},
      {0b1110, {4, 5, 6, 7}}}}};

template <class Word>
std::vector<Word> encoded(const Pattern& p, const Bytes& index, std::int64_t rows,
                          std::int64_t depth) {
  std::vector<Word> words(static_cast<std::size_t>(rows * ptx_words_per_row<Word>(p, depth)),
                          static_cast<Word>(0xa5a5a5a5u));
  encode_ptx(p, index.data(), rows, depth, words.data());
  return words;
}

template <class Word>
Bytes decoded(const Pattern& p, const std::vector<Word>& words, std::int64_t rows,
              std::int64_t depth) {
  Bytes index(static_cast<std::size_t>(rows * kept_depth(p, depth)));
  decode_ptx(p, words.data(), rows, depth, index.data());
  return index;
}

}  // namespace

TEST_CASE("sparse ptx: each of the 16 values at each place of a row", "[fast]") {
  const auto check = []<class TestType>(TestType) {
    for (const auto& [name, meaningful] : kMeaningful) {
      const Pattern p = parse_pattern(name);
      const int groups = 19;
      const std::int64_t depth = groups * p.group;
      const auto words_per_row = ptx_words_per_row<TestType>(p, depth);
      for (int place = 0; place < groups; ++place)
        for (int value = 0; value < 16; ++value) {
          INFO(name << " place " << place << " value " << value);
          // Row 0 is legal throughout, row 1 with `value` at one place.
          std::vector<TestType> words(2 * words_per_row);
          Bytes index;
          for (int row = 0; row < 2; ++row)
            for (int g = 0; g < groups; ++g) {
              const int code = row == 1 && g == place ? value : 0b1110;
              constexpr int kPerWord = sizeof(TestType) * 2;
              auto& word = words[row * words_per_row + g / kPerWord];
              word = static_cast<TestType>(word | static_cast<std::uint32_t>(code)
                                                      << (g % kPerWord * 4));
              const auto kept = meaningful.find(code);
              if (kept != meaningful.end())
                index.insert(index.end(), kept->second.begin(), kept->second.end());
            }
          if (meaningful.count(value) != 0) {
            REQUIRE(decoded(p, words, 2, depth) == index);
            REQUIRE(encoded<TestType>(p, index, 2, depth) == words);
          } else {
            REQUIRE_THROWS_WITH(
                decoded(p, words, 2, depth),
                Catch::StartsWith("ptx metadata row 1, group " + std::to_string(place) + ": 0b") &&
                    Catch::Contains("expects one of 0b0100"));
          }
        }
    }
  };
  check(std::uint8_t{});
  check(std::uint32_t{});
}

TEST_CASE("sparse ptx: rows of every length go through bytes and words alike", "[fast]") {
  test::Dice dice(11);
  for (const auto& entry : kMeaningful) {
    const Pattern p = parse_pattern(entry.first);
    const auto all = test::masks(p);
    REQUIRE(all.size() == entry.second.size());
    for (std::int64_t groups = 0; groups <= 40; ++groups) {
      const std::int64_t rows = 3, depth = groups * p.group;
      Bytes index;
      for (std::int64_t g = 0; g < rows * groups; ++g)
        test::append_index(p, all[dice.below(static_cast<std::int64_t>(all.size()))], index);
      const auto bytes = encoded<std::uint8_t>(p, index, rows, depth);
      const auto words = encoded<std::uint32_t>(p, index, rows, depth);
      REQUIRE(decoded(p, bytes, rows, depth) == index);
      REQUIRE(decoded(p, words, rows, depth) == index);
      const auto per_row = ptx_words_per_row<std::uint8_t>(p, depth);
      const auto words_per_row = ptx_words_per_row<std::uint32_t>(p, depth);
      REQUIRE(per_row == (groups + 1) / 2);
      REQUIRE(words_per_row == (groups + 7) / 8);
      for (std::int64_t row = 0; row < rows; ++row)
        for (std::int64_t i = 0; i < per_row; ++i)
          REQUIRE(bytes[row * per_row + i] ==
                  (words[row * words_per_row + i / 4] >> (i % 4 * 8) & 0xff));
    }
  }
}

TEST_CASE("sparse ptx: bits after the last group must be 0", "[fast]") {
  const Pattern p = parse_pattern("2:4");
  for (int bit = 4; bit < 32; ++bit) {
    const std::vector<std::uint32_t> words = {0xeeeeeeeeu, 0b0100u | 1u << bit};
    CHECK_THROWS_WITH(decoded(p, words, 1, 36),
                      "ptx metadata row 0, word 1: bits after the last group, 8; expected 0");
  }
  CHECK_THROWS_WITH(decoded(p, Bytes{0x44, 0x14}, 2, 4),
                    Catch::StartsWith("ptx metadata row 0, word 0"));
  CHECK(decoded(p, Bytes{0x04, 0x0e}, 2, 4) == Bytes{0, 1, 2, 3});
}

TEST_CASE("sparse ptx: refused patterns, indices and lengths", "[fast]") {
  const Bytes index = {1, 0, 0, 1};
  std::vector<std::uint32_t> words(4);
  CHECK_THROWS_WITH(encode_ptx(parse_pattern("2:4"), index.data(), 1, 8, words.data()),
                    Catch::StartsWith("meta row 0, position 1: index 0 after 1"));
  CHECK_THROWS_WITH(encode_ptx(parse_pattern("2:4"), index.data(), 1, 6, words.data()),
                    Catch::Contains("K = 6"));
  const Bytes broken_pair = {0, 1, 3, 4};
  CHECK_THROWS_WITH(
      encode_ptx(parse_pattern("4:8.pairwise"), broken_pair.data(), 1, 8, words.data()),
      Catch::StartsWith("meta row 0, position 2"));
  Bytes out(64);
  for (const Pattern& p : test::patterns(1, kMostGroup)) {
    if (kMeaningful.count(to_string(p)) != 0) continue;
    const std::string refused = to_string(p) +
                                " has no ptx metadata: expected 1:2, 2:4 or "
                                "4:8.pairwise";
    CHECK_THROWS_WITH(encode_ptx(p, out.data(), 1, p.group, words.data()), refused);
    CHECK_THROWS_WITH(decode_ptx(p, words.data(), 1, p.group, out.data()), refused);
  }
}

TEST_CASE("sparse ptx: the worked example of the guide", "[fast]") {
  const Pattern p = parse_pattern("2:4");
  const Bytes a = {0, 7, 0, 0xfe, 0, 0, 5, 0};
  Bytes kept(4), index(4);
  compress(p, DenseOperand<std::uint8_t>{&find_format("int8"), a.data(), 1, 8}, kept.data(),
           index.data());
  CHECK(kept == Bytes{7, 0xfe, 0, 5});
  CHECK(index == Bytes{1, 3, 0, 2});
  CHECK(encoded<std::uint8_t>(p, index, 1, 8) == Bytes{0x8d});
  CHECK(encoded<std::uint32_t>(p, index, 1, 8) == std::vector<std::uint32_t>{0x8d});
}

}  // namespace ptx_test
