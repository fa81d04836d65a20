// Structs whose fields are declared once: that list writes them to JSON, reads them and checks
// them.
//
//   struct Outcome {
//     double metric = 0;
//     std::vector<double> losses;
//     static void fields(auto& self, const auto& visit) {
//       visit("metric", self.metric);
//       visit("losses", self.losses);
//     }
//   };
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "formats/storage/json.hpp"

namespace numemu {

/// How a field is written and checked: the third argument of a visit.
enum FieldHow : unsigned {
  kPlain = 0,
  kIfAny = 1,      ///< not written where there is none: "", an empty list, NaN, false
  kNeeded = 2,     ///< what readers of rows take for granted
  kNullable = 4,   ///< null where there is none, NaN of a number; of a needed Member null, too
  kExcusable = 8,  ///< not needed where FieldLog::excused
  kOfNamed = 16,   ///< a list of objects that each have a text "name"
  /// float64 as 16 hexadecimal digits, every bit of it; also of all in the field.
  kBits = 32,
};

/// A field that may be absent. Null, a figure that has no number, is told from a key that is not
/// there, which the program that wrote the object did not know.
template <class T>
struct Member : std::optional<T> {
  using std::optional<T>::optional;
  static Member null() {
    Member member;
    member.is_null = true;
    return member;
  }
  bool written() const { return this->has_value() || is_null; }
  template <std::same_as<Member> Other>
  friend bool operator==(const Member& a, const Other& b) {
    const std::optional<T>&x = a, &y = b;
    return x == y && a.is_null == b.is_null;
  }

  bool is_null = false;
};

/// A key of earlier programs that no field has any more.
struct Gone {};
inline constexpr Gone kGone;

/// Values by name, in an order of their own.
template <class T>
using Named = std::vector<std::pair<std::string, T>>;

/// How a type that is neither a struct with fields nor a plain value is written and read:
/// write(value), read(json, value) -> whether it is one, kExpected. Where one of its values says
/// that there is none: kNone, or is_none(value) where several do.
template <class T>
struct FieldCodec;

/// A member that no struct has, under the path of keys that leads to it ("layers", "[0]", "key").
struct UnknownMember {
  std::vector<std::string> path;
  Json value;
};
/// Puts a member back where it was read.
void put_back(Json&, const UnknownMember&);

/// Where a reader is, and what it found beside the fields. A strict one throws Error for the first
/// field that is not there or of another type; any other leaves such a field as it is.
struct FieldLog {
  bool strict = false;
  std::string where;      ///< what errors of a strict one begin with
  bool excused = false;   ///< nothing misses kExcusable fields
  std::string open = {};  ///< the member below which any key may stand
  std::vector<std::string> path = {};
  std::string missing = {};  ///< the first needed field that is not there: "bits.weight (a number)"
  std::string unknown = {};  ///< the first key that no field has: "metrics: unknown key ..."
  std::vector<UnknownMember> members = {};

