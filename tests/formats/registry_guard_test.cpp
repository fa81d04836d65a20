// Guards the tables: rows without a documentation line, clashing names, modes without a proof.
#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "formats/blocks/block_format.hpp"
#include "formats/format.hpp"
#include "formats/storage/packed/layouts.hpp"
#include "tests/catch.hpp"
#include "tests/oracle/proof.hpp"
#include "tests/pattern.hpp"

namespace numemu::registry_guard_test {
namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(NUMEMU_SOURCE "/" + path);
  REQUIRE(file.good());
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The cells of the table line that begins with "| `name` |"; empty if there is none or more than
// one.
std::vector<std::string> documented_row(const std::string& doc, const std::string& name) {
  std::vector<std::string> cells;
  std::istringstream lines(doc);
  int found = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("| `" + name + "` |", 0) != 0) continue;
    ++found;
    std::istringstream row(line.substr(1));
    cells.clear();
    for (std::string cell; std::getline(row, cell, '|');) {
      const auto begin = cell.find_first_not_of(' '), end = cell.find_last_not_of(' ');
      cells.push_back(begin == std::string::npos ? "" : cell.substr(begin, end - begin + 1));
    }
  }
  return found == 1 ? cells : std::vector<std::string>{};
}

std::string quoted_aliases(const Format& f) {
  std::string text;
  for (const std::string& alias : aliases_of(f)) text += (text.empty() ? "`" : " `") + alias + "`";
  return text;
}

TEST_CASE("registry guard: docs/formats.md has one line per row, with its fields and aliases",
          "[fast]") {
  const std::string doc = text_of("docs/formats.md");
  const char* lowest[] = {"subnormal", "normal", "scale", "flush"};
  const char* specials[] = {"ieee", "nan1", "fnuz", "finite", "top"};
  for (const Format* f : named_formats()) {
    INFO(f->name);
    const std::vector<std::string> cells = documented_row(doc, f->name);
    if (f->kind != Kind::floating) {
      REQUIRE(cells.size() == 3);  // name, range, aliases
      CHECK(cells[2] == quoted_aliases(*f));
      continue;
    }
    REQUIRE(cells.size() == 11);
    CHECK(cells[1] == std::to_string(f->exponent_bits));
    CHECK(cells[2] == std::to_string(f->mantissa_bits));
    CHECK(cells[3] == std::to_string(f->bias));
    CHECK(cells[4] == specials[static_cast<int>(f->specials)]);
    CHECK(cells[5] == lowest[static_cast<int>(f->field_zero)]);
    CHECK(cells[9] == quoted_aliases(*f));
    CHECK(cells[10] == f->source);
  }
  CHECK(documented_row(doc, "float8_e9m9").empty());
}

TEST_CASE("registry guard: docs/formats.md has one line per row of blocks.def, and no others",
          "[fast]") {
  const std::string doc = text_of("docs/formats.md");
  std::set<std::string> known;
  for (const BlockFormat* f : named_block_formats()) {
    INFO(f->name);
    known.insert(f->name);
    const std::vector<std::string> cells = documented_row(doc, f->name);
    REQUIRE(cells.size() == 6);  // name, element, scale, block, bits per element, default rule
    const std::string shift =
        f->element_exponent == 0 ? "" : " times 2^" + std::to_string(f->element_exponent);
    const std::string tensor = f->tensor_scale ? ", and a float32 for the tensor" : "";
    CHECK(cells[1] == "`" + f->element->name + "`" + shift);
    CHECK(cells[2] == "`" + f->scale->name + "`" + tensor);
    CHECK(cells[3] == std::to_string(f->size));
    std::ostringstream bits;
    bits << f->bits_per_element();
    CHECK(cells[4] == bits.str());
    CHECK(cells[5] == f->default_rule);
  }
  // The other lines of the section's table describe formats: mx(...), bfp(...), group(...).
  const auto section = doc.find("\n## Block formats\n");
  REQUIRE(section != std::string::npos);
  std::string table = doc.substr(section, doc.find("\n**", section) - section);
  const test::Pattern plain("\n\\| `([a-z0-9_]+)` \\|");
  std::set<std::string> documented;
  for (auto row = plain.next(table); !row.empty(); row = plain.next(table))
    documented.insert(row[1]);
  CHECK(documented == known);
}

TEST_CASE("registry guard: docs/arrays.md has one line per row of layouts.def", "[fast]") {
  const std::string doc = text_of("docs/arrays.md");
  for (const PackedLayout& layout : packed_layouts()) {
    const std::vector<std::string_view> expected = {layout.file(), layout.elements, layout.bits,
                                                    layout.scales, layout.tensors,  layout.source};
    const std::vector<std::string> cells = documented_row(doc, layout.name);
    INFO(layout.name);
    REQUIRE(cells.size() == expected.size() + 1);
    for (std::size_t i = 0; i < expected.size(); ++i) CHECK(cells[i + 1] == expected[i]);
  }
}

