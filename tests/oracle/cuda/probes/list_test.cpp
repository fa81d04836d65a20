// The list of probes of every instruction: well formed, known questions, and the published file
// code for code.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "tests/catch.hpp"
#include "tests/oracle/cuda/probes/exact.hpp"
#include "tests/oracle/cuda/probes/probes.hpp"
#include "tests/oracle/cuda/probes/question.hpp"
#include "tests/oracle/cuda/replay/tile_answers.hpp"

namespace numemu::oracle::recording {
namespace {

bool fits(Element e, std::uint64_t code) {
  const int bits = info(e).bits;
  return bits == 64 || code >> bits == 0;
}

TEST_CASE("probes are well formed and ask known questions", "[fast]") {
  std::set<std::string> known, asked;
  for (const Question& question : questions()) {
    CHECK(known.insert(question.id).second);
    CHECK(std::string(question.text).back() == '?');
  }
  for (const Instruction& i : instructions()) {
    CAPTURE(name(i.kind), name(i));
    const std::vector<Probe> all = probes(i);
    // Records stay small: a few tens of kilobytes an instruction.
    REQUIRE(all.size() >= 10);
    REQUIRE(all.size() <= (i.sparsity == Sparsity::dense ? 205U : 230U));
    std::set<std::string> ids;
    for (const Probe& probe : all) {
      CAPTURE(probe.id);
      asked.insert(probe.question);
      REQUIRE(ids.insert(probe.id).second);
      REQUIRE(known.count(probe.question) == 1);
      REQUIRE(probe.a.size() == static_cast<std::size_t>(i.kept()));
      REQUIRE(probe.b.size() == static_cast<std::size_t>(i.k));
      REQUIRE(probe.metadata.size() == static_cast<std::size_t>(i.groups()));
      REQUIRE(probe.scale_a.size() == static_cast<std::size_t>(i.scales()));
      REQUIRE(probe.scale_b.size() == static_cast<std::size_t>(i.scales()));
      REQUIRE(fits(i.c, probe.c));
      REQUIRE(std::all_of(probe.a.begin(), probe.a.end(), [&](auto x) { return fits(i.a, x); }));
      REQUIRE(std::all_of(probe.b.begin(), probe.b.end(), [&](auto x) { return fits(i.b, x); }));
      for (const std::uint8_t word : probe.metadata)
        REQUIRE((word & 3) < (word >> 2));  // ordered metadata: ascending
      if (i.sparsity == Sparsity::one_of_two)
        for (const std::uint8_t word : probe.metadata) REQUIRE((word == 0b0100 || word == 0b1110));
    }
  }
  CHECK(asked == known);
}

TEST_CASE("tile p holds probe p in row 0 and column 0, zeros elsewhere", "[fast]") {
  for (const char* each : {"m16n8k32.f32.e4m3.e4m3.f32", "m16n8k16.f32.bf16.bf16.f32",
                           "m16n8k64.block16.f32.e2m1.e2m1.f32.ue4m3"}) {
    for (const char* kind : {"mma", "mmasp", "mmabs"}) {
      const int at = find_instruction(kind, each);
      if (at < 0) continue;
      const Instruction& i = instructions()[static_cast<std::size_t>(at)];
      const std::vector<Probe> all = probes(i);
      const Batch batch = tiles_of(i, all);
      const TileBytes bytes = tile_bytes(i);
      REQUIRE(batch.count == static_cast<int>(all.size()));
      for (std::size_t p = 0; p < all.size(); ++p) {
        const auto expect = [](const std::vector<std::uint8_t>& tiles, std::size_t from,
                               std::size_t size, const std::vector<std::uint64_t>& codes,
                               int width) {
          std::vector<std::uint8_t> wanted(size, 0);
          for (std::size_t n = 0; n < codes.size(); ++n)
            store_code(wanted.data() + n * static_cast<std::size_t>(width), width, codes[n]);
          return std::equal(wanted.begin(), wanted.end(),
                            tiles.begin() + static_cast<std::ptrdiff_t>(from));
        };
        REQUIRE(expect(batch.a, p * bytes.a, bytes.a, all[p].a, info(i.a).bytes));
        REQUIRE(expect(batch.b, p * bytes.b, bytes.b, all[p].b, info(i.b).bytes));
        REQUIRE(expect(batch.c, p * bytes.c, bytes.c, {all[p].c}, info(i.c).bytes));
        for (std::size_t g = 0; g < bytes.metadata; ++g)
          REQUIRE(batch.metadata[p * bytes.metadata + g] ==
                  (g < all[p].metadata.size() ? all[p].metadata[g] : 0b0100));
        for (std::size_t s = 0; s < all[p].scale_a.size(); ++s) {
          REQUIRE(batch.scale_a[p * bytes.scale_a + s] == all[p].scale_a[s]);
          REQUIRE(batch.scale_b[p * bytes.scale_b + s] == all[p].scale_b[s]);
        }
      }
    }
  }
}

TEST_CASE("sums of selected B name the k that each word of metadata selects", "[fast]") {
  const std::map<std::string, std::vector<int>> selected = {{"0100", {0, 1}}, {"1000", {0, 2}},
                                                            {"1100", {0, 3}}, {"1001", {1, 2}},
                                                            {"1101", {1, 3}}, {"1110", {2, 3}}};
  constexpr int kValues[] = {1, 2, 4, 6};
  int checked = 0;
  for (const Instruction& i : instructions()) {
    if (i.sparsity == Sparsity::dense) continue;
    CAPTURE(name(i.kind), name(i));
    std::vector<Rule> known;
    for (const char* chip : {"H100", "B200", "RTXBlackwell"})
      if (known.empty()) known = rules(chip, i);
    if (known.empty()) continue;
    const std::vector<Probe> all = probes(i);
    const Batch tiles = tiles_of(i, all);
    for (std::size_t p = 0; p < all.size(); ++p) {
      if (all[p].id.rfind("sparse-order.select.", 0) != 0) continue;
      const std::vector<int>& two = selected.at(all[p].id.substr(20));
      // 1:2 keeps one tf32, named by a pair of its halves.
      const int sum = i.sparsity == Sparsity::one_of_two ? kValues[two[0] / 2]
                                                         : kValues[two[0]] + kValues[two[1]];
      CAPTURE(all[p].id);
      CHECK(answer(known[0], dot_of(tiles, static_cast<int>(p), 0, 0)) ==
            probing::code_of(i.d, probing::integer(sum)));
      ++checked;
    }
  }
  CHECK(checked > 500);
}

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, at);) parts.push_back(part);
  return parts;
}

