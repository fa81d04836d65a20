// Objects are searched from the front: they have few keys.
#include "formats/storage/json.hpp"

#include <algorithm>
#include <optional>

#include "formats/error.hpp"

namespace numemu {
namespace {

/// Nothing where the value is no number.
template <class T, class Variant>
std::optional<T> number_as(const Variant& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<T>(*whole);
  if (const auto* whole = std::get_if<std::uint64_t>(&value)) return static_cast<T>(*whole);
  if (const auto* real = std::get_if<double>(&value)) return static_cast<T>(*real);
  return std::nullopt;
}

}  // namespace

Json::Json(std::nullptr_t) noexcept : value_(nullptr) {}
Json::Json(std::string text) : value_(std::move(text)) {}
Json::Json(std::string_view text) : value_(std::string(text)) {}
Json::Json(const char* text) : value_(std::string(text)) {}
Json::Json(const Json&) = default;
Json::Json(Json&&) noexcept = default;
// The right side may be a part of the left one, which must live until its value is taken.
Json& Json::operator=(const Json& other) {
  Json copy(other);
  value_.swap(copy.value_);
  return *this;
}
Json& Json::operator=(Json&& other) noexcept {
  Json taken(std::move(other));
  value_.swap(taken.value_);
  return *this;
}
Json::~Json() = default;

Json::Json(std::initializer_list<Json> parts) : Json() {
  const bool members = std::all_of(parts.begin(), parts.end(), [](const Json& part) {
    return part.is_array() && part.size() == 2 && part[0].is_string();
  });
  *this = members ? object(parts) : array(parts);
}

Json Json::array(std::initializer_list<Json> parts) {
  Json out;
  out.value_ = Array(parts);
  return out;
}

Json Json::object(std::initializer_list<Json> members) {
  Json out;
  out.value_ = Object();
  // As in nlohmann/json, the first of equal keys stays.
  for (const Json& part : members) {
    if (!out.contains(part.at(0).text())) out[part[0].text()] = part.at(1);
  }
  return out;
}

void Json::set(bool value) { value_ = value; }
void Json::set(std::int64_t value) { value_ = value; }
void Json::set(std::uint64_t value) { value_ = value; }
void Json::set(double value) { value_ = value; }

bool Json::is_null() const { return std::holds_alternative<std::nullptr_t>(value_); }
bool Json::is_boolean() const { return std::holds_alternative<bool>(value_); }
bool Json::is_number() const { return is_number_integer() || is_number_float(); }
bool Json::is_number_integer() const {
  return std::holds_alternative<std::int64_t>(value_) || is_number_unsigned();
}
bool Json::is_number_unsigned() const { return std::holds_alternative<std::uint64_t>(value_); }
bool Json::is_number_float() const { return std::holds_alternative<double>(value_); }
bool Json::is_string() const { return std::holds_alternative<std::string>(value_); }
bool Json::is_array() const { return std::holds_alternative<Array>(value_); }
bool Json::is_object() const { return std::holds_alternative<Object>(value_); }

void Json::fail(const char* expected) const {
  // In the order of the alternatives.
  constexpr const char* kKinds[] = {"null",     "true or false", "a number", "a number",
                                    "a number", "a text",        "an array", "an object"};
  throw Error(std::string("JSON: expected ") + expected + ", found " + kKinds[value_.index()]);
}

bool Json::truth() const {
  if (!is_boolean()) fail("true or false");
  return std::get<bool>(value_);
}

double Json::real() const {
  if (const auto number = number_as<double>(value_)) return *number;
  fail("a number");
}

std::int64_t Json::integer() const {
  if (const auto number = number_as<std::int64_t>(value_)) return *number;
  fail("a number");
}

std::uint64_t Json::natural() const {
  if (const auto number = number_as<std::uint64_t>(value_)) return *number;
  fail("a number");
}

const std::string& Json::text() const {
  if (!is_string()) fail("a text");
  return std::get<std::string>(value_);
}

std::size_t Json::size() const {
  if (is_array()) return std::get<Array>(value_).size();
  return is_object() ? std::get<Object>(value_).size() : is_null() ? 0 : 1;
}

const Json& Json::at(std::size_t i) const {
  if (!is_array()) fail("an array");
  if (i >= size()) throw Error("JSON: expected an index below " + std::to_string(size()));
  return std::get<Array>(value_)[i];
}

Json& Json::at(std::size_t i) { return const_cast<Json&>(std::as_const(*this).at(i)); }

void Json::push_back(Json value) {
  if (is_null()) value_ = Array();
  if (!is_array()) fail("an array");
  std::get<Array>(value_).push_back(std::move(value));
}

void Json::erase(std::size_t i) {
  static_cast<void>(at(i));
  Array& elements = std::get<Array>(value_);
  elements.erase(elements.begin() + static_cast<std::ptrdiff_t>(i));
}

const Json::Member* Json::member(std::string_view key) const {
  if (!is_object()) return nullptr;
  const Object& members = std::get<Object>(value_);
  const auto found = std::find_if(members.begin(), members.end(),
                                  [&](const Member& member) { return member.name == key; });
  return found == members.end() ? nullptr : &*found;
}

const Json& Json::at(std::string_view key) const {
  if (!is_object()) fail("an object");
  if (const Member* found = member(key)) return found->json;
  throw Error("JSON: expected a key '" + std::string(key) + "'");
}

Json& Json::at(std::string_view key) { return const_cast<Json&>(std::as_const(*this).at(key)); }

Json& Json::at_or_added(std::string_view key) {
  if (is_null()) value_ = Object();
  if (!is_object()) fail("an object");
  if (const Member* found = member(key)) return const_cast<Json&>(found->json);
  return std::get<Object>(value_).emplace_back(Member{std::string(key), Json()}).json;
}

bool Json::contains(std::string_view key) const { return member(key) != nullptr; }

Json::const_iterator Json::find(std::string_view key) const {
  const Member* found = member(key);
  return found != nullptr ? const_iterator(nullptr, found) : end();
}

const Json* Json::find_path(std::string_view path) const {
  const Json* at = this;
  while (at != nullptr && !path.empty()) {
    path.remove_prefix(1);
    const Member* found = at->member(path.substr(0, path.find('/')));
    at = found != nullptr ? &found->json : nullptr;
    path.remove_prefix(std::min(path.find('/'), path.size()));
  }
  return at;
}

std::size_t Json::erase(std::string_view key) {
  if (!is_object()) fail("an object");
  return std::erase_if(std::get<Object>(value_),
                       [&](const Member& member) { return member.name == key; });
}

void Json::update(const Json& other) {
  for (const Member& member : other.items()) (*this)[member.name] = member.json;
}

const Json::Object& Json::items() const {
  static const Object none;
  if (is_null()) return none;
  if (!is_object()) fail("an object");
  return std::get<Object>(value_);
}

Json::Object& Json::items() { return const_cast<Object&>(std::as_const(*this).items()); }

Json::iterator Json::begin() {
  if (auto* elements = std::get_if<Array>(&value_)) return {elements->data(), nullptr};
  if (auto* members = std::get_if<Object>(&value_)) return {nullptr, members->data()};
  return {};
}

Json::iterator Json::end() {
  if (auto* elements = std::get_if<Array>(&value_))
    return {elements->data() + elements->size(), nullptr};
  if (auto* members = std::get_if<Object>(&value_))
    return {nullptr, members->data() + members->size()};
  return {};
}

Json::const_iterator Json::begin() const {
  if (const auto* elements = std::get_if<Array>(&value_)) return {elements->data(), nullptr};
  if (const auto* members = std::get_if<Object>(&value_)) return {nullptr, members->data()};
  return {};
}

Json::const_iterator Json::end() const {
  if (const auto* elements = std::get_if<Array>(&value_))
    return {elements->data() + elements->size(), nullptr};
  if (const auto* members = std::get_if<Object>(&value_))
    return {nullptr, members->data() + members->size()};
  return {};
}

bool Json::equal(const Json& a, const Json& b) {
  if (a.is_number() && b.is_number()) {
    if (a.is_number_float() || b.is_number_float()) return a.real() == b.real();
    return a.integer() == b.integer();
  }
  return a.value_ == b.value_;
}

}  // namespace numemu