TEST_CASE("registry guard: no name clashes with another, a descriptor, P3109 or an integer",
          "[fast]") {
  const std::string doc = text_of("docs/formats.md");
  const test::Pattern reserved(
      "binary[0-9]+p[0-9]+[su][ef]|u?int[0-9]+|codebook.*|(rne|rna|rtz|rup|rdn|rodd|sr.*)|.*[(),+ "
      "].*");
  std::set<std::string> names;
  for (const Format* f : named_formats()) {
    INFO(f->name);
    CHECK(names.insert(f->name).second);
    for (const std::string& alias : aliases_of(*f)) {
      INFO(alias);
      CHECK(names.insert(alias).second);
      CHECK(reserved.whole(alias).empty());
      CHECK(&find_format(alias) == f);
    }
  }
  const test::Pattern described("e[0-9]+m[0-9]+");
  for (const std::string& name : names) {
    INFO(name);
    if (described.whole(name).empty()) continue;
    // Where the same text is a description of another format, the documentation must say how that
    // one is written (e2m1 is the OCP element, the IEEE-like one is e2m1+ieee).
    if (&find_format(name + "+ieee") != &find_format(name))
      CHECK_THAT(doc, Catch::Contains("`" + name + "+ieee`"));
  }
  for (int k = 3; k <= 15; ++k) {
    for (const std::string& name : oracle::p3109_names(k)) {
      CHECK(names.count(name) == 0);
      CHECK(find_format(name).name == name);
    }
  }
}

// The enumerators of `enum class NAME` in a header; comments are left out.
std::set<std::string> enumerators(const std::string& path, const std::string& name) {
  std::istringstream lines(text_of(path));
  std::string text;
  for (std::string line; std::getline(lines, line);) text += line.substr(0, line.find("//")) + '\n';
  const auto match = test::Pattern("enum class " + name + "[^{]*\\{([^}]*)\\}").next(text);
  REQUIRE(match.size() == 2);
  std::string body = match[1];
  std::set<std::string> list;
  const test::Pattern word("[A-Za-z_][A-Za-z_0-9]*");
  for (auto found = word.next(body); !found.empty(); found = word.next(body)) list.insert(found[0]);
  return list;
}

TEST_CASE("registry guard: every rounding mode, variant and overflow mode is proven", "[fast]") {
  const std::string header = "formats/rounding.hpp";
  std::set<std::string> modes, variants, overflows;
  for (const Rounding& rounding : oracle::roundings({8})) {
    std::string text = to_string(rounding);
    modes.insert(text.substr(0, text.find('(')));
  }
  for (const StochasticVariant variant : oracle::kVariants) {
    const std::string text =
        to_string(Rounding{.mode = RoundingMode::sr, .variant = variant, .random_bits = 8});
    variants.insert(text == "sr(8)" ? "c" : text.substr(5, text.size() - 6));
  }
  for (const Overflow overflow : oracle::kOverflows) overflows.insert(to_string(overflow));
  CHECK(modes == enumerators(header, "RoundingMode"));
  CHECK(variants == enumerators(header, "StochasticVariant"));
  CHECK(overflows == enumerators(header, "Overflow"));
}

TEST_CASE("registry guard: every encoding, field zero and row is in the oracle", "[fast]") {
  // A new row must be typed into tests/oracle/specification.cpp, from its source.
  for (const Format* f : named_formats()) CHECK_NOTHROW(oracle::specified(f->name));
  std::set<Specials> specials;
  std::set<FieldZero> lowest;
  std::set<Kind> kinds;
  const auto see = [&](const Format& f) {
    specials.insert(f.specials);
    lowest.insert(f.field_zero);
    kinds.insert(f.kind);
  };
  for (const Format* f : named_formats()) see(*f);
  for (const std::string& name : oracle::descriptor_names(4)) see(find_format(name));
  for (const std::string& name : oracle::p3109_names(4)) see(find_format(name));
  CHECK(specials.size() == enumerators("formats/format.hpp", "Specials").size());
  CHECK(lowest.size() == enumerators("formats/format.hpp", "FieldZero").size());
  // A codebook has no row; codebook_test.cpp compares it with its own list.
  CHECK(kinds.size() + 1 == enumerators("formats/format.hpp", "Kind").size());
}

}  // namespace
}  // namespace numemu::registry_guard_test
