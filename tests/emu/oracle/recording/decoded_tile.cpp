// Decodes tiles and chooses the instructions that stand for all types.
#include "tests/emu/oracle/recording/decoded_tile.hpp"

#include <map>
#include <tuple>

#include "formats/codec.hpp"
#include "tests/catch.hpp"

namespace numemu::oracle::recording {
namespace {

constexpr std::uint64_t kSeed = 3;

const Format& format_of(Element e) {
  static const std::map<Element, const Format*> kFormats = {
      {Element::f64, &find_format("float64")},
      {Element::f32, &find_format("float32")},
      {Element::f16, &find_format("float16")},
      {Element::bf16, &find_format("bfloat16")},
      {Element::e5m2, &find_format("float8_e5m2")},
      {Element::e4m3, &find_format("float8_e4m3fn")},
      {Element::e3m2, &find_format("float6_e3m2fn")},
      {Element::e2m3, &find_format("float6_e2m3fn")},
      {Element::e2m1, &find_format("float4_e2m1fn")},
      {Element::ue8m0, &find_format("float8_e8m0fnu")},
      {Element::tf32, &find_format("tfloat32")},
      {Element::ue4m3, &find_format("float8_e4m3fn")}};
  return *kFormats.at(e);
}

std::vector<Line> decoded(Element e, const std::vector<std::uint8_t>& array, int lines,
                          int length) {
  std::vector<Line> result(static_cast<std::size_t>(lines));
  const std::uint8_t* at = array.data();
  for (Line& line : result) {
    line.codes.reserve(static_cast<std::size_t>(length));
    line.values.reserve(static_cast<std::size_t>(length));
    for (int j = 0; j < length; ++j, at += info(e).bytes) {
      line.codes.push_back(load_code(at, info(e).bytes));
      line.values.push_back(value_of_code(e, line.codes.back()));
    }
  }
  return result;
}

}  // namespace

Value value_of_code(Element e, std::uint64_t code) {
  if (is_integer(e)) {
    const std::int64_t sign = info(e).has_sign ? std::int64_t{1} << (info(e).bits - 1) : 0;
    const std::int64_t x = (static_cast<std::int64_t>(code) ^ sign) - sign;
    return {.kind = x == 0 ? Class::zero : Class::finite,
            .negative = x < 0,
            .significand = static_cast<std::uint64_t>(x < 0 ? -x : x)};
  }
  if (e == Element::tf32) code >>= 13;
  if (e == Element::ue4m3) code &= 0x7f;
  return decode(format_of(e), code);
}

std::int64_t integer(const Value& v) {
  const auto magnitude = static_cast<std::int64_t>(v.significand);
  return v.negative ? -magnitude : magnitude;
}

void each_tile(int number, DataKind kind, const std::function<void(const Decoded&)>& look) {
  const Instruction& i = instructions()[static_cast<std::size_t>(number)];
  for (std::int64_t tile = static_cast<int>(kind); tile < tiles_of(i); tile += kDataKinds) {
    Batch batch(i, 1);
    fill(batch, number, kSeed, tile);
    Decoded d{decoded(i.a, batch.a, i.m, i.kept()),
              decoded(i.b, batch.b, i.n, i.k),
              decoded(i.c, batch.c, i.m, i.n),
              decoded(i.scale, batch.scale_a, i.m, i.scales()),
              decoded(i.scale, batch.scale_b, i.n, i.scales()),
              {},
              tile / kDataKinds};
    for (int row = 0; row < i.m; ++row) {
      d.place.emplace_back();
      for (int j = 0; j < i.kept(); ++j)
        d.place.back().push_back(place_of_kept(i, batch.metadata.data() + row * i.groups(), j));
    }
    look(d);
  }
}

std::vector<int> chosen() {
  std::map<std::tuple<Element, Element, Element, Element, int, Sparsity>, int> smallest;
  const std::vector<Instruction>& table = instructions();
  const auto size = [](const Instruction& i) { return (i.m * i.kept() + i.n * i.k) * i.m * i.n; };
  for (std::size_t at = 0; at < table.size(); ++at) {
    const Instruction& i = table[at];
    if (i.a != i.b && !is_integer(i.a)) continue;
    const auto [found, fresh] =
        smallest.try_emplace({i.a, i.b, i.c, i.scale, i.block, i.sparsity}, static_cast<int>(at));
    if (!fresh && size(i) < size(table[static_cast<std::size_t>(found->second)]))
      found->second = static_cast<int>(at);
  }
  std::vector<int> numbers;
  for (const auto& entry : smallest) numbers.push_back(entry.second);
  return numbers;
}

void for_each(const std::function<void(int, const Instruction&)>& test) {
  for (const int number : chosen()) {
    const Instruction& i = instructions()[static_cast<std::size_t>(number)];
    INFO(name(i.kind) << " " << name(i));
    test(number, i);
  }
}

}  // namespace numemu::oracle::recording
