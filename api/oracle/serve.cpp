// Lines of operands become lines of results, whatever is there at a time as one batch.
#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "api/oracle.hpp"
#include "api/oracle/records.hpp"
#include "emu/oracle/evaluate.hpp"
#include "emu/oracle/identify/protocol.hpp"
#include "formats/error.hpp"

namespace numemu::api {
namespace {

using oracle::Field;
using oracle::Layout;
using oracle::Records;
using oracle::Subject;

/// Codes that wait for their answers, at most.
constexpr std::int64_t kMostWaiting = 1 << 18;

class Server {
 public:
  Server(const Subject& subject, bool flags, std::string name, const oracle::ByteReader& questions,
         const std::function<void(const std::string&)>& answer)
      : subject_(subject),
        layout_(oracle::layout_of(subject)),
        flags_(flags),
        name_(std::move(name)),
        questions_(questions),
        answer_(answer) {
    for (std::size_t f = 0; f < layout_.size(); ++f) {
      if (!layout_[f].result) operands_.push_back(layout_[f]);  // which come first
      if (layout_[f].result && (flags || layout_[f].name != "flags")) results_.push_back(f);
      if (!layout_[f].result) codes_ += layout_[f].count;
    }
    if (flags && oracle::find_field(layout_, "flags") < 0)
      throw usage_error("--flags: an integer unit raises none");
    waiting_.reset(operands_, 0);
  }

  void run() {
    try {
      oracle::TextReader reader(name_,
                                [this](char* to, std::size_t most) { return read(to, most); });
      for (Records one; reader.read(operands_, 1, one);) {
        check(one);
        oracle::append_record(operands_, one, 0, waiting_);
        if (waiting_.size * codes_ >= kMostWaiting) answer_all();
      }
    } catch (...) {
      answer_all();
      throw;
    }
    answer_all();
  }

 private:
  /// Who asks may wait for the answers to what it wrote before it writes more.
  std::size_t read(char* to, std::size_t most) {
    answer_all();
    const std::size_t count = questions_(to, most);
    if (header_ended_ || subject_.unit == nullptr) return count;
    const std::string_view text(to, count);
    header_ += text.substr(0, text.find('\n'));
    header_ended_ =
        count == 0 || header_.size() > kLongestHeader || text.find('\n') != std::string_view::npos;
    if (header_ended_) check_header();
    return count;
  }

  /// The first line that `identify` writes.
  void check_header() const {
    const std::string_view found = std::string_view(header_).substr(0, header_.find('\r'));
    if (!found.starts_with(oracle::kQuestionsBegin)) return;
    oracle::Ports ports =
        oracle::ports_of(*subject_.unit->description(), static_cast<int>(subject_.k));
    ports.a = subject_.a;
    ports.b = subject_.b;
    std::string expected = oracle::questions_header(ports);
    expected.pop_back();
    if (found != expected)
      throw Error(fmt::format("{}: line 1: expected '{}', the operands of {}, found '{}'", name_,
                              expected, subject_.unit->row().name, found));
  }

  [[noreturn]] void fail(std::int64_t line, std::string_view text) const {
    throw Error(fmt::format("{}: line {}: {}", name_, line, text));
  }

  void check(const Records& one) const {
    for (std::size_t f = 0; f < operands_.size(); ++f) {
      const Field& field = operands_[f];
      if (one.has_unknown(operands_, static_cast<int>(f), 0))
        fail(one.line[0], fmt::format("{}: expected hexadecimal digits, found X or Z", field.name));
      if (field.format == nullptr) continue;
      for (const std::uint64_t code : one.columns[f]) {
        if (code > field.format->last_code())
          fail(one.line[0],
               fmt::format("{}: {:#x} is not a code of {}", field.name, code, field.format->name));
      }
    }
  }

  void answer_all() {
    if (waiting_.size == 0) return;
    Records all(layout_, waiting_.size);
    for (std::size_t f = 0; f < operands_.size(); ++f)
      all.columns[f] = std::move(waiting_.columns[f]);
    all.line = std::move(waiting_.line);
    waiting_.reset(operands_, 0);
    try {
      compute(all);
    } catch (const oracle::RecordError& error) {
      const std::int64_t line = all.line[static_cast<std::size_t>(error.record)];
      write(all, error.record);
      fail(line, error.text);
    }
    write(all, all.size);
  }

  void compute(Records& all) const {
    flags_ ? oracle::evaluate(subject_, all)
           : oracle::evaluate_without_flags(subject_, layout_, all);
  }

  void write(const Records& all, std::int64_t count) const {
    std::string text;
    for (std::int64_t i = 0; i < count; ++i) {
      for (const std::size_t f : results_) {
        oracle::append_words(layout_[f], all, static_cast<int>(f), i, text);
        text += f == results_.back() ? '\n' : ' ';
      }
    }
    if (!text.empty()) answer_(text);
  }

  static constexpr std::size_t kLongestHeader = 4096;

  const Subject subject_;
  const Layout layout_;
  Layout operands_;
  std::vector<std::size_t> results_;  ///< fields of the answers
  std::int64_t codes_ = 0;            ///< of the operands of a record
  const bool flags_;
  std::string name_, header_;
  bool header_ended_ = false;
  const oracle::ByteReader& questions_;
  const std::function<void(const std::string&)>& answer_;
  Records waiting_;
};

}  // namespace

void serve(const VectorOptions& options, bool flags, const std::string& name,
           const oracle::ByteReader& questions,
           const std::function<void(const std::string&)>& answer) {
  UnitPtr unit;
  const Subject subject = subject_of(options, unit);
  Server(subject, flags, name, questions, answer).run();
}

}  // namespace numemu::api
