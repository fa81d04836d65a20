// The JSON form gives every valid description back, and refuses unknown keys.
#include "emu/unit/description/json.hpp"

#include <unistd.h>

#include <filesystem>
#include <map>
#include <type_traits>

#include "emu/unit/description/fields.hpp"
#include "formats/storage/json.hpp"
#include "formats/storage/json_reader.hpp"
#include "formats/storage/npy.hpp"
#include "tests/catch.hpp"
#include "tests/emu/unit/description/samples.hpp"

namespace json_test {

using namespace numemu;
using namespace numemu::unit;
using namespace numemu::unit::test;
using Catch::Contains;

namespace {

/// Every field as text, and the table.
std::vector<std::string> fields_of(const UnitDescription& u) {
  std::vector<std::string> texts;
  for_each_field(u, [&](const char*, const auto& field) { texts.push_back(text_of(field)); });
  return texts;
}

/// A minimal unit with these members added.
std::string unit_with(const std::string& members) {
  return R"({"numemu_unit": 1, "core": "chain", "accumulator": {"format": "float32"})" +
         (members.empty() ? "" : ", " + members) + "}";
}

UnitDescription parse(const std::string& members) {
  return parse_description(unit_with(members), "u.json");
}

struct Folder {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("numemu_description_" + std::to_string(getpid()));
  Folder() { std::filesystem::create_directories(path); }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string operator/(const char* name) const { return (path / name).string(); }
};

}  // namespace

TEST_CASE("description json: 1000 random descriptions come back exactly", "[fast]") {
  std::map<std::string, int> seen;
  for (const UnitDescription& u : random_valid(11, 1000)) {
    ++seen[text_of(u.core) + " " + text_of(u.scaling.point)];
    if (u.products != nullptr) continue;
    const std::string json = description_json(u);
    INFO(json);
    const UnitDescription back = parse_description(json, "u.json");
    CHECK(fields_of(back) == fields_of(u));
    CHECK(description_json(back) == json);
  }
  for (const CoreKind core : kAllCores) CHECK(seen[text_of(core) + " none"] > 20);
  for (const char* scaled : {"fused exponents", "fused groups", "exact after_sum"})
    CHECK(seen[scaled] > 5);
}

TEST_CASE("description json: the canonical form", "[fast]") {
  UnitDescription u = sample(CoreKind::fused);
  u.accumulator.rounding = {.mode = RoundingMode::rtz};
  u.alignment.zero_exponent.reset();
  u.alignment.floor = -133;
  u.sparsity = {2, 4};
  u.nan_code = 0x7fffffff;
  CHECK(description_json(u) == R"({
  "numemu_unit": 1,
  "name": "my.unit",
  "a": "float8_e4m3fn",
  "b": "float8_e4m3fn",
  "c": "float32",
  "d": "float32",
  "core": "fused",
  "k": 32,
  "group": 16,
  "accumulator": {
    "format": "float32",
    "rounding": "rtz"
  },
  "alignment": {
    "fraction_bits": 20,
    "zero_exponent": null,
    "floor": -133
  },
  "nan_code": "0x7fffffff",
  "sparsity": "2:4"
}
)");
  // No bit below the largest exponent is a number like any other, and written out.
  u.alignment.fraction_bits = 0;
  CHECK(parse_description(description_json(u), "u.json").alignment.fraction_bits == 0);
  u.k = -1;
  CHECK_THROWS_WITH(description_json(u), "my.unit: k: expected 0 to 1048576");
}

TEST_CASE("description json: NaN is the quiet one of D unless it is given", "[fast]") {
  CHECK(parse("").nan_code == 0x7fc00000);
  CHECK(parse(R"("nan_code": "0x7FFFFFFF")").nan_code == 0x7fffffff);
  const auto with_register = [](const std::string& format) {
    return parse_description(
               R"({"numemu_unit": 1, "core": "chain", "accumulator": {)" + format + "}}", "u.json")
        .nan_code;
  };
  CHECK(with_register(R"("format": "float16")") == 0x7e00);
  CHECK(with_register(R"("format": "float6_e2m3fn")") == 0);
  CHECK(with_register(R"("bits": 24)") == 0);
}

TEST_CASE("description json: aliases and short values", "[fast]") {
  const UnitDescription u = parse_description(
      R"-({"numemu_unit": 1, "core": "chain", "a": "e4m3fn", "b": null, "c": null, "sparsity": null,
           "accumulator": {"format": "f16", "rounding": "sr(8)"}})-",
      "u.json");
  CHECK(u.a->name == "float8_e4m3fn");
  CHECK(u.b == nullptr);
  CHECK(u.accumulator.rounding.random_bits == 8);
  CHECK(u.sparsity.dense());
}

