#include "tests/assertions.hpp"

#include <csignal>
#include <utility>

namespace numemu::assertions {

const Site* current = nullptr;

namespace {

const Site* last = nullptr;  ///< the assertion that was evaluated before
Catch::AssertionReaction reaction_to_throwing;

Catch::AssertionInfo info_of(const Site& site) {
  return {site.macro, Catch::SourceLineInfo(site.file, site.line), site.text,
          static_cast<Catch::ResultDisposition::Flags>(site.flags)};
}

void evaluated(const Site& site) {
  last = &site;
  current = nullptr;
}

void pass(const Site& site) {
  evaluated(site);
  Catch::IResultCapture& capture = Catch::getResultCapture();
  if (!Catch::getCurrentContext().getConfig()->includeSuccessfulResults())
    return capture.assertionPassed();
  Catch::AssertionReaction none;
  capture.handleNonExpr(info_of(site), Catch::ResultWas::Ok, none);
}

void react(Catch::AssertionReaction reaction) {
  if (reaction.shouldDebugBreak) std::raise(SIGTRAP);
  if (reaction.shouldThrow) throw Catch::TestFailureException();
}

/// How Catch2 asks for the text of an expression, whose value is the one that fails.
class Failed : public Catch::ITransientExpression {
 public:
  Failed(const Site& site, Operand left, const char* op, Operand right)
      : ITransientExpression(op != nullptr, Catch::isFalseTest(site.flags)),
        left_(left),
        op_(op),
        right_(right) {}

  void streamReconstructedExpression(std::ostream& out) const override {
    const std::string left = left_.show(left_.value);
    if (op_ == nullptr)
      out << left;
    else
      Catch::formatReconstructedExpression(out, left, op_, right_.show(right_.value));
  }

 private:
  Operand left_;
  const char* op_;
  Operand right_;
};

class Mismatch : public Catch::ITransientExpression {
 public:
  Mismatch(Operand value, const std::string& wanted)
      : ITransientExpression(true, false), value_(value), wanted_(wanted) {}

  void streamReconstructedExpression(std::ostream& out) const override {
    out << value_.show(value_.value) << ' ' << wanted_;
  }

 private:
  Operand value_;
  const std::string& wanted_;
};

Catch::AssertionReaction report(const Site& site, const Catch::ITransientExpression& expression) {
  Catch::AssertionReaction reaction;
  Catch::getResultCapture().handleExpr(info_of(site), expression, reaction);
  return reaction;
}

}  // namespace

void forget_place() { current = last = nullptr; }

void report_exception() {
  if (current == nullptr && last == nullptr) throw;
  Catch::AssertionInfo info = info_of(current != nullptr ? *current : *last);
  if (current == nullptr) {
    info.macroName = Catch::StringRef();
    info.capturedExpression = "{Unknown expression after the reported line}";
  }
  Catch::AssertionReaction none;
  Catch::getResultCapture().handleUnexpectedInflightException(
      info, Catch::translateActiveException(), none);
  throw Catch::TestFailureException();
}

bool passes(const Site& site, bool value) {
  if (value == Catch::isFalseTest(site.flags)) return false;
  pass(site);
  return true;
}

void fail(const Site& site, Operand left, const char* op, Operand right) {
  react(report(site, Failed(site, left, op, right)));
}

void fail(const Site& site, Operand value, const std::string& wanted) {
  react(report(site, Mismatch(value, wanted)));
}

void judge(const Site& site, bool value) {
  if (!passes(site, value)) fail(site, operand(value));
}

void check_that(const Site& site, const std::string& value, const StringMatcher& matcher) {
  check_that<std::string>(site, value, matcher);
}

void not_thrown(const Site& site) noexcept {
  Catch::getResultCapture().handleUnexpectedExceptionNotThrown(info_of(site), reaction_to_throwing);
}

void rightly_not_thrown(const Site& site) noexcept { pass(site); }

void rightly_thrown(const Site& site) noexcept { pass(site); }

void wrongly_thrown(const Site& site) noexcept {
  try {
    Catch::getResultCapture().handleUnexpectedInflightException(
        info_of(site), Catch::translateActiveException(), reaction_to_throwing);
  } catch (const Catch::TestFailureException&) {  // a REQUIRE in the expression has failed
    reaction_to_throwing.shouldThrow = true;
  }
}

void thrown_with(const Site& site, const std::string& text) noexcept {
  thrown_with(site, Catch::Equals(text));
}

void thrown_with(const Site& site, const StringMatcher& matcher) noexcept {
  try {
    const std::string message = Catch::translateActiveException();
    if (!passes(site, matcher.match(message)))
      reaction_to_throwing = report(site, Mismatch(operand(message), matcher.toString()));
  } catch (const Catch::TestFailureException&) {
    reaction_to_throwing.shouldThrow = true;
  }
}

void finish_throwing() { react(std::exchange(reaction_to_throwing, {})); }

Text::Text() = default;
Text::~Text() = default;

Text& Text::operator<<(const char* value) {
  stream_.get() << value;
  return *this;
}

Text& Text::operator<<(const std::string& value) {
  stream_.get() << value;
  return *this;
}

Text& Text::operator<<(int value) {
  stream_.get() << value;
  return *this;
}

Text& Text::operator<<(std::size_t value) {
  stream_.get() << value;
  return *this;
}

Text& Text::operator<<(double value) {
  stream_.get() << value;
  return *this;
}

std::string Text::str() const { return stream_.str(); }

Info::Info(const char* file, unsigned line, const Text& text)
    : message_(
          Catch::MessageBuilder("INFO", Catch::SourceLineInfo(file, line), Catch::ResultWas::Info)
          << text.str()) {}

Info::~Info() = default;

std::string source_of(const char* file) {
  const std::string root = NUMEMU_SOURCE "/tests/";
  std::string path = file;
  if (path.rfind(root, 0) == 0) path.erase(0, root.size());
  return path.substr(0, path.rfind("_test.cpp"));
}

void guard(void (*run)()) {
  try {
    run();
  } catch (const Catch::TestFailureException&) {
    throw;  // an assertion has stopped the case
  } catch (...) {
    report_exception();
  }
}

Case::Case(void (*run)(), const char* file, unsigned line, const char* name, const char* tags) {
  const std::string all = std::string(tags) + "[" + source_of(file) + "]";
  const Catch::AutoReg registered(Catch::makeTestInvoker(run), Catch::SourceLineInfo(file, line),
                                  Catch::StringRef(), Catch::NameAndTags(name, all));
}

}  // namespace numemu::assertions
