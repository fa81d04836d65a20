// The table of instructions: names, chips, and what follows from a row.
#include "emu/oracle/recording/instruction.hpp"

#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "emu/oracle/recording/batch.hpp"
#include "tests/catch.hpp"

namespace numemu::oracle::recording::instruction_test {
namespace {

/// NUMEMU_SHARED of the environment, else of the build.
std::string shared_folder() {
  const char* folder = std::getenv("NUMEMU_SHARED");
  return folder != nullptr ? folder : NUMEMU_SHARED;
}

bool is_float8(Element e) { return e == Element::e4m3 || e == Element::e5m2; }
bool is_half(Element e) { return e == Element::f16 || e == Element::bf16; }

}  // namespace

TEST_CASE("names are unique and find their row", "[fast]") {
  std::set<std::string> seen;
  const std::vector<Instruction>& table = instructions();
  REQUIRE(table.size() > 300);
  for (std::size_t place = 0; place < table.size(); ++place) {
    CAPTURE(full_name(table[place]));
    CHECK(seen.insert(full_name(table[place])).second);
    CHECK(find_instruction(name(table[place].kind), name(table[place])) == static_cast<int>(place));
  }
  CHECK(find_instruction("mma", "m16n8k16.f32.f16.f16") == -1);
  CHECK(find_instruction("wgmma", "m16n8k16.f32.f16.f16.f32") == -1);
}

TEST_CASE("names read as the indexes write them", "[fast]") {
  CHECK(find_instruction("mma", "m16n8k16.f32.f16.f16.f32") >= 0);
  CHECK(find_instruction("mma", "m16n8k32.s32.s8.u8.s32.satfinite") >= 0);
  CHECK(find_instruction("mmasp", "m16n8k64.f32.e4m3.e5m2.f32") >= 0);
  CHECK(find_instruction("wgmma", "m64n8k32.f16.e4m3.e4m3") >= 0);
  CHECK(find_instruction("mmabs", "m16n8k64.block16.f32.e2m1.e2m1.f32.ue4m3") >= 0);
  CHECK(find_instruction("tc5bs", "m128n8k64.block32.f32.e2m1.e2m1.ue8m0") >= 0);
}

TEST_CASE("a row of 32 bytes of A makes an instruction", "[fast]") {
  // wgmma and tcgen05 take 256 bits of A a row (PTX ISA, "Matrix shape"); the narrow types of
  // kind::f8f6f4 fill bytes.
  for (const Instruction& i : instructions()) {
    const bool wide = i.kind == Kind::wgmma || i.kind == Kind::wgmmasp || i.kind == Kind::tc5 ||
                      i.kind == Kind::tc5sp || i.kind == Kind::tc5bs;
    if (!wide) continue;
    CAPTURE(full_name(i));
    const bool packed = i.a == Element::e2m1 && i.block != 0 && i.k == 64;
    const int bits = packed ? 4 : info(i.a).bits < 8 ? 8 : info(i.a).bits;
    CHECK(i.kept() * bits == 256);
    CHECK(i.n == 8);
  }
}

TEST_CASE("kept values, groups and scales follow from k", "[fast]") {
  for (const Instruction& i : instructions()) {
    CAPTURE(full_name(i));
    const bool sparse = i.kind == Kind::mmasp || i.kind == Kind::wgmmasp || i.kind == Kind::tc5sp;
    CHECK(sparse == (i.sparsity != Sparsity::dense));
    CHECK(i.kept() == (sparse ? i.k / 2 : i.k));
    CHECK(i.groups() * i.group() == (sparse ? i.k : 0));
    const Sparsity expected = !sparse                                  ? Sparsity::dense
                              : info(i.a).bits == 32                   ? Sparsity::one_of_two
                              : is_integer(i.a) && info(i.a).bits == 4 ? Sparsity::pairs_of_four
                                                                       : Sparsity::two_of_four;
    CHECK(i.sparsity == expected);

    const bool scaled = i.kind == Kind::mmabs || i.kind == Kind::tc5bs;
    CHECK(scaled == (i.block != 0));
    CHECK(scaled == (i.scale != Element::none));
    CHECK(i.scales() * i.block == (scaled ? i.k : 0));
    if (i.scale == Element::ue4m3) CHECK(i.block == 16);
    if (scaled && i.k == 32) CHECK(i.block == 32);
  }
}

TEST_CASE("operands of a row belong together", "[fast]") {
  for (const Instruction& i : instructions()) {
    CAPTURE(full_name(i));
    CHECK(is_integer(i.a) == is_integer(i.b));
    CHECK(is_integer(i.a) == (i.d == Element::s32));
    CHECK(is_integer(i.a) == (i.c == Element::s32));
    if (i.satfinite) CHECK(is_integer(i.a));
    if (is_integer(i.a)) CHECK(info(i.a).bits == info(i.b).bits);
    if (is_half(i.a) || i.a == Element::tf32 || i.a == Element::f64) CHECK(i.a == i.b);
    if (i.a == Element::f64) CHECK((i.c == Element::f64 && i.d == Element::f64));
    if (i.a == Element::bf16 || i.a == Element::tf32) CHECK(i.d == Element::f32);
    if (i.c != i.d) CHECK((i.m == 8 && i.k == 4));
    if (i.block != 0) CHECK(i.d == Element::f32);
  }
}

TEST_CASE("chips are those that PTX names", "[fast]") {
  // PTX ISA, "Target ISA Notes" of mma, mma.sp, wgmma.mma_async and tcgen05.mma.
  for (const Instruction& i : instructions()) {
    CAPTURE(full_name(i));
    CHECK(i.chips.first <= i.chips.last);
    int first = 80;
    switch (i.kind) {
      case Kind::mma:
        if (i.a == Element::f16 && i.k == 4) first = 70;
        if (i.a == Element::f16 && i.k == 8) first = 75;
        if (is_integer(i.a) && i.m == 8) first = 75;
        if (i.a == Element::f64 && i.m == 16) first = 90;
        if (is_float8(i.a)) first = 89;
        if (info(i.a).specials == Specials::finite || info(i.b).specials == Specials::finite)
          first = 120;
        break;
      case Kind::mmasp:
        if (is_float8(i.a)) first = i.d == Element::f16 ? 120 : 89;  // ptxas 13.0: only there
        break;
      case Kind::wgmma:
      case Kind::wgmmasp:
        first = 90;
        break;
      case Kind::mmabs:
        first = 120;
        break;
      default:
        first = 100;
    }
    CHECK(i.chips.first == first);
    CHECK(i.chips.exact ==
          (first == 120 || i.kind == Kind::wgmma || i.kind == Kind::wgmmasp || first == 100));
    if (first == 90 && i.chips.exact) CHECK(i.chips.last == 90);
    if (first == 100) CHECK(i.chips.last == 119);
    if (first == 120) CHECK(i.chips.last == 129);
    if (!i.chips.exact) CHECK(i.chips.last == 999);
  }
}

TEST_CASE("bytes of a tile follow from its row", "[fast]") {
  const int place = find_instruction("mmasp", "m16n8k64.s32.s8.s8.s32");
  REQUIRE(place >= 0);
  const TileBytes bytes = tile_bytes(instructions()[static_cast<std::size_t>(place)]);
  CHECK(bytes.a == 16 * 32);
  CHECK(bytes.b == 8 * 64);
  CHECK(bytes.c == 16 * 8 * 4);
  CHECK(bytes.d == 16 * 8 * 4);
  CHECK(bytes.metadata == 16 * 16);
  CHECK(bytes.scale_a == 0);
}

TEST_CASE("every NVIDIA instruction of the published models has a row", "[fast][shared]") {
  const std::string path = shared_folder() + "/golden/mma/index_mmasim.tsv";
  std::ifstream file(path);
  if (!file) {
    WARN("skipped: no " << path);
    return;
  }
  const std::set<std::string> ours = {"mma", "wgmma", "tc5", "tc5bs", "mmabs"};
  std::map<std::string, int> rows;
  std::string line;
  std::getline(file, line);
  REQUIRE(line.rfind("file\tunit\tkind\tinstr\tK\ta\tb\tc\td\tscale\tblock\tnscale", 0) == 0);
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    std::vector<std::string> field(12);
    for (std::string& text : field) std::getline(fields, text, '\t');
    ++rows[field[2]];
    if (ours.count(field[2]) == 0) continue;
    CAPTURE(field[1], field[2], field[3]);
    const int place = find_instruction(field[2], field[3]);
    REQUIRE(place >= 0);
    const Instruction& i = instructions()[static_cast<std::size_t>(place)];
    CHECK(std::to_string(i.k) == field[4]);
    CHECK(info(i.a).name == field[5]);
    CHECK(info(i.b).name == field[6]);
    CHECK(info(i.c).name == field[7]);
    CHECK(info(i.d).name == field[8]);
    CHECK((i.block == 0 ? "-" : info(i.scale).name) == field[9]);
    CHECK(std::to_string(i.block) == field[10]);
    CHECK(std::to_string(i.scales()) == field[11]);
  }
  CHECK(rows["mma"] >= 30);
  CHECK(rows["wgmma"] >= 9);
  // The only other kind is AMD's.
  for (const auto& [kind, count] : rows) CHECK((ours.count(kind) != 0 || kind == "mfma"));
}

}  // namespace numemu::oracle::recording::instruction_test