TEST_CASE("description json: what is not known is refused with the nearest name", "[fast]") {
  const auto refuses = [](const std::string& members, const std::string& text) {
    INFO(members);
    CHECK_THROWS_WITH(parse(members), "u.json: " + text);
  };
  refuses(R"("acumulator": {})", "unknown key 'acumulator'; did you mean 'accumulator'?");
  refuses(R"("chain": {"chanks": 2})", "chain: unknown key 'chanks'; did you mean 'chains'?");
  refuses(R"("order": "ascendin")",
          "order: unknown value 'ascendin'; did you mean 'ascending'? (known: ascending, "
          "pairs_mod4, odd_first)");
  refuses(R"("nan": "x87")",
          "nan: unknown value 'x87'; did you mean 'x86'? (known: canonical, x86)");
  refuses(R"("a": "float8_e4m3fm")",
          "a: unknown format 'float8_e4m3fm'; did you mean 'float8_e4m3fn'?");
  refuses(R"("c_rounding": "rtx")", "c_rounding: unknown rounding 'rtx'; did you mean 'rtz'?");
  refuses(R"("k": "32")", "k: expected an integer from -1073741824 to 1073741824");
  refuses(R"("k": null)", "k: expected an integer");
  refuses(R"("k": 1e300)", "k: expected an integer from -1073741824 to 1073741824");
  refuses(R"("chain": {"fused": 1})", "chain.fused: expected true or false");
  refuses(R"("chain": 3)", "chain: expected an object, such as {\"chunk\": 64}");
  refuses(R"("chain": null)", "chain: expected an object, such as {\"chunk\": 64}");
  // A key of another object is found there.
  refuses(R"("fraction_bits": 13)",
          "unknown key 'fraction_bits'; did you mean 'alignment.fraction_bits' or "
          "'second.fraction_bits'?");
  refuses(R"("chain": {"leaf": 2})", "chain: unknown key 'leaf'; did you mean 'tree.leaf'?");
  refuses(R"("name": null)", "name: expected a string");
  refuses(R"("a": 8)", "a: expected a string");
  refuses(R"("c_rounding": null)", "c_rounding: expected a string");
  refuses(R"-("alignment": {"rounding": "sr(8)"})-",
          "alignment.rounding: expected a rounding without random bits");
  for (const char* code : {"7fc0", "0x", "0xg", "0x 1", "0x-1", "0x10000000000000000"}) {
    refuses(std::string(R"("nan_code": ")") + code + "\"",
            "nan_code: expected a code in hexadecimal, as in \"0x7fff\"");
  }
  for (const char* pattern : {"2", "2:", ":4", "2:4:8", "2:4 ", "a:b", "99999999999:4"}) {
    refuses(std::string(R"("sparsity": ")") + pattern + "\"",
            "sparsity: expected N:M, as in \"2:4\", or null for dense");
  }
  refuses(R"("tree": {"leaf": 2})", "unit: tree.leaf: expected together with core tree");
}

