// Structs whose fields are declared once and are written to JSON and read from it by that list.
//
//   struct Outcome {
//     double metric = 0;
//     std::vector<double> losses;
//     template <class Self, class Visit>
//     static void fields(Self& self, const Visit& visit) {
//       visit("metric", self.metric);
//       visit("losses", self.losses);
//     }
//   };
#pragma once
#include <array>
#include <cmath>
#include <concepts>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "formats/error.hpp"
#include "formats/storage/json.hpp"

namespace numemu {
namespace fields_detail {

struct AnyVisit {
  template <class Field>
  void operator()(const char*, Field&) const {}
};

template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;
template <class T>
inline constexpr bool kIsVector = false;
template <class T>
inline constexpr bool kIsVector<std::vector<T>> = true;
template <class T>
inline constexpr bool kIsArray = false;
template <class T, std::size_t N>
inline constexpr bool kIsArray<std::array<T, N>> = true;
template <class T>
inline constexpr bool kIsMap = false;
template <class T, class Less>
inline constexpr bool kIsMap<std::map<std::string, T, Less>> = true;

template <class T>
inline constexpr bool kIsNamed = false;
template <class T>
inline constexpr bool kIsNamed<std::vector<std::pair<std::string, T>>> = true;

}  // namespace fields_detail

/// Values by name, in an order of their own.
template <class T>
using Named = std::vector<std::pair<std::string, T>>;

/// A struct with a list of its fields.
template <class T>
concept HasFields = requires(T& value) {
  T::fields(value, fields_detail::AnyVisit{});
};

/// A struct as an object with its keys in the order of the list, without optional fields that have
/// no value; a map and Named values as an object, a vector as an array. Numbers that are not finite
/// are null.
template <class T>
Json json_of(const T& value) {
  if constexpr (std::same_as<T, Json>) {
    return value;
  } else if constexpr (std::floating_point<T>) {
    return std::isfinite(value) ? Json(value) : Json(nullptr);
  } else if constexpr (HasFields<T>) {
    Json json = Json::object();
    T::fields(value, [&]<class Field>(const char* key, const Field& field) {
      if constexpr (fields_detail::kIsOptional<Field>) {
        if (field) json[key] = json_of(*field);
      } else {
        json[key] = json_of(field);
      }
    });
    return json;
  } else if constexpr (fields_detail::kIsMap<T> || fields_detail::kIsNamed<T>) {
    Json json = Json::object();
    for (const auto& [key, element] : value) json[key] = json_of(element);
    return json;
  } else if constexpr (fields_detail::kIsVector<T> || fields_detail::kIsArray<T>) {
    Json json = Json::array();
    for (const auto& element : value) json.push_back(json_of(element));
    return json;
  } else {
    return Json(value);
  }
}

/// What json_of() wrote; null is NaN. Throws Error("WHERE: KEY: expected ...") for other JSON; keys
/// that no field has are passed over.
template <class T>
T read_fields(const Json& json, const std::string& where) {
  const auto expect = [&](bool right, const char* what) {
    if (!right) throw Error(where + ": expected " + what);
  };
  if constexpr (std::same_as<T, Json>) {
    return json;
  } else if constexpr (std::same_as<T, bool>) {
    expect(json.is_boolean(), "true or false");
    return json.get<bool>();
  } else if constexpr (std::floating_point<T>) {
    expect(json.is_number() || json.is_null(), "a number");
    return json.is_null() ? std::numeric_limits<T>::quiet_NaN() : json.get<T>();
  } else if constexpr (std::integral<T>) {
    expect(json.is_number_integer(), "a whole number");
    return json.get<T>();
  } else if constexpr (std::same_as<T, std::string>) {
    expect(json.is_string(), "a text");
    return json.text();
  } else if constexpr (HasFields<T>) {
    expect(json.is_object(), "an object");
    T value;
    T::fields(value, [&]<class Field>(const char* key, Field& field) {
      const std::string place = where + ": " + key;
      if constexpr (fields_detail::kIsOptional<Field>) {
        if (json.contains(key))
          field = read_fields<typename Field::value_type>(json.at(key), place);
      } else {
        if (!json.contains(key)) throw Error(place + ": expected a value");
        field = read_fields<Field>(json.at(key), place);
      }
    });
    return value;
  } else if constexpr (fields_detail::kIsMap<T>) {
    expect(json.is_object(), "an object");
    T value;
    for (const auto& [key, element] : json.items())
      value[key] = read_fields<typename T::mapped_type>(element, where + ": " + key);
    return value;
  } else if constexpr (fields_detail::kIsNamed<T>) {
    expect(json.is_object(), "an object");
    T value;
    for (const auto& [key, element] : json.items())
      value.emplace_back(
          key, read_fields<typename T::value_type::second_type>(element, where + ": " + key));
    return value;
  } else {
    static_assert(fields_detail::kIsVector<T> || fields_detail::kIsArray<T>);
    expect(json.is_array(), "a list");
    T value{};
    if constexpr (fields_detail::kIsArray<T>) expect(json.size() == value.size(), "another length");
    if constexpr (fields_detail::kIsVector<T>) value.resize(json.size());
    for (std::size_t i = 0; i < json.size(); ++i)
      value[i] = read_fields<typename T::value_type>(json.at(i), where);
    return value;
  }
}

}  // namespace numemu
