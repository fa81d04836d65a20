// A JSON value whose objects keep the order of their keys. Its interface is that of nlohmann/json,
// whose templates take seconds in every file that includes them: only json_text.cpp does.
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace numemu {

class Json;

namespace json_detail {

template <class T>
concept Number = std::is_arithmetic_v<T> && !std::same_as<T, char>;
template <class T>
concept Text = std::convertible_to<const T&, std::string_view>;
template <class T>
concept List = !std::same_as<T, Json> && !Text<T> && requires(const T& list) {
  list.begin();
  list.end();
};
template <class T>
inline constexpr bool kIsVector = false;
template <class T>
inline constexpr bool kIsVector<std::vector<T>> = true;
/// What a value converts to.
template <class T>
concept Readable = Number<T> || std::same_as<T, std::string> || kIsVector<T>;

}  // namespace json_detail

/// Null, a truth value, a number, a text, an array or an object. Numbers are int64, uint64 (whole
/// numbers that are read without a sign) or float64, and compare by value. Access to what is not
/// there, or is of another type, throws Error; operator[] on an object that may change adds the
/// key.
class Json {
 public:
  struct Member;
  using Array = std::vector<Json>;
  using Object = std::vector<Member>;
  template <class Value, class Pair>
  class Iterator;
  using const_iterator = Iterator<const Json, const Member>;
  using iterator = Iterator<Json, Member>;
  using value_type = Json;

  Json(std::nullptr_t = nullptr) noexcept;
  template <json_detail::Number T>
  Json(T value) : Json() {
    if constexpr (std::same_as<T, bool>) {
      set(value);
    } else if constexpr (std::floating_point<T>) {
      set(static_cast<double>(value));
    } else if constexpr (std::is_signed_v<T>) {
      set(static_cast<std::int64_t>(value));
    } else {
      set(static_cast<std::uint64_t>(value));
    }
  }
  Json(std::string text);
  Json(std::string_view text);
  Json(const char* text);
  /// An object of the members of a map, or an array of the elements of another container.
  template <json_detail::List T>
  Json(const T& list);
  /// An object where all parts are pairs that begin with a text, else an array.
  Json(std::initializer_list<Json> parts);
  static Json array(std::initializer_list<Json> parts = {});
  static Json object(std::initializer_list<Json> members = {});

  Json(const Json&);
  Json(Json&&) noexcept;
  Json& operator=(const Json&);
  Json& operator=(Json&&) noexcept;
  ~Json();

  /// Refuses what parse_guarded() refuses: throws Error.
  static Json parse(std::string_view text);
  /// Null where parse() throws.
  static Json parse_or_null(std::string_view text);
  /// What dump() does with a text that is not UTF-8: throws Error, or writes U+FFFD in its place.
  enum class NotUtf8 { refuse, replace };
  /// On one line, or with `indent` spaces for each level. What is not finite becomes null.
  std::string dump(int indent = -1, NotUtf8 not_utf8 = NotUtf8::refuse) const;

  bool is_null() const;
  bool is_boolean() const;
  bool is_number() const;
  bool is_number_integer() const;   ///< an int64 or a uint64
  bool is_number_unsigned() const;  ///< a uint64
  bool is_number_float() const;
  bool is_string() const;
  bool is_array() const;
  bool is_object() const;

  /// The value as bool, number (converted as by static_cast), std::string or std::vector.
  template <class T>
  T get() const;
  template <json_detail::Readable T>
  operator T() const {
    return get<T>();
  }
  const std::string& text() const;

  /// Elements of an array or members of an object; null has 0, any other value 1.
  std::size_t size() const;
  bool empty() const { return size() == 0; }

  // Arrays.
  const Json& at(std::size_t i) const;
  Json& at(std::size_t i);
  const Json& operator[](std::size_t i) const { return at(i); }
  Json& operator[](std::size_t i) { return at(i); }
  const Json& front() const { return at(0); }
  Json& front() { return at(0); }
  const Json& back() const { return at(size() - 1); }
  Json& back() { return at(size() - 1); }
  /// Null becomes an array.
  void push_back(Json value);
  void erase(std::size_t i);

  // Objects.
  const Json& at(std::string_view key) const;
  Json& at(std::string_view key);
  // As templates they take a key as it is: as a std::string_view it would be converted, and
  // `object["key"]` could also mean the element number `object` of the array "key".
  template <json_detail::Text Key>
  const Json& operator[](const Key& key) const {
    return at(std::string_view(key));
  }
  /// Null becomes an object.
  template <json_detail::Text Key>
  Json& operator[](const Key& key) {
    return at_or_added(key);
  }
  bool contains(std::string_view key) const;
  /// end() where there is no such member, or no object.
  const_iterator find(std::string_view key) const;
  /// The value at a path of keys such as "/point/net"; nullptr where there is none.
  const Json* find_path(std::string_view path) const;
  /// The member's value, `fallback` where there is none.
  template <class T>
  T value(std::string_view key, const T& fallback) const;
  std::string value(std::string_view key, const char* fallback) const {
    return value(key, std::string(fallback));
  }
  /// The number of members erased: 0 or 1.
  std::size_t erase(std::string_view key);
  /// Adds the members of another object, or replaces those that are there.
  void update(const Json& other);
  /// The members of an object in their order; none for null.
  const Object& items() const;
  Object& items();

  /// Over the elements of an array or the values of an object; nothing for other values.
  const_iterator begin() const;
  const_iterator end() const;
  iterator begin();
  iterator end();

  friend bool operator==(const Json& a, const Json& b) { return equal(a, b); }
  template <json_detail::Number T>
  friend bool operator==(const Json& a, T b) {
    return equal(a, Json(b));
  }

 private:
  void set(bool value);
  void set(std::int64_t value);
  void set(std::uint64_t value);
  void set(double value);
  static bool equal(const Json& a, const Json& b);
  bool truth() const;
  double real() const;
  std::int64_t integer() const;
  std::uint64_t natural() const;
  [[noreturn]] void fail(const char* expected) const;
  const Member* member(std::string_view key) const;
  Json& at_or_added(std::string_view key);

  std::variant<std::nullptr_t, bool, std::int64_t, std::uint64_t, double, std::string, Array,
               Object>
      value_;
};

struct Json::Member {
  std::string name;
  Json json;

  const std::string& key() const { return name; }
  const Json& value() const { return json; }
  Json& value() { return json; }
  bool operator==(const Member&) const = default;
};

/// One of both pointers moves, the other is null.
template <class Value, class Pair>
class Json::Iterator {
 public:
  using iterator_category = std::forward_iterator_tag;
  using value_type = Json;
  using difference_type = std::ptrdiff_t;
  using pointer = Value*;
  using reference = Value&;

  Iterator() = default;
  Iterator(Value* element, Pair* member) : element_(element), member_(member) {}
  Value& operator*() const { return member_ != nullptr ? member_->json : *element_; }
  Value* operator->() const { return &**this; }
  Iterator& operator++() {
    member_ != nullptr ? void(++member_) : void(++element_);
    return *this;
  }
  Iterator operator++(int) {
    const Iterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const Iterator&) const = default;

 private:
  Value* element_ = nullptr;
  Pair* member_ = nullptr;
};

template <json_detail::List T>
Json::Json(const T& list) : Json() {
  if constexpr (requires { typename T::mapped_type; }) {
    *this = object();
    for (const auto& [key, value] : list) (*this)[key] = value;
  } else {
    *this = array();
    for (const auto& value : list) push_back(Json(value));
  }
}

template <class T>
T Json::get() const {
  if constexpr (std::same_as<T, Json>) {
    return *this;
  } else if constexpr (std::same_as<T, bool>) {
    return truth();
  } else if constexpr (std::floating_point<T>) {
    return static_cast<T>(real());
  } else if constexpr (std::integral<T>) {
    return static_cast<T>(std::is_signed_v<T> ? static_cast<std::uint64_t>(integer()) : natural());
  } else if constexpr (std::same_as<T, std::string>) {
    return text();
  } else {
    static_assert(json_detail::kIsVector<T>);
    if (!is_array()) fail("an array");
    T list;
    for (const Json& element : *this) list.push_back(element.get<typename T::value_type>());
    return list;
  }
}

template <class T>
T Json::value(std::string_view key, const T& fallback) const {
  if (!is_object()) fail("an object");
  const const_iterator found = find(key);
  return found == end() ? fallback : found->get<T>();
}

}  // namespace numemu