TEST_CASE("description json: all that is wrong at once, a line each", "[fast]") {
  const auto lines_of = [](const std::string& text) {
    try {
      (void)parse_description(text, "u.json");
    } catch (const DescriptionErrors& errors) {
      CHECK(errors.what() == errors.lines().front());
      return errors.lines();
    }
    return std::vector<std::string>{};
  };
  CHECK(
      lines_of(R"({"numemu_unit": 1, "name": "mine", "core": "fused", "a": "e4m3fm", "b": "e4m3fn",
                     "k": 32, "group": 12, "fraction_bits": 13, "order": "up", "chain": [],
                     "tree": {"leaf": 2}, "accumulator": {"format": "float32", "bits": 8}})") ==
      std::vector<std::string>{
          "u.json: unknown key 'fraction_bits'; did you mean 'alignment.fraction_bits' or "
          "'second.fraction_bits'?",
          "u.json: chain: expected an object, such as {\"chunk\": 64}",
          "u.json: a: unknown format 'e4m3fm'; did you mean 'e4m3fn'?",
          "u.json: order: unknown value 'up'; known: ascending, pairs_mod4, odd_first",
          "u.json: expected a key 'alignment.fraction_bits' with core fused: bits kept below the "
          "largest exponent",
          "u.json: mine: group: expected a divisor of k, 32",
          "u.json: mine: accumulator.bits: expected together with accumulator.format null",
          "u.json: mine: tree.leaf: expected together with core tree"});
  // What a misspelt key holds is not missing.
  CHECK(lines_of(R"({"numemu_unit": 1, "core": "fused", "a": "e4m3fn", "b": "e4m3fn",
                     "aluignment": {"fraction_bits": 13}})") ==
        std::vector<std::string>{"u.json: unknown key 'aluignment'; did you mean 'alignment'?"});
  // Without a core nothing is known of the other fields.
  CHECK(lines_of(R"({"numemu_unit": 2, "core": "fuse", "k": -1})") ==
        std::vector<std::string>{
            "u.json: numemu_unit: expected version 1",
            "u.json: core: unknown value 'fuse'; did you mean 'fused'? (known: fused, chain, tree, "
            "exact, integer, xnor, table)"});
  // Whatever is wrong, nothing is read through a null pointer.
  for (const CoreKind core : kAllCores) {
    for (const char* rest :
         {R"("k": -3, "group": -2, "order": "odd_first")",
          R"("tree": {"leaf": 0}, "chain": {"chains": 0, "chunk": -1})",
          R"("scaling": {"point": "groups", "block": -1}, "sparsity": "0:4")",
          R"("outer": {"every": -1}, "alignment": {"fraction_bits": -1})",
          R"("outer": {"every": 7, "format": "float32"}, "a": "float64")",
          R"("outer": {"every": 4}, "accumulator": {"format": "e8m0fnu"}, "nan_code": "0x1234567")",
          R"-("a": "sign1", "b": "codebook(none.npy)", "input": {"format": "int8"})-"}) {
      INFO(text_of(core) << " " << rest);
      CHECK_FALSE(lines_of(R"({"numemu_unit": 1, "core": ")" + text_of(core) + "\", " + rest + "}")
                      .empty());
    }
  }
}

TEST_CASE("description json: templates are valid and hold every key of their core", "[fast]") {
  for (const CoreKind core : kAllCores) {
    const Folder folder;
    const std::string text = description_template(core);
    INFO(text);
    if (core == CoreKind::table) {
      const std::vector<std::int32_t> products(256);
      write_npy(folder / "products.npy", ArrayType::int32, {16, 16}, products.data());
    }
    const UnitDescription u = parse_description(text, "t.json", folder.path.string());
    CHECK(u.core == core);
    CHECK(u.name == "my.unit");
    CHECK_THAT(text, Contains("\"k\"") && Contains("\"group\"") && Contains("\"outer\""));
    CHECK((text.find("\"alignment\"") != text.npos) == (core == CoreKind::fused));
    CHECK((text.find("\"chunk\"") != text.npos) == (core == CoreKind::chain));
    CHECK((text.find("\"leaf\"") != text.npos) == (core == CoreKind::tree));
    CHECK((text.find("\"bits\"") != text.npos) == is_integer_core(u));
  }
}

TEST_CASE("description json: the schema has every field with its type", "[fast]") {
  const Json schema = Json::parse(description_schema());
  CHECK(schema["required"].dump() == R"(["numemu_unit","core"])");
  const Json& properties = schema["properties"];
  const UnitDescription any;
  std::size_t members = 0;
  for_each_field(any, [&](const std::string& key, const auto& field) {
    const std::size_t point = key.find('.');
    const std::string top = key.substr(0, point);
    INFO(key);
    REQUIRE(properties.contains(top));
    const Json& one = point == key.npos ? properties.at(top)
                                        : properties.at(top)["properties"][key.substr(point + 1)];
    REQUIRE(one.contains("type"));
    ++members;
    if constexpr (Named<std::remove_cvref_t<decltype(field)>>)
      CHECK(one["enum"].size() == names_of(field).size());
  });
  // Objects, `products` and the version are the rest.
  std::size_t found = 0;
  for (const auto& item : properties.items()) {
    const bool object = item.value().contains("properties");
    if (object) CHECK(item.value()["additionalProperties"] == false);
    found += object ? item.value()["properties"].size() : 1;
  }
  CHECK(found == members + 2);
  CHECK(properties["k"]["default"] == 0);
  CHECK(properties["alignment"]["properties"]["floor"].dump() ==
        R"({"type":["integer","null"],"default":-126})");
  CHECK(properties["core"]["enum"].dump() ==
        R"(["fused","chain","tree","exact","integer","xnor","table"])");
}

