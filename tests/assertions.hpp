// Catch2's macros in a form that compiles fast: the expression once, a constant that describes it,
// and one call.
#pragma once
#include <catch2/catch.hpp>
#include <compare>
#include <string>

// As in Catch2's header: no warning about comparing signed with unsigned numbers, nor about an
// assertion inside another.
#pragma GCC system_header

/// What need not be compiled for each assertion is in assertions.cpp. Only an assertion that fails
/// shows its operands.
namespace numemu::assertions {

constexpr int kCheck = Catch::ResultDisposition::ContinueOnFailure;
constexpr int kRequire = Catch::ResultDisposition::Normal;
constexpr int kCheckFalse = kCheck | Catch::ResultDisposition::FalseTest;
constexpr int kRequireFalse = kRequire | Catch::ResultDisposition::FalseTest;

/// What Catch2 reports of an assertion beside its values.
struct Site {
  // A constructor, because commas between braces would separate arguments where an assertion stands
  // in that of a macro.
  constexpr Site(const char* macro_, const char* file_, unsigned line_, int flags_,
                 const char* text_)
      : macro(macro_), file(file_), line(line_), flags(flags_), text(text_) {}

  const char* macro;
  const char* file;
  unsigned line;
  int flags;
  const char* text;
};

/// The assertion that is being evaluated: where an unexpected exception comes from. Null between
/// assertions.
extern const Site* current;

/// Reports the exception being handled at the current assertion, or after the last one, and stops
/// the test case.
[[noreturn]] void report_exception();
/// Catch2 itself knows the place, because it has reported something or begun a section.
void forget_place();

struct Operand {
  const void* value;
  std::string (*show)(const void* value);
};

template <class T>
[[gnu::cold]] std::string show(const void* value) {
  return Catch::Detail::stringify(*static_cast<const T*>(value));
}

template <class T>
Operand operand(const T& value) {
  return {std::addressof(value), show<T>};
}

/// Counts an assertion whose expression has this value if it passes; otherwise fail() must follow.
bool passes(const Site& site, bool value);
/// Reports a failure, and throws if it stops the test case. Without an operator there is only
/// `left`.
[[gnu::cold]] void fail(const Site& site, Operand left, const char* op = nullptr,
                        Operand right = {});
/// Reports a value that does not match what is wanted, a matcher's text.
[[gnu::cold]] void fail(const Site& site, Operand value, const std::string& wanted);
void judge(const Site& site, bool value);

/// A comparison that has been reported. It has no operators, so that && behind a comparison does
/// not compile.
struct Reported {
  void finish() const {}
};

#define NUMEMU_COMPARISON(op)                            \
  template <class R>                                     \
  Reported operator op(const R& right) const {           \
    if (!passes(site, static_cast<bool>(left op right))) \
      fail(site, operand(left), #op, operand(right));    \
    return {};                                           \
  }
#define NUMEMU_COMPARISONS                                                \
  NUMEMU_COMPARISON(==)                                                   \
  NUMEMU_COMPARISON(!=)                                                   \
  NUMEMU_COMPARISON(<)                                                    \
  NUMEMU_COMPARISON(<=)                                                   \
  NUMEMU_COMPARISON(>)                                                    \
  NUMEMU_COMPARISON(>=)                                                   \
  NUMEMU_COMPARISON(&)                                                    \
  NUMEMU_COMPARISON(|)                                                    \
  NUMEMU_COMPARISON(^)                                                    \
  template <class R>                                                      \
  void operator&&(const R&) const = delete; /* put it into parentheses */ \
  template <class R>                                                      \
  void operator||(const R&) const = delete;

/// A nested class: its operators are not looked up in the namespace of T, often std with its
/// hundred operators.
template <class T>
struct Of {
  struct Left {
    const T& left;
    const Site& site;
    NUMEMU_COMPARISONS
    void finish() const {
      if (!passes(site, static_cast<bool>(left))) fail(site, operand(left));
    }
  };
};

template <>
struct Of<bool> {  // a copy, because a bit-field cannot be referred to
  struct Left {
    bool left;
    const Site& site;
    NUMEMU_COMPARISONS
    void finish() const { judge(site, left); }
  };
};

/// <=> takes the left operand: it binds more tightly than the comparisons, and few types overload
/// it.
struct Assertion {
  const Site& site;

  template <class T>
  typename Of<T>::Left operator<=>(const T& left) const {
    return {left, site};
  }
  Of<bool>::Left operator<=>(bool left) const { return {left, site}; }
};

using StringMatcher = Catch::MatcherBase<std::string>;

void check_that(const Site& site, const std::string& value, const StringMatcher& matcher);
template <class T>
void check_that(const Site& site, const std::type_identity_t<T>& value,
                const Catch::MatcherBase<T>& matcher) {
  if (!passes(site, matcher.match(value))) fail(site, operand(value), matcher.toString());
}

// What became of an expression that is to throw, or not to. finish_throwing() stops the test case,
// outside of its handlers.
void not_thrown(const Site& site) noexcept;
void rightly_not_thrown(const Site& site) noexcept;
void rightly_thrown(const Site& site) noexcept;
void wrongly_thrown(const Site& site) noexcept;
void thrown_with(const Site& site, const std::string& text) noexcept;
void thrown_with(const Site& site, const StringMatcher& matcher) noexcept;
void finish_throwing();

/// The text of an INFO.
class Text {
 public:
  Text();
  ~Text();

  template <class T>
  Text& operator<<(const T& value) {
    stream_.get() << value;
    return *this;
  }
  Text& operator<<(const char* value);
  Text& operator<<(const std::string& value);
  Text& operator<<(int value);
  Text& operator<<(std::size_t value);
  Text& operator<<(double value);

  std::string str() const;

 private:
  Catch::ReusableStringStream stream_;
};

/// Shows its text with the failures of its block.
class Info {
 public:
  Info(const char* file, unsigned line, const Text& text);
  ~Info();

 private:
  Catch::ScopedMessage message_;
};

/// Path of a test's source below tests/, without _test.cpp.
std::string source_of(const char* file);

/// Runs a case, with an exception that leaves it reported where it arose.
void guard(void (*run)());

/// Registers a test case with its source as a tag, so that "[formats/codec]" selects a file.
struct Case {
  Case(void (*run)(), const char* file, unsigned line, const char* name, const char* tags = "");
};

}  // namespace numemu::assertions

#define NUMEMU_SITE(macro, flags, text)                                                       \
  static constexpr ::numemu::assertions::Site numemu_site(macro, __FILE__, __LINE__,          \
                                                          ::numemu::assertions::flags, text); \
  ::numemu::assertions::current = &numemu_site
#define NUMEMU_ASSERT(macro, flags, ...)                                     \
  do {                                                                       \
    NUMEMU_SITE(macro, flags, #__VA_ARGS__);                                 \
    (::numemu::assertions::Assertion{numemu_site} <=> __VA_ARGS__).finish(); \
  } while (false)
#define NUMEMU_THAT(macro, flags, value, ...)                          \
  do {                                                                 \
    NUMEMU_SITE(macro, flags, #value ", " #__VA_ARGS__);               \
    ::numemu::assertions::check_that(numemu_site, value, __VA_ARGS__); \
  } while (false)
// The last arguments are the handlers.
#define NUMEMU_THROWS(macro, flags, text, expression, otherwise, ...) \
  do {                                                                \
    NUMEMU_SITE(macro, flags, text);                                  \
    try {                                                             \
      static_cast<void>(expression);                                  \
      ::numemu::assertions::otherwise(numemu_site);                   \
    }                                                                 \
    __VA_ARGS__                                                       \
    ::numemu::assertions::finish_throwing();                          \
  } while (false)
#define NUMEMU_CATCH(what, ...)        \
  catch (what) {                       \
    ::numemu::assertions::__VA_ARGS__; \
  }
#define NUMEMU_NOTHROW(macro, flags, ...)                                      \
  NUMEMU_THROWS(macro, flags, #__VA_ARGS__, (__VA_ARGS__), rightly_not_thrown, \
                NUMEMU_CATCH(..., wrongly_thrown(numemu_site)))
#define NUMEMU_THROWS_ANY(macro, flags, ...)                           \
  NUMEMU_THROWS(macro, flags, #__VA_ARGS__, (__VA_ARGS__), not_thrown, \
                NUMEMU_CATCH(..., rightly_thrown(numemu_site)))
#define NUMEMU_THROWS_AS(macro, flags, expression, type)                        \
  NUMEMU_THROWS(macro, flags, #expression ", " #type, (expression), not_thrown, \
                NUMEMU_CATCH(const type&, rightly_thrown(numemu_site))          \
                    NUMEMU_CATCH(..., wrongly_thrown(numemu_site)))
#define NUMEMU_THROWS_WITH(macro, flags, expression, ...)                              \
  NUMEMU_THROWS(macro, flags, #expression ", " #__VA_ARGS__, (expression), not_thrown, \
                NUMEMU_CATCH(..., thrown_with(numemu_site, __VA_ARGS__)))
#define NUMEMU_CASE(function, ...)                                                     \
  static void function();                                                              \
  static const ::numemu::assertions::Case INTERNAL_CATCH_UNIQUE_NAME(numemu_case)(     \
      [] { ::numemu::assertions::guard(function); }, __FILE__, __LINE__, __VA_ARGS__); \
  static void function()

#undef CHECK
#undef CHECK_FALSE
#undef CHECK_NOTHROW
#undef CHECK_THAT
#undef CHECK_THROWS
#undef CHECK_THROWS_AS
#undef CHECK_THROWS_WITH
#undef INFO
#undef REQUIRE
#undef REQUIRE_FALSE
#undef REQUIRE_NOTHROW
#undef REQUIRE_THAT
#undef REQUIRE_THROWS_WITH
#undef TEST_CASE
#define CHECK(...) NUMEMU_ASSERT("CHECK", kCheck, __VA_ARGS__)
#define CHECK_FALSE(...) NUMEMU_ASSERT("CHECK_FALSE", kCheckFalse, __VA_ARGS__)
#define CHECK_NOTHROW(...) NUMEMU_NOTHROW("CHECK_NOTHROW", kCheck, __VA_ARGS__)
#define CHECK_THAT(value, ...) NUMEMU_THAT("CHECK_THAT", kCheck, value, __VA_ARGS__)
#define CHECK_THROWS(...) NUMEMU_THROWS_ANY("CHECK_THROWS", kCheck, __VA_ARGS__)
#define CHECK_THROWS_AS(...) NUMEMU_THROWS_AS("CHECK_THROWS_AS", kCheck, __VA_ARGS__)
#define CHECK_THROWS_WITH(...) NUMEMU_THROWS_WITH("CHECK_THROWS_WITH", kCheck, __VA_ARGS__)
#define INFO(...)                                                           \
  const ::numemu::assertions::Info INTERNAL_CATCH_UNIQUE_NAME(numemu_info)( \
      __FILE__, __LINE__, ::numemu::assertions::Text() << __VA_ARGS__)
#define REQUIRE(...) NUMEMU_ASSERT("REQUIRE", kRequire, __VA_ARGS__)
#define REQUIRE_FALSE(...) NUMEMU_ASSERT("REQUIRE_FALSE", kRequireFalse, __VA_ARGS__)
#define REQUIRE_NOTHROW(...) NUMEMU_NOTHROW("REQUIRE_NOTHROW", kRequire, __VA_ARGS__)
#define REQUIRE_THAT(value, ...) NUMEMU_THAT("REQUIRE_THAT", kRequire, value, __VA_ARGS__)
#define REQUIRE_THROWS_WITH(...) NUMEMU_THROWS_WITH("REQUIRE_THROWS_WITH", kRequire, __VA_ARGS__)
#define TEST_CASE(...) NUMEMU_CASE(INTERNAL_CATCH_UNIQUE_NAME(numemu_test_case), __VA_ARGS__)
