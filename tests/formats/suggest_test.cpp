// The nearest known name.
#include "formats/suggest.hpp"

#include "tests/catch.hpp"

namespace numemu::suggest_test {
namespace {

TEST_CASE("suggest: smallest edit distance, the earliest of equals", "[fast]") {
  const std::vector<std::string> known = {"int4", "int8", "float16"};
  CHECK(nearest_name("int88", known) == "int8");
  CHECK(nearest_name("intt", known) == "int4");
  CHECK(nearest_name("flaot16", known) == "float16");
  CHECK(nearest_name("adma", {"aaa", "adam"}) == "adam");  // one exchange of two letters
  CHECK(nearest_name("BA", {"ac", "ab"}) == "ab");
  CHECK(nearest_name("", known) == "int4");
  CHECK(nearest_name("x", {}).empty());
  CHECK(nearest_name(std::string(1 << 20, 'f'), known) == "float16");
}

TEST_CASE("suggest: case does not count", "[fast]") {
  CHECK(nearest_name("E4M3FN", {"int8", "e4m3", "e4m3fn"}) == "e4m3fn");
  CHECK(unknown_name("rounding", "RNE", {"rna", "rne"}) ==
        "unknown rounding 'RNE'; did you mean 'rne'?");
  CHECK(unknown_name("overflow mode", "IEEE", {"saturate", "ieee"}) ==
        "unknown overflow mode 'IEEE'; did you mean 'ieee'?");
  CHECK(same_name("MXfp4", "mxfP4"));
  CHECK_FALSE(same_name("mxfp4", "mxfp"));
  CHECK_FALSE(same_name("a[", "a{"));  // letters only: '[' + 32 is '{'
}

TEST_CASE("suggest: a name that may be meant is near", "[fast]") {
  CHECK(suggested_name("in8", {"int4", "int8"}) == "int8");
  CHECK(suggested_name("abcdefghi", {"abcdef"}) == "abcdef");  // a third of the name
  CHECK_FALSE(suggested_name("abcdefghij", {"abcdef"}));
  CHECK_FALSE(suggested_name("x", {}));
  CHECK(suggested_name("dott", {"mul", "dot"}) == "dot");
  CHECK(suggested_name("mlu", {"mul", "dot"}) == "mul");
  CHECK_FALSE(suggested_name("div", {"mul", "dot"}));  // one letter of three
}

TEST_CASE("suggest: the hyphens of options are no letters", "[fast]") {
  const std::vector<std::string> known = {"--block", "--tile", "--axis", "--scale-rule", "--in",
                                          "--out",   "--seed", "--json", "--threads"};
  CHECK(unknown_name("option", "--rule", known) ==
        "unknown option '--rule'; did you mean '--scale-rule'?");
  CHECK(unknown_name("option", "--sede", known) ==
        "unknown option '--sede'; did you mean '--seed'?");
  CHECK(unknown_name("option", "--xyz", {"--in", "--out"}) ==
        "unknown option '--xyz'; known: --in, --out");
}

TEST_CASE("suggest: the text of an unknown name", "[fast]") {
  CHECK(unknown_name("format", "in8", {"int8"}) == "unknown format 'in8'; did you mean 'int8'?");
  CHECK(unknown_name("format", "x", {}) == "unknown format 'x'");
}

TEST_CASE("suggest: a distant name is not offered, few names are all listed", "[fast]") {
  const std::vector<std::string> few = {"glyphs", "mnist", "cifar10"};
  CHECK(unknown_name("data set", "glyph", few) ==
        "unknown data set 'glyph'; did you mean 'glyphs'?");
  CHECK(unknown_name("data set", "cifar", few) ==
        "unknown data set 'cifar'; did you mean 'cifar10'?");  // distance 2
  CHECK(unknown_name("data set", "imagenet", few) ==
        "unknown data set 'imagenet'; known: glyphs, mnist, cifar10");
  CHECK(unknown_name("data set", "", few) == "unknown data set ''; known: glyphs, mnist, cifar10");
  // Nine letters allow a distance of three, eight only two.
  CHECK(unknown_name("key", "abcdefghi", {"abcdef"}) ==
        "unknown key 'abcdefghi'; did you mean 'abcdef'?");
  CHECK(unknown_name("key", "abcdefgh", {"abcde"}) == "unknown key 'abcdefgh'; known: abcde");
  std::vector<std::string> many(12, "a_rather_long_name");
  CHECK_THAT(unknown_name("key", "xyz", many),
             Catch::Contains("known: a_rather_long_name, a_rather_long_name"));
  many.emplace_back("xyy_or_another_name");
  CHECK(unknown_name("key", "xyz", many) == "unknown key 'xyz'; near: xyy_or_another_name");
  CHECK(unknown_name("key", "qqq", many)
            .ends_with("'qqq'; known: a_rather_long_name, a_rather_long_name, a_rather_long_name, "
                       "a_rather_long_name and 9 others"));
  CHECK(unknown_name("key", "xyz", std::vector<std::string>(13, "name")).ends_with(", name"));
  many.emplace_back("int8-dynamic-and-long");
  CHECK_THAT(unknown_name("key", "int7", many), Catch::Contains("near: int8-dynamic-and-long"));
}

TEST_CASE("suggest: a part of names means them, many names have the command that lists all",
          "[fast]") {
  const std::vector<std::string> sets = {"glyphs", "cifar10", "cifar100", "lenet"};
  CHECK(unknown_name("data set", "CIFAR", sets) ==
        "unknown data set 'CIFAR'; near: cifar10, cifar100");
  CHECK(unknown_name("data set", "resnet", sets) ==
        "unknown data set 'resnet'; did you mean 'lenet'?");
  CHECK(unknown_name("data set", "resnet", {"lenet", "resnet20"}) ==
        "unknown data set 'resnet'; did you mean 'resnet20'?");
  CHECK(unknown_name("data set", "cifar1", sets) ==
        "unknown data set 'cifar1'; did you mean 'cifar10'?");
  CHECK(unknown_name("format", "fp8", {"fp4", "fp8_e4m3", "fp8_e5m2"}) ==
        "unknown format 'fp8'; near: fp8_e4m3, fp8_e5m2; all: numemu formats");
  CHECK(unknown_name("format", "int", {"int2", "int4", "uint8"}) ==
        "unknown format 'int'; near: int2, int4, uint8; all: numemu formats");
  std::vector<std::string> many;
  for (char c = 'a'; c <= 'z'; ++c) many.push_back("format_of_the_name_" + std::string(3, c));
  // Half of the letters differ, then more of them: nothing is near.
  CHECK(unknown_name("format", "formxxxx", many) ==
        "unknown format 'formxxxx'; near: format_of_the_name_aaa, format_of_the_name_bbb, "
        "format_of_the_name_ccc, format_of_the_name_ddd; all: numemu formats");
  for (const std::string& far :
       {std::string(), std::string("zap"), std::string("forxxxxx"), std::string(100, 'q')})
    CHECK(unknown_name("format", far, many) == "unknown format '" + far + "'; all: numemu formats");
}

}  // namespace
}  // namespace numemu::suggest_test