TEST_CASE("description json: version, core and syntax", "[fast]") {
  const auto refuses = [](const std::string& text, const std::string& message) {
    CHECK_THROWS_WITH(parse_description(text, "u.json"), message);
  };
  refuses(
      "[]",
      R"(u.json: expected an object, such as {"numemu_unit": 1, "core": "exact", "accumulator": )"
      R"({"format": "float32"}})");
  refuses("{}", "u.json: expected a key 'numemu_unit' with the version 1");
  refuses(R"({"numemu_unit": 2})", "u.json: numemu_unit: expected version 1");
  refuses(R"({"numemu_unit": "1"})", "u.json: numemu_unit: expected version 1");
  refuses(R"({"numemu_unit": 1})", "u.json: expected a key 'core'");
  refuses(R"({"numemu_unit": 1, "core": "fused", "a": "e4m3fn", "b": "e4m3fn",
              "accumulator": {"format": "float32"}, "alignment": {"floor": null}})",
          "u.json: expected a key 'alignment.fraction_bits' with core fused: bits kept below the "
          "largest exponent");
  refuses(R"({"numemu_unit": 1,)", "u.json: line 1 column 19: not valid JSON");
  refuses(R"({"core": "chain", "core": "tree"})", "u.json: duplicate key 'core'");
  CHECK_THROWS_WITH(read_description("/nonexistent/u.json"), Contains("/nonexistent/u.json"));
}

TEST_CASE("description json: files, with a table of products beside them", "[fast]") {
  const Folder folder;
  UnitDescription u = sample(CoreKind::table);
  auto products = std::make_shared<std::vector<std::int32_t>>();
  for (int i = 0; i < 32; ++i) products->push_back(i * 100003 - 1000000);
  u.products = products;
  write_description(u, folder / "u.json");
  UnitDescription back = read_description(folder / "u.json");
  CHECK(fields_of(back) == fields_of(u));
  CHECK(*back.products == *u.products);
  CHECK(std::filesystem::exists(folder / "u.products.npy"));

  std::int16_t narrow[32];
  for (int i = 0; i < 32; ++i) narrow[i] = static_cast<std::int16_t>(-i);
  write_npy(folder / "u.products.npy", ArrayType::int16, {4, 8}, narrow);
  back = read_description(folder / "u.json");
  CHECK(back.products->at(31) == -31);

  UnitDescription plain = sample(CoreKind::fused);
  write_description(plain, folder / "plain.json");
  CHECK(fields_of(read_description(folder / "plain.json")) == fields_of(plain));
}

TEST_CASE("description json: tables that do not fit are refused before memory is taken", "[fast]") {
  const Folder folder;
  write_description(sample(CoreKind::table), folder / "u.json");
  const std::string npy = folder / "u.products.npy";
  const auto refuses = [&](const std::string& text) {
    CHECK_THROWS_WITH(read_description(folder / "u.json"),
                      folder / "u.json" + ": products: " + npy + text);
  };
  const std::string expected = ": expected int16 or int32 of shape [4, 8], found ";
  std::vector<double> values(32);
  write_npy(npy, ArrayType::float64, {4, 8}, values.data());
  refuses(expected + "float64 of shape [4, 8]");
  write_npy(npy, ArrayType::int32, {8, 4}, values.data());
  refuses(expected + "int32 of shape [8, 4]");
  std::filesystem::resize_file(npy, std::uintmax_t{1} << 34);  // sparse
  refuses(expected + "17179869184 bytes");
  std::filesystem::remove(npy);
  CHECK_THROWS_WITH(read_description(folder / "u.json"), Contains("u.products.npy"));

  const auto members = [](const char* core) {
    return std::string(R"({"numemu_unit": 1, "core": ")") + core +
           R"(", "products": "/nonexistent.npy"})";
  };
  CHECK_THROWS_WITH(parse_description(members("xnor"), "u.json"),
                    "u.json: unit: a: expected a format with core xnor");
  CHECK_THROWS_WITH(parse_description(members("exact"), "u.json"),
                    "u.json: unit: products: expected together with core table");
}

TEST_CASE("description json: the examples and keys of docs/describe-a-unit.md", "[fast]") {
  const std::string page = read_text(NUMEMU_SOURCE "/docs/describe-a-unit.md");
  int examples = 0;
  for (std::size_t at = page.find("```json"); at != page.npos; at = page.find("```json", at + 1)) {
    const std::size_t begin = at + 7, end = page.find("```", begin);
    CHECK_NOTHROW(parse_description(page.substr(begin, end - begin), "example"));
    ++examples;
  }
  CHECK(examples == 4);
  const UnitDescription any;
  for_each_field(any, [&](const std::string& key, const auto& field) {
    INFO(key);
    CHECK_THAT(page, Contains("`" + key + "`"));
    if constexpr (Named<std::remove_cvref_t<decltype(field)>>) {
      for (const std::string_view name : names_of(field))
        CHECK_THAT(page, Contains("`" + std::string(name) + "`"));
    }
  });
}

}  // namespace json_test