std::vector<std::uint64_t> hex_codes(const std::string& list) {
  std::vector<std::uint64_t> codes;
  for (const std::string& text : split(list, ',')) codes.push_back(std::stoull(text, nullptr, 16));
  return codes;
}

/// A row of the published file: the probe of our list with its id, and the three predictions.
struct Published {
  std::string id;
  const Instruction* instruction;
  Probe probe;
  std::vector<std::uint64_t> a, b, predictions;
  std::uint64_t c;
};

/// Empty, and aloud, where the file is absent.
std::vector<Published> published() {
  const char* variable = std::getenv("NUMEMU_SHARED");
  const std::string path =
      std::string(variable != nullptr ? variable : NUMEMU_SHARED) + "/golden/mma/probes_hopper.tsv";
  std::vector<Published> rows;
  std::ifstream file(path);
  if (!file) WARN("skipped: " << path << " is absent");
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    const std::vector<std::string> cells = split(line, '\t');
    CAPTURE(cells.at(0));
    // "mma.sync m16n8k16 f32.bf16.bf16.f32"
    const std::vector<std::string> words = split(cells.at(1), ' ');
    const int at = find_instruction("mma", words.at(1) + "." + words.at(2));
    REQUIRE(at >= 0);
    const Instruction& i = instructions()[static_cast<std::size_t>(at)];
    const std::vector<Probe> all = probes(i);
    const auto probe = std::find_if(all.begin(), all.end(),
                                    [&](const Probe& each) { return each.id == cells[0]; });
    REQUIRE(probe != all.end());
    rows.push_back({cells[0], &i, *probe, hex_codes(cells.at(4)), hex_codes(cells.at(5)),
                    hex_codes(cells.at(7) + "," + cells.at(8) + "," + cells.at(9)),
                    std::stoull(cells.at(6), nullptr, 16)});
  }
  if (file.eof()) REQUIRE(rows.size() == 43);
  return rows;
}

TEST_CASE("the probes of the published file are made code for code", "[fast][shared]") {
  for (const Published& row : published()) {
    CAPTURE(row.id);
    CHECK(row.probe.a == row.a);
    CHECK(row.probe.b == row.b);
    CHECK(row.probe.c == row.c);
  }
}

TEST_CASE("the rules predict what the published file says of each probe", "[fast][shared]") {
  for (const Published& row : published()) {
    const Instruction& i = *row.instruction;
    const Batch tile = tiles_of(i, {row.probe});
    // The file's columns: zeros count as -126; Leeds' floor; neither.
    std::vector<Rule> columns(3, rules("H100", i).at(0));
    columns[1].zero = columns[2].zero = ZeroProduct::dropped;
    columns[1].exponent_floor = i.d == Element::f16 ? -21 : -133;
    const std::uint64_t sign = 1ULL << (info(i.d).bits - 1);
    for (std::size_t column = 0; column < 3; ++column) {
      CAPTURE(row.id, column);
      // The file does not vouch for the sign of a zero.
      const auto unsigned_zero = [sign](std::uint64_t d) { return d == sign ? 0 : d; };
      CHECK(unsigned_zero(answer(columns[column], dot_of(tile, 0, 0, 0))) ==
            unsigned_zero(row.predictions[column]));
    }
  }
}

}  // namespace
}  // namespace numemu::oracle::recording