  std::string dotted() const;
  void keep(const std::string& key, const Json& value);
  /// An element of the list that the path is in, to be put behind the others.
  void keep_element(const Json& value);
  void miss(const char* expected);
  /// Keeps a member that is none of the keys.
  void keep_unknown(const std::string& key, const Json& value,
                    const std::vector<std::string>& keys);
  [[noreturn]] void fail(const char* expected) const;
};

namespace fields_detail {

struct AnyVisit {
  template <class Field>
  void operator()(const char*, Field&, unsigned = kPlain) const {}
};

template <class T, template <class...> class Of>
inline constexpr bool kIs = false;
template <class... T, template <class...> class Of>
inline constexpr bool kIs<Of<T...>, Of> = true;
template <class T>
inline constexpr bool kIsArray = false;
template <class T, std::size_t N>
inline constexpr bool kIsArray<std::array<T, N>> = true;
template <class T>
inline constexpr bool kIsNamed = false;
template <class T>
inline constexpr bool kIsNamed<Named<T>> = true;
template <class T>
concept List = kIsArray<T> ||(kIs<T, std::vector> && !kIsNamed<T>);
template <class T>
concept ByName = kIs<T, std::map> || kIsNamed<T>;
template <class T>
concept MayLack = kIs<T, std::optional> || kIs<T, Member>;
template <class T>
concept Coded = requires {
  FieldCodec<T>::kExpected;
};

template <class T>
concept Nullable = std::floating_point<T> || requires {
  FieldCodec<T>::kNone;
};
template <Nullable T>
T none() {
  if constexpr (std::floating_point<T>) {
    return std::numeric_limits<T>::quiet_NaN();
  } else {
    return FieldCodec<T>::kNone;
  }
}
template <class T>
bool is_none(const T& value) {
  if constexpr (std::floating_point<T>) {
    return !std::isfinite(value);
  } else if constexpr (std::same_as<T, bool>) {
    return !value;
  } else if constexpr (Nullable<T>) {
    return value == FieldCodec<T>::kNone;
  } else if constexpr (requires { FieldCodec<T>::is_none(value); }) {
    return FieldCodec<T>::is_none(value);
  } else if constexpr (requires { value.empty(); }) {
    return value.empty();
  } else {
    return false;
  }
}

std::string bits_text(double value);
/// False unless the text is 16 hexadecimal digits.
bool read_bits(const Json& text, double& value);

}  // namespace fields_detail

/// A struct with a list of its fields.
template <class T>
concept HasFields = requires(T& value) {
  T::fields(value, fields_detail::AnyVisit{});
};

/// A struct as an object with its keys in the order of the list, without fields that are absent; a
/// map and Named values as an object, a vector as an array. Numbers that are not finite are null.
template <class T>
Json json_of(const T& value, unsigned how = kPlain) {
  using namespace fields_detail;
  if constexpr (Coded<T>) {
    return (how & kNullable) != 0 && is_none(value) ? Json() : FieldCodec<T>::write(value);
  } else if constexpr (std::floating_point<T>) {
    if ((how & kBits) != 0) return bits_text(value);
    return std::isfinite(value) ? Json(value) : Json(nullptr);
  } else if constexpr (MayLack<T>) {
    return value ? json_of(*value, how) : Json();
  } else if constexpr (HasFields<T>) {
    Json json = Json::object();
    T::fields(value, [&]<class Field>(const char* key, const Field& field, unsigned own = kPlain) {
      if constexpr (std::same_as<Field, Gone>) {
        return;
      } else if constexpr (kIs<Field, Member>) {
        if (!field.written()) return;
      } else if constexpr (kIs<Field, std::optional>) {
        if (!field) return;
      } else {
        if ((own & kIfAny) != 0 && is_none(field)) return;
      }
      if constexpr (!std::same_as<Field, Gone>) json[key] = json_of(field, own | (how & kBits));
    });
    return json;
  } else if constexpr (ByName<T>) {
    Json json = Json::object();
    for (const auto& [key, element] : value) json[key] = json_of(element, how);
    return json;
  } else if constexpr (List<T>) {
    Json json = Json::array();
    for (const auto& element : value) json.push_back(json_of(element, how));
    return json;
  } else {
    return Json(value);
  }
}

namespace fields_detail {

template <class T>
const char* expected(const Json& json, unsigned how, bool strict) {
  if constexpr (kIs<T, Member> || kIs<T, std::optional>) {
    return expected<typename T::value_type>(json, how, strict);
  } else if constexpr (Coded<T>) {
    return FieldCodec<T>::kExpected;
  } else if constexpr (List<T>) {
    return (how & kOfNamed) != 0            ? "a list of objects with a name"
           : kIsArray<T> && json.is_array() ? "another length"
                                            : "a list";
  } else if constexpr (std::same_as<T, bool>) {
    return "true or false";
  } else if constexpr (std::same_as<T, std::string>) {
    return strict ? "a text" : "a string";
  } else if constexpr (std::floating_point<T>) {
    return (how & kBits) != 0       ? "16 hexadecimal digits of a float64"
           : (how & kNullable) != 0 ? "a number or null"
                                    : "a number";
  } else if constexpr (std::integral<T>) {
    return strict ? "a whole number" : "a number";
  } else {
    return "an object";
  }
}

template <class T>
void read_object(const Json& json, T& into, FieldLog& log, unsigned how = kPlain);

/// Whether the JSON is a value of that type, which `value` then has.
template <class T>
bool take(const Json& json, T& value, FieldLog& log, unsigned how) {
  if constexpr (Nullable<T>) {
    const bool number = std::floating_point<T> && log.strict && (how & kBits) == 0;
    if (json.is_null() && (number || (how & kNullable) != 0)) {
      value = none<T>();
      return true;
    }
  }
  if constexpr (std::same_as<T, Json>) {
    value = json;
    return true;
  } else if constexpr (Coded<T>) {
    return FieldCodec<T>::read(json, value);
  } else if constexpr (kIs<T, Member>) {
    if (json.is_null()) {
      value = T::null();
      return true;
    }
    const bool taken = take(json, value.emplace(), log, how);
    if (!taken) value.reset();
    return taken;
  } else if constexpr (kIs<T, std::optional>) {
    return take(json, value.emplace(), log, how);
  } else if constexpr (std::same_as<T, bool>) {
    if (json.is_boolean()) value = json.get<bool>();
    return json.is_boolean();
  } else if constexpr (std::same_as<T, std::string>) {
    if (json.is_string()) value = json.text();
    return json.is_string();
  } else if constexpr (std::floating_point<T>) {
    if ((how & kBits) != 0) return read_bits(json, value);
    if (json.is_number()) value = json.get<T>();
    return json.is_number() && (log.strict || std::isfinite(value));
  } else if constexpr (std::integral<T>) {
    const bool is = log.strict              ? json.is_number_integer()
                    : std::is_unsigned_v<T> ? json.is_number_unsigned()
                                            : json.is_number();
    if (is) value = json.get<T>();
    return is;
  } else if constexpr (HasFields<T>) {
    if (!json.is_object() && !log.strict) return false;
    read_object(json, value, log, how);
    return true;
  } else if constexpr (ByName<T>) {
    if (!json.is_object()) return false;
    for (const auto& [key, json_of_one] : json.items()) {
      typename T::value_type::second_type one{};
      log.path.push_back(key);
      const bool taken = take(json_of_one, one, log, how);
      if (!taken && log.strict) log.fail(expected<decltype(one)>(json_of_one, how, true));
      log.path.pop_back();
      if (!taken) {
        log.keep(key, json_of_one);
      } else if constexpr (kIsNamed<T>) {
        value.emplace_back(key, std::move(one));
      } else {
        value[key] = std::move(one);
      }
    }
    return true;
  } else if constexpr (kIsArray<T>) {
    if (!json.is_array() || json.size() != value.size()) return false;
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (take(json[i], value[i], log, how)) continue;
      if (log.strict) log.fail(expected<typename T::value_type>(json[i], how, true));
      return false;
    }
    return true;
  } else {
    static_assert(List<T>);
    if (!json.is_array()) return false;
    const bool named = std::ranges::all_of(json, [](const Json& one) {
      const Json* const name = one.find_path("/name");
      return name != nullptr && name->is_string();
    });
    for (const Json& one : json) {
      log.path.push_back("[" + std::to_string(value.size()) + "]");
      if (!take(one, value.emplace_back(), log, how)) {
        if (log.strict) log.fail(expected<typename T::value_type>(one, how, true));
        value.pop_back();
        log.keep_element(one);
      }
      log.path.pop_back();
    }
    if ((how & kOfNamed) != 0 && !named) log.miss(expected<T>(json, how, log.strict));
    return true;
  }
}

/// Of a strict reader also what is no object, which misses the first field.
template <class T>
void read_object(const Json& json, T& into, FieldLog& log, unsigned how) {
  std::size_t seen = 0;
  T::fields(into, [&]<class Field>(const char* key, Field& field, unsigned own = kPlain) {
    const auto at = json.find(key);
    const bool there = at != json.end();
    seen += there;
    if constexpr (std::same_as<Field, const Gone>) {
      if (there) log.keep(key, *at);
    } else {
      own |= how & kBits;
      log.path.emplace_back(key);
      const bool taken = there && take(*at, field, log, own);
      if (log.strict) {
        if (!there && !MayLack<Field> && (own & kIfAny) == 0) log.fail("a value");
        if (there && !taken) log.fail(expected<Field>(*at, own, true));
      } else {
        bool missing = !taken;
        if constexpr (kIs<Field, Member>) missing |= field.is_null && (own & kNullable) == 0;
        if constexpr (Nullable<Field>) {
          if (!taken && (own & kNullable) != 0) field = none<Field>();
        }
        const bool excused = !there && (own & kExcusable) != 0 && log.excused;
        if ((own & kNeeded) != 0 && missing && !excused)
          log.miss(expected<Field>(there ? *at : Json(), own, false));
        // Needed fields of a struct that is not there are missing.
        if constexpr (HasFields<Field>) {
          if (!taken) read_object(Json::object(), field, log);
        }
      }
      log.path.pop_back();
      if (there && !taken) log.keep(key, *at);
    }
  });
  if (log.strict || json.size() == seen) return;
  std::vector<std::string> keys;
  T::fields(into, [&](const char* key, const auto&, unsigned = kPlain) { keys.emplace_back(key); });
  for (const auto& [key, value] : json.items()) log.keep_unknown(key, value, keys);
}

}  // namespace fields_detail

/// What json_of() wrote; null is NaN. Throws Error("WHERE: KEY: expected ...") for other JSON; keys
/// that no field has are passed over.
template <class T>
void read_fields(const Json& json, const std::string& where, T& value, unsigned how = kPlain) {
  FieldLog log{.strict = true, .where = where};
  if (!fields_detail::take(json, value, log, how))
    log.fail(fields_detail::expected<T>(json, how, true));
}
template <class T>
T read_fields(const Json& json, const std::string& where) {
  T value{};
  read_fields(json, where, value);
  return value;
}

/// What can be read of an object: a field that is missing or of another type is empty, and the log
/// says which. A member that no field took is in FieldLog::members, so that nothing is lost.
template <class T>
T read_known(const Json& json, FieldLog& log) {
  T value{};
  if (json.is_object()) fields_detail::read_object(json, value, log);
  return value;
}

}  // namespace numemu
