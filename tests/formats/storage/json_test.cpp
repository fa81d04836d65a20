// Values as nlohmann/json has them: kinds, comparison, order of keys, initializer lists, text.
#include "formats/storage/json.hpp"

#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "formats/error.hpp"
#include "tests/catch.hpp"

namespace numemu::json_test {
namespace {

using Catch::Contains;

TEST_CASE("a list of pairs that begin with a text is an object", "[fast]") {
  CHECK(Json({{"a", 1}, {"b", {2, 3}}, {"c", {{"d", nullptr}}}}).dump() ==
        R"({"a":1,"b":[2,3],"c":{"d":null}})");
  CHECK(Json({{"a", 1}, {2, 3}}).dump() == R"([["a",1],[2,3]])");
  CHECK(Json({"a", 1}).dump() == R"(["a",1])");
  CHECK(Json({{"a", 1}, {"a", 2}}).dump() == R"({"a":1})");
  CHECK(Json::array({{"a", 1}}).dump() == R"([["a",1]])");
  CHECK(Json::object().dump() == "{}");
  CHECK(Json(std::vector<int>{1, 2}).dump() == "[1,2]");
  CHECK(Json(std::map<std::string, bool>{{"b", true}, {"a", false}}).dump() ==
        R"({"a":false,"b":true})");
  CHECK(Json().is_null());
}

TEST_CASE("JSON is written as nlohmann/json writes it", "[fast]") {
  for (const char* text :
       {"null", "[]", "{}", "[1,-1,18446744073709551615,18446744073709551616,-9223372036854775808]",
        "[0.1,1e300,5e-324,1.0,100000.0,1e16,-0.0,123456789012345680.0]",
        R"({"b":{"a":[{},[],null,true]},"a":"\"\\\u0001 \u00e9 \ud834\udd1e/"})"}) {
    const auto expected = nlohmann::ordered_json::parse(text);
    const Json json = Json::parse(text);
    CHECK(json.dump() == expected.dump());
    CHECK(json.dump(2) == expected.dump(2));
    CHECK(Json::parse(json.dump()) == json);
  }
  CHECK(Json(std::numeric_limits<double>::infinity()).dump() == "null");
  CHECK_THROWS_AS(Json("\xff").dump(), Error);
  CHECK(Json("\xff").dump(-1, Json::NotUtf8::replace) == "\"\xEF\xBF\xBD\"");
}

TEST_CASE("numbers compare by value and keep their kind", "[fast]") {
  CHECK(Json::parse("1").is_number_unsigned());
  CHECK_FALSE(Json(1).is_number_unsigned());
  CHECK(Json(1).is_number_integer());
  CHECK(Json(1) == Json(1u));
  CHECK(Json(1) == 1.0);
  CHECK(Json(1) != 1.5);
  CHECK(Json(true) != 1);
  CHECK(Json("1") != 1);
  CHECK(Json(NAN) != NAN);
  CHECK(Json(-3).get<double>() == -3);
  CHECK(Json(2.75).get<int>() == 2);
  CHECK(Json(~std::uint64_t{0}).get<std::uint64_t>() == ~std::uint64_t{0});
  CHECK(Json({{"a", 1}, {"b", 2}}) != Json({{"b", 2}, {"a", 1}}));
}

TEST_CASE("members are added, found, replaced and erased in their order", "[fast]") {
  Json json;
  json["b"]["c"] = 1;
  json["a"] = "x";
  json["list"].push_back(2.5);
  CHECK(json.dump() == R"({"b":{"c":1},"a":"x","list":[2.5]})");
  CHECK(json.contains("a"));
  CHECK(json.find("z") == std::as_const(json).end());
  CHECK(json.find("a")->text() == "x");
  CHECK(*json.find_path("/b/c") == 1);
  CHECK(json.find_path("/b/c/d") == nullptr);
  CHECK(json.find_path("/list/0") == nullptr);
  CHECK(json.value("a", "") == "x");
  CHECK(json.value("z", 7) == 7);
  json.update({{"b", 3}, {"d", 4}});
  CHECK(json.erase("a") == 1);
  CHECK(json.erase("a") == 0);
  CHECK(json.dump() == R"({"b":3,"list":[2.5],"d":4})");
  json["list"].erase(0);
  CHECK(json["list"].empty());
  for (auto& [key, value] : json.items()) value = key;
  CHECK(json.dump() == R"({"b":"b","list":"list","d":"d"})");
  std::string values;
  for (const Json& value : json) values += value.text();
  CHECK(values == "blistd");
}

TEST_CASE("a value may be replaced by a part of itself", "[fast]") {
  Json copied = {{"a", {{"b", {1, 2}}}}};
  copied = copied["a"];
  CHECK(copied.dump() == R"({"b":[1,2]})");
  copied = std::move(copied["b"]);
  CHECK(copied.dump() == "[1,2]");
}

TEST_CASE("what is missing or of another type is an Error", "[fast]") {
  const Json json = {{"a", {1, 2}}};
  CHECK_THROWS_WITH(json["b"], "JSON: expected a key 'b'");
  CHECK_THROWS_WITH(json["a"][2], "JSON: expected an index below 2");
  CHECK_THROWS_WITH(json["a"]["b"], "JSON: expected an object, found an array");
  CHECK_THROWS_WITH(json["a"].text(), "JSON: expected a text, found an array");
  CHECK_THROWS_WITH(json[0], "JSON: expected an array, found an object");
  CHECK_THROWS_WITH(Json("x").get<double>(), "JSON: expected a number, found a text");
  CHECK_THROWS_WITH(Json().value("a", 1), "JSON: expected an object, found null");
  CHECK_THROWS_WITH(Json::parse("[1"), Contains("JSON: byte 3: not valid JSON"));
  CHECK(Json::parse_or_null("[1").is_null());
}

}  // namespace
}  // namespace numemu::json_test
