// Fields declared once: what is written is read again, and what is wrong is named by its key.
#include "formats/storage/fields.hpp"

#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace fields_test {

using namespace numemu;
using numemu::test::message_of;

namespace {

struct Inner {
  std::int64_t count = 0;
  static void fields(auto& self, const auto& visit) { visit("count", self.count); }
};

struct Outer {
  double value = 0;
  bool flag = false;
  std::string name = {};
  std::vector<double> list = {};
  std::array<double, 2> pair{};
  std::map<std::string, Inner> by_name = {};
  Named<double> named = {};
  std::optional<Inner> maybe = {};
  Member<Inner> or_null = Member<Inner>::null();
  static void fields(auto& self, const auto& visit) {
    visit("value", self.value);
    visit("flag", self.flag);
    visit("name", self.name);
    visit("list", self.list);
    visit("pair", self.pair);
    visit("by_name", self.by_name);
    visit("named", self.named);
    visit("maybe", self.maybe);
    visit("or_null", self.or_null);
  }
};

}  // namespace

TEST_CASE("fields are written in their order and read again", "[fast]") {
  Outer outer{.value = NAN, .flag = true, .name = "n", .list = {1.5, HUGE_VAL}, .pair = {2, 3}};
  outer.by_name["a"].count = 7;
  outer.named = {{"z", 1}, {"b", 2}};
  const std::string text =
      R"({"value":null,"flag":true,"name":"n","list":[1.5,null],"pair":[2.0,3.0],)"
      R"("by_name":{"a":{"count":7}},"named":{"z":1.0,"b":2.0},"or_null":null})";
  CHECK(json_of(outer).dump() == text);
  const auto again = read_fields<Outer>(Json::parse(text), "row");
  CHECK(std::isnan(again.value));
  CHECK(again.list[0] == 1.5);
  CHECK(std::isnan(again.list[1]));
  CHECK(again.by_name.at("a").count == 7);
  CHECK_FALSE(again.maybe);
  CHECK_FALSE(again.or_null);
  CHECK(json_of(again).dump() == text);
  outer.maybe = Inner{3};
  outer.or_null = Inner{4};
  CHECK(read_fields<Outer>(json_of(outer), "row").maybe->count == 3);
  CHECK(read_fields<Outer>(json_of(outer), "row").or_null->count == 4);
}

TEST_CASE("fields that are missing or of another type are named", "[fast]") {
  const auto complaint = [](const char* key, const Json& value) {
    Json json = json_of(Outer{.value = 1});
    if (value.is_null())
      json.erase(key);
    else
      json[key] = value;
    return message_of([&] { read_fields<Outer>(json, "row"); });
  };
  CHECK(complaint("value", nullptr) == "row: value: expected a value");
  CHECK(complaint("value", "x") == "row: value: expected a number");
  CHECK(complaint("flag", 1) == "row: flag: expected true or false");
  CHECK(complaint("name", 1) == "row: name: expected a text");
  CHECK(complaint("list", Json::object()) == "row: list: expected a list");
  CHECK(complaint("pair", Json::array({1})) == "row: pair: expected another length");
  CHECK(complaint("by_name", 1) == "row: by_name: expected an object");
  CHECK(complaint("maybe", Json{{"count", 1.5}}) == "row: maybe: count: expected a whole number");
}

namespace {

struct Loose {
  Member<double> figure;
  std::string note = {};
  std::vector<Inner> list = {};
  double exact = 0;
  template <class Self, class Visit>
  static void fields(Self& self, const Visit& visit) {
    visit("figure", self.figure, kNeeded);
    visit("note", self.note, kIfAny);
    visit("list", self.list);
    visit("exact", self.exact, kBits);
    visit("former", kGone);
  }
};

}  // namespace

TEST_CASE("what a loose reader does not take is kept, put back and named", "[fast]") {
  const Json json = Json::parse(
      R"({"figure":"x","list":[{"count":1},2],"exact":"3ff8000000000000","former":4,"later":[5]})");
  FieldLog log;
  const auto loose = read_known<Loose>(json, log);
  CHECK_FALSE(loose.figure.written());
  CHECK(loose.list.size() == 1);
  CHECK(loose.exact == 1.5);
  CHECK(log.missing == "figure (a number)");
  CHECK(log.unknown == "unknown key 'later'; known: figure, note, list, exact, former");
  Json again = json_of(loose);
  for (const UnknownMember& member : log.members) put_back(again, member);
  for (const auto& [key, value] : json.items()) CHECK(again[key] == value);
  CHECK(json_of(Loose{.figure = Member<double>::null()}).dump() ==
        R"({"figure":null,"list":[],"exact":"0000000000000000"})");
}

namespace {

struct Sparse {
  double figure = 0, maybe = NAN;
  bool flag = false;
  template <class Self, class Visit>
  static void fields(Self& self, const Visit& visit) {
    visit("figure", self.figure, kNullable);
    visit("maybe", self.maybe, kIfAny);
    visit("flag", self.flag, kIfAny);
  }
};

Sparse sparse_of(const char* text) {
  FieldLog log;
  return read_known<Sparse>(Json::parse(text), log);
}

}  // namespace

TEST_CASE("a number that is not finite is null or not written, a flag is written where it is set",
          "[fast]") {
  CHECK(json_of(Sparse{}).dump() == R"({"figure":0.0})");
  CHECK(json_of(Sparse{NAN, HUGE_VAL, false}).dump() == R"({"figure":null})");
  CHECK(json_of(Sparse{1, 2, true}).dump() == R"({"figure":1.0,"maybe":2.0,"flag":true})");
  const Sparse all = sparse_of(R"({"figure":1,"maybe":2,"flag":true})");
  CHECK((all.figure == 1 && all.maybe == 2 && all.flag));
  for (const char* text : {R"({"figure":null})", "{}", R"({"figure":"1"})"}) {
    const Sparse none = sparse_of(text);
    INFO(text);
    CHECK((std::isnan(none.figure) && std::isnan(none.maybe) && !none.flag));
  }
  FieldLog log;
  read_known<Sparse>(Json::parse(R"({"figure":null})"), log);
  CHECK(log.members.empty());  // null was read
}

}  // namespace fields_test
