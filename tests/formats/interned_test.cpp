// Formats, block formats, rules, units and tables that are found again: how long they live.
#include "formats/interned.hpp"

#include <set>
#include <string>
#include <thread>

#include "formats/blocks/block_format.hpp"
#include "formats/format.hpp"
#include "formats/quantize.hpp"
#include "formats/scaling/scale_rule.hpp"
#include "tests/catch.hpp"

namespace numemu::interned_test {
namespace {

struct Counted {
  static inline int alive = 0;
  explicit Counted(int value) : number(value) { ++alive; }
  ~Counted() { --alive; }
  Counted(const Counted&) = delete;
  int number;
};

int made = 0;

const Counted& counted(int number) {
  return Interned::find<Counted>(number, [&] {
    ++made;
    return std::make_unique<const Counted>(number);
  });
}

TEST_CASE("what a scope found first ends with it, what was kept before stays", "[fast]") {
  const Counted& of_program = counted(-1);
  CHECK(&counted(-1) == &of_program);
  for (int candidate = 0; candidate < 5000; ++candidate) {
    const InternScope scope;
    CHECK(&counted(-1) == &of_program);
    const Counted& own = counted(candidate);
    CHECK(own.number == candidate);
    CHECK(&counted(candidate) == &own);
    {
      const InternScope inner;
      CHECK(&counted(candidate) == &own);
      InternScope::for_program([] { return &counted(-2); });
    }
    CHECK(Counted::alive == 3);
  }
  CHECK(Counted::alive == 2);
  CHECK(made == 5002);
}

TEST_CASE("a search over thousands of formats keeps none, and finds what the program has",
          "[fast]") {
  const Format& kept = find_format("e5m7");
  int candidates = 0;
  for (int exponent_bits = 2; exponent_bits <= 5; ++exponent_bits) {
    for (int mantissa_bits = 1; mantissa_bits <= 4; ++mantissa_bits) {
      for (int bias = 0; bias < 100; ++bias, ++candidates) {
        const InternScope scope;
        const std::string name = "e" + std::to_string(exponent_bits) + "m" +
                                 std::to_string(mantissa_bits) + "b" + std::to_string(bias);
        const Format& own = find_format(name);
        const BlockFormat& block = find_block_format("mx(" + name + ",16)");
        CHECK(*block.element == own);
        CHECK(&find_format("e5m7") == &kept);
        if (own.bits <= 8) CHECK(decode_table(own)[0] == 0);
        find_scale_rule("detuned(absmax,1." + std::to_string(1 + bias) + ")");
      }
    }
  }
  CHECK(candidates == 1600);
  CHECK(find_format("e4m3b5") == find_format("e4m3b5"));
}

TEST_CASE("what another thread keeps does not refer to the scope of this one", "[fast]") {
  const std::string name = "e3m4b11";
  {
    const InternScope scope;
    const Format& own = find_format(name);
    std::thread([&] { scaled_format(own, Span::tensor, 0); }).join();
  }
  const BlockFormat& kept = scaled_format(find_format(name), Span::tensor, 0);
  CHECK(kept.element->name == name);
}

TEST_CASE("formats are equal by what their codes mean", "[fast]") {
  Format renamed = find_format("float8_e4m3fn");
  renamed.name = "mine";
  renamed.source = "elsewhere";
  CHECK(renamed == find_format("float8_e4m3fn"));
  ++renamed.bias;
  CHECK(renamed != find_format("float8_e4m3fn"));
  CHECK(find_format("int8") != find_format("uint8"));
  CHECK(find_format("bfloat16") != find_format("float16"));
  const auto& all = named_formats();
  for (const Format* a : all) {
    for (const Format* b : all) CHECK((*a == *b) == (a->key() == b->key()));
  }
}

}  // namespace
}  // namespace numemu::interned_test
