// The inputs are a pure function of their coordinates: the words of the contract, any division into
// batches, codes within their types, and pinned first tiles.
#include "emu/oracle/recording/data.hpp"

#include <map>
#include <thread>

#include "emu/oracle/recording/hashes.hpp"
#include "formats/random.hpp"
#include "tests/catch.hpp"

namespace numemu::oracle::recording::data_test {
namespace {

const Instruction& instruction(int number) {
  return instructions()[static_cast<std::size_t>(number)];
}

int find(const char* kind, const char* name) {
  const int number = find_instruction(kind, name);
  INFO(kind << " " << name);
  REQUIRE(number >= 0);
  return number;
}

std::uint64_t code(const std::vector<std::uint8_t>& array, Element e, std::size_t at) {
  const auto bytes = static_cast<std::size_t>(info(e).bytes);
  return load_code(array.data() + at * bytes, info(e).bytes);
}

bool same_inputs(const Batch& x, const Batch& y) {
  return x.a == y.a && x.b == y.b && x.c == y.c && x.metadata == y.metadata &&
         x.scale_a == y.scale_a && x.scale_b == y.scale_b;
}

TEST_CASE("an empty batch has the sizes of its tiles and valid metadata", "[fast]") {
  for (const Instruction& i : instructions()) {
    const Batch batch(i, 3);
    const TileBytes bytes = tile_bytes(i);
    CHECK(batch.count == 3);
    CHECK(batch.a == std::vector<std::uint8_t>(3 * bytes.a, 0));
    CHECK(batch.b.size() == 3 * bytes.b);
    CHECK(batch.c.size() == 3 * bytes.c);
    CHECK(batch.d.size() == 3 * bytes.d);
    CHECK(batch.scale_a.size() == 3 * bytes.scale_a);
    CHECK(batch.scale_b.size() == 3 * bytes.scale_b);
    CHECK(batch.metadata == std::vector<std::uint8_t>(3 * bytes.metadata, 0b0100));
    CHECK((bytes.metadata != 0) == (i.sparsity != Sparsity::dense));
  }
}

TEST_CASE("the kinds of data follow one another", "[fast]") {
  CHECK(kind_of_tile(0) == DataKind::narrow);
  CHECK(kind_of_tile(19) == DataKind::specials);
  CHECK(std::string(name(DataKind::narrow)) == "narrow");
  CHECK(std::string(name(DataKind::accumulator)) == "accumulator");
  CHECK(std::string(name(DataKind::specials)) == "specials");
}

// Integers of the widest kind are the top bits of their words, so that the words are seen from
// outside.
TEST_CASE("element i of an operand has the random bits of the contract", "[fast]") {
  const std::uint64_t seed = 0xfedcba9876543210;
  const std::int64_t tile = 1000000007;  // of the widest kind
  REQUIRE(kind_of_tile(tile) == DataKind::widest);
  for (const char* name : {"m16n8k32.s32.s8.u8.s32", "m16n8k64.s32.u4.s4.s32.satfinite"}) {
    const int number = find("mma", name);
    const Instruction& i = instruction(number);
    Batch batch(i, 1);
    fill(batch, number, seed, tile);
    int different = 0;
    const auto compare = [&](std::uint16_t draw, const std::vector<std::uint8_t>& array, Element e,
                             int elements) {
      const RandomSource source{seed, Stream::vectors, static_cast<std::uint32_t>(number), draw};
      for (int at = 0; at < elements; ++at) {
        const auto index = static_cast<std::uint64_t>(tile * elements + at);
        const std::uint32_t expected = source.bits(index, 32) >> (32 - info(e).bits);
        if (code(array, e, static_cast<std::size_t>(at)) != expected) ++different;
      }
    };
    compare(0, batch.a, i.a, i.m * i.k);
    compare(1, batch.b, i.b, i.n * i.k);
    compare(2, batch.c, i.c, i.m * i.n);
    CHECK(different == 0);
  }
}

TEST_CASE("element i of a float64 operand has the bits of block i", "[fast]") {
  const int number = find("mma", "m8n8k4.f64.f64.f64.f64");
  Batch batch(instruction(number), 1);
  fill(batch, number, 5, 17);
  const RandomSource source{5, Stream::vectors, static_cast<std::uint32_t>(number), 0};
  int repaired = 0;
  for (std::uint64_t at = 0; at < 32; ++at) {
    const std::uint64_t index = 4 * (17 * 32 + at);
    std::uint64_t expected = source.bits(index, 32);
    expected |= static_cast<std::uint64_t>(source.bits(index + 1, 32)) << 32;
    const std::uint64_t got = code(batch.a, Element::f64, at);
    if (got != expected) ++repaired;
    CHECK((got | 1ULL << 52) == (expected | 1ULL << 52));  // infinities and NaN lose that bit
  }
  CHECK(repaired <= 2);
}

TEST_CASE("any division into batches and threads gives the same tiles", "[fast]") {
  for (const auto& [kind, name] : {std::pair{"mma", "m8n8k4.f64.f64.f64.f64"},
                                   {"mmasp", "m16n8k64.s32.u8.s8.s32"},
                                   {"wgmmasp", "m64n8k16.f32.tf32.tf32"},
                                   {"mmabs", "m16n8k64.block16.f32.e2m1.e2m1.f32.ue4m3"}}) {
    const int number = find(kind, name);
    const Instruction& i = instruction(number);
    Batch whole(i, 40);
    fill(whole, number, 9, 100);
    const TileBytes bytes = tile_bytes(i);
    std::vector<Batch> parts;
    for (const int size : {1, 17, 22}) parts.emplace_back(i, size);
    const std::int64_t first[] = {100, 101, 118};
    std::vector<std::thread> threads;
    for (std::size_t p = 0; p < 3; ++p)
      threads.emplace_back([&, p] { fill(parts[p], number, 9, first[p]); });
    for (std::thread& thread : threads) thread.join();
    Batch joined(i, 40);
    for (std::size_t p = 0; p < 3; ++p) {
      const auto at = static_cast<std::size_t>(first[p] - 100);
      const auto copy = [at](const auto& from, auto& to, std::size_t of_tile) {
        std::copy(from.begin(), from.end(), to.begin() + static_cast<std::ptrdiff_t>(at * of_tile));
      };
      copy(parts[p].a, joined.a, bytes.a);
      copy(parts[p].b, joined.b, bytes.b);
      copy(parts[p].c, joined.c, bytes.c);
      copy(parts[p].metadata, joined.metadata, bytes.metadata);
      copy(parts[p].scale_a, joined.scale_a, bytes.scale_a);
      copy(parts[p].scale_b, joined.scale_b, bytes.scale_b);
    }
    INFO(name);
    CHECK(same_inputs(whole, joined));
  }
}

TEST_CASE("seed and instruction give other tiles", "[fast]") {
  const int number = find("mma", "m16n8k16.f32.f16.f16.f32");
  const auto filled = [number](int as, std::uint64_t seed) {
    Batch batch(instruction(number), 2);
    fill(batch, as, seed, 0);
    return batch;
  };
  const Batch first = filled(number, 0);
  CHECK(same_inputs(first, filled(number, 0)));
  CHECK(first.a != filled(number, 1).a);
  CHECK(first.a != filled(number, std::uint64_t{1} << 32).a);
  CHECK(first.b != filled(number + 1, 0).b);
}

TEST_CASE("every code of every instruction is within its type, metadata is valid", "[fast]") {
  std::map<int, int> words_of_four, words_of_two;
  for (std::size_t number = 0; number < instructions().size(); ++number) {
    const Instruction& i = instructions()[number];
    Batch batch(i, 20);
    fill(batch, static_cast<int>(number), 1, 0);
    int beyond = 0;
    const auto check = [&beyond](const std::vector<std::uint8_t>& array, Element e) {
      if (info(e).bits == 8 * info(e).bytes) return;
      for (const std::uint8_t byte : array) beyond += byte >> info(e).bits;
    };
    check(batch.a, i.a);
    check(batch.b, i.b);
    INFO(name(i.kind) << " " << name(i));
    CHECK(beyond == 0);
    for (const std::uint8_t word : batch.metadata)
      ++(i.sparsity == Sparsity::one_of_two ? words_of_two : words_of_four)[word];
  }
  // PTX ISA, "Sparse matrix storage": ascending pairs of two-bit indexes; 1:2 knows two words.
  std::vector<int> of_four, of_two;
  for (const auto& word : words_of_four) of_four.push_back(word.first);
  for (const auto& word : words_of_two) of_two.push_back(word.first);
  CHECK(of_four == std::vector<int>{0b0100, 0b1000, 0b1001, 0b1100, 0b1101, 0b1110});
  CHECK(of_two == std::vector<int>{0b0100, 0b1110});
}

TEST_CASE("kept codes have the places that their metadata says", "[fast]") {
  const auto places = [](const char* kind, const char* name, std::vector<std::uint8_t> words) {
    const Instruction& i = instruction(find(kind, name));
    words.resize(static_cast<std::size_t>(i.groups()), 0b0100);
    std::vector<int> result;
    for (int j = 0; j < 8; ++j) result.push_back(place_of_kept(i, words.data(), j));
    return result;
  };
  CHECK(places("mma", "m16n8k16.f32.f16.f16.f32", {}) == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(places("mmasp", "m16n8k32.f32.f16.f16.f32", {0b1110, 0b1000, 0b0100, 0b1101}) ==
        std::vector<int>{2, 3, 4, 6, 8, 9, 13, 15});
  CHECK(places("mmasp", "m16n8k16.f32.tf32.tf32.f32", {0b1110, 0b0100, 0b1110, 0b0100}) ==
        std::vector<int>{1, 2, 5, 6, 8, 10, 12, 14});
  CHECK(places("mmasp", "m16n8k64.s32.s4.s4.s32", {0b1110, 0b1001}) ==
        std::vector<int>{4, 5, 6, 7, 10, 11, 12, 13});
}

struct Pinned {
  const char *kind, *name;
  int number;  ///< not the place in the table, which may grow
  std::uint64_t hash;
};

// Answers are only worth what the inputs they belong to are: these never change.
TEST_CASE("the first forty tiles are pinned", "[fast]") {
  const Pinned pinned = GENERATE(values<Pinned>({
      {"mma", "m16n8k16.f32.f16.f16.f32", 0, 0x69fb001afe026e4c},
      {"mma", "m16n8k8.f32.tf32.tf32.f32", 1, 0xe1ca74838be7daba},
      {"mma", "m8n8k4.f64.f64.f64.f64", 2, 0xee8175ca9bac2427},
      {"mma", "m16n8k32.s32.s8.u8.s32.satfinite", 3, 0x2ad6e7f69d83faa7},
      {"mma", "m16n8k64.s32.u4.u4.s32", 4, 0x03428c3451977101},
      {"mmasp", "m16n8k32.f32.bf16.bf16.f32", 5, 0xa5cc08bf712b9c4f},
      {"mmasp", "m16n8k16.f32.tf32.tf32.f32", 6, 0x020ea5d6d6003e25},
      {"mmasp", "m16n8k128.s32.s4.s4.s32", 7, 0x7109007d164088ed},
      {"wgmma", "m64n8k32.f16.e4m3.e5m2", 8, 0xb13a6cbb3db3865b},
      {"wgmmasp", "m64n8k64.s32.u8.s8", 9, 0x8a5f60fed13b5461},
      {"mma", "m16n8k32.f32.e3m2.e2m3.f32", 10, 0x58e85701a12b97db},
      {"mmabs", "m16n8k32.block32.f32.e5m2.e2m1.f32.ue8m0", 11, 0x594763d138623033},
      {"mmabs", "m16n8k64.block16.f32.e2m1.e2m1.f32.ue4m3", 12, 0x64680a799470ba12},
  }));
  Batch batch(instruction(find(pinned.kind, pinned.name)), 40);
  fill(batch, pinned.number, 0, 0);
  std::uint64_t hash = kFnvBasis;
  for (const auto* array :
       {&batch.a, &batch.b, &batch.c, &batch.metadata, &batch.scale_a, &batch.scale_b})
    hash = fnv1a(hash, array->data(), array->size());
  CAPTURE(pinned.kind, pinned.name);
  CHECK(hash == pinned.hash);
}

}  // namespace
}  // namespace numemu::oracle::recording::data_test
