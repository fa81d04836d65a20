// The probes of every instruction: well formed, of known questions, and the published file code for
// code.
#include "emu/oracle/recording/probe.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "emu/oracle/dots/draft.hpp"
#include "emu/oracle/probes/probes.hpp"
#include "emu/unit/unit.hpp"
#include "tests/catch.hpp"

namespace numemu::oracle::recording::probe_test {
namespace {

bool fits(Element e, std::uint64_t code) {
  const int bits = info(e).bits;
  return bits == 64 || code >> bits == 0;
}

TEST_CASE("probes are well formed and ask known questions", "[fast]") {
  std::set<std::string> known, asked;
  for (const OpenQuestion& question : open_questions()) {
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

TEST_CASE("the formats of elements are the registry's", "[fast]") {
  for (const Element e :
       {Element::f64, Element::f32, Element::tf32, Element::f16, Element::bf16, Element::e5m2,
        Element::e4m3, Element::e3m2, Element::e2m3, Element::e2m1, Element::s8, Element::u8,
        Element::s4, Element::u4, Element::ue8m0, Element::ue4m3}) {
    const Format& f = element_format(e);
    CAPTURE(f.name);
    const Format& row = find_format(f.name);
    CHECK(f.kind == row.kind);
    CHECK(f.is_signed == row.is_signed);
    CHECK(f.bits == row.bits);
    CHECK(f.exponent_bits == row.exponent_bits);
    CHECK(f.mantissa_bits == row.mantissa_bits);
    CHECK(f.bias == row.bias);
    CHECK(f.specials == row.specials);
    CHECK(f.field_zero == row.field_zero);
    CHECK(f.container_shift == row.container_shift);
  }
}

/// The exact sum, rounded once.
unit::UnitDescription exact_unit(const Ports& ports) {
  unit::UnitDescription u;
  u.name = "exact";
  u.a = ports.a;
  u.b = ports.b;
  u.core = ports.d == nullptr ? unit::CoreKind::integer : unit::CoreKind::exact;
  u.accumulator.format = ports.d;
  u.sparsity = ports.sparsity;
  return u;
}

TEST_CASE("sums of selected B name the k that each word of metadata selects", "[fast]") {
  const std::map<std::string, std::vector<int>> selected = {{"0100", {0, 1}}, {"1000", {0, 2}},
                                                            {"1100", {0, 3}}, {"1001", {1, 2}},
                                                            {"1101", {1, 3}}, {"1110", {2, 3}}};
  constexpr int kValues[] = {1, 2, 4, 6};
  int checked = 0;
  for (const Instruction& i : instructions()) {
    if (i.sparsity == Sparsity::dense) continue;
    CAPTURE(full_name(i));
    const Ports ports = ports_of(i);
    const unit::UnitDescription u = exact_unit(ports);
    for (const AskedDot& question : oracle::probes(ports)) {
      if (question.id.rfind("sparse-order.select.", 0) != 0) continue;
      CAPTURE(question.id);
      const std::string word = question.id.substr(20);
      const std::vector<std::uint8_t> metadata = probe_of(i, question.dot).metadata;
      CHECK(metadata.front() == std::stoi(word, nullptr, 2));
      // 1:2 keeps one tf32, named by a pair of its halves.
      const std::vector<int>& two = selected.at(word);
      const int sum = i.sparsity == Sparsity::one_of_two ? kValues[two[0] / 2]
                                                         : kValues[two[0]] + kValues[two[1]];
      CHECK(evaluate(u, ports, {&question.dot, 1}).front() ==
            exact_code(ports.d, ports.bits, number(sum)));
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

TEST_CASE("the units predict what the published file says of each probe", "[fast][shared]") {
  for (const Published& row : published()) {
    const Instruction& i = *row.instruction;
    const Ports ports = ports_of(i);
    Dot dot;
    dot.a = row.probe.a;
    dot.b = row.probe.b;
    dot.c = row.probe.c;
    const std::string unit =
        std::string("nvidia.h100.mma.") + info(i.a).name + "." + info(i.d).name;
    // The file's columns: zeros count as -126; Leeds' floor; neither.
    std::vector<unit::UnitDescription> columns(3, *unit::find_unit(unit + ".mmasim").description());
    columns[1].alignment.zero_exponent = columns[2].alignment.zero_exponent = std::nullopt;
    columns[1].alignment.floor = i.d == Element::f16 ? -21 : -133;
    columns[2].alignment.floor = std::nullopt;
    const std::uint64_t sign = 1ULL << (info(i.d).bits - 1);
    for (std::size_t column = 0; column < 3; ++column) {
      CAPTURE(row.id, column, unit);
      // The file does not vouch for the sign of a zero.
      const auto unsigned_zero = [sign](std::uint64_t d) { return d == sign ? 0 : d; };
      CHECK(unsigned_zero(evaluate(columns[column], ports, {&dot, 1}).front()) ==
            unsigned_zero(row.predictions[column]));
    }
  }
}

}  // namespace
}  // namespace numemu::oracle::recording::probe_test
