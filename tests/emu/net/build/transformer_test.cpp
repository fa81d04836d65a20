// The character transformer and the character LSTM: sizes, and that no output sees a later
// character.
#include <algorithm>

#include "emu/net/build/builder.hpp"
#include "emu/net/forward.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/build/learning.hpp"

namespace numemu::net::transformer_test {
namespace {

TEST_CASE("the sizes of the networks for text", "[fast]") {
  constexpr std::int64_t kWidth = 128, kLetters = 65, kContext = 64;
  const std::int64_t norm = 2 * kWidth, square = kWidth * kWidth;
  const std::int64_t attention = 4 * square + 3 * kWidth;  // keys without bias
  const std::int64_t mlp = 8 * square + 5 * kWidth;
  CHECK(build_net("char-transformer", {kContext}, kLetters).parameter_count() ==
        kLetters * kWidth + kContext * kWidth + 4 * (2 * norm + attention + mlp) + norm +
            kLetters * kWidth + kLetters);
  CHECK(build_net("lstm-char", {kContext}, kLetters).parameter_count() ==
        kLetters * 64 + 4 * 128 * (64 + 128 + 1) + kLetters * 129);
}

TEST_CASE("logits depend on the characters up to their own and on each of them", "[fast]") {
  for (const char* name : {"char-transformer", "lstm-char"}) {
    INFO(name);
    test::Lesson lesson = test::lesson(name, {7}, 11);
    Numerics numerics;
    const Tensor before = forward(lesson.graph, lesson.x, numerics);
    for (std::int64_t place = 0; place < 7; ++place) {
      Tensor x = lesson.x;
      x.data[place] = x.data[place] == 0 ? 1 : 0;  // of the first sample
      const Tensor after = forward(lesson.graph, x, numerics);
      for (std::int64_t t = 0; t < 7; ++t) {
        const auto first = before.data.begin() + t * 11;
        const bool same = std::equal(first, first + 11, after.data.begin() + t * 11);
        CHECK(same == (t < place));
      }
      CHECK(std::equal(before.data.begin() + 77, before.data.end(), after.data.begin() + 77));
    }
  }
}

TEST_CASE("positions tell equal characters apart", "[fast]") {
  test::Lesson lesson = test::lesson("char-transformer", {4}, 5);
  std::fill(lesson.x.data.begin(), lesson.x.data.end(), 2.0f);
  Numerics numerics;
  const Tensor y = forward(lesson.graph, lesson.x, numerics);
  CHECK_FALSE(std::equal(y.data.begin(), y.data.begin() + 5, y.data.begin() + 5));
}

}  // namespace
}  // namespace numemu::net::transformer_test
