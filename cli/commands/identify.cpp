// numemu identify: the rule of an unknown unit, from its answers to questions that tell units
// apart.
#include "emu/oracle/identify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <memory>
#include <optional>

#include "cli/command.hpp"
#include "cli/identify_folder.hpp"
#include "cli/identify_report.hpp"
#include "cli/product.hpp"
#include "cli/progress.hpp"
#include "cli/question_device.hpp"
#include "cli/record_file.hpp"
#include "cli/talk.hpp"
#include "cli/verify_folder.hpp"
#include "emu/oracle/protocol.hpp"
#include "emu/oracle/summation_tree.hpp"
#include "emu/unit/description/json.hpp"
#include "emu/unit/sparse/pattern.hpp"
#include "emu/unit/unit.hpp"
#include "formats/error.hpp"
#include "formats/storage/atomic_file.hpp"
#include "formats/storage/distinct_paths.hpp"

namespace numemu::cli {
namespace {

using oracle::Dot;
using oracle::Ports;

struct Options {
  std::string in, instr, device, like, out;
  std::string a, b, c, d, scale, sparsity, nan = "strict";
  std::int64_t k = 0, block = 0, confirm = 10'000;
  std::uint64_t seed = 0;
  double timeout = 10;
  std::optional<double> time_limit;
  bool live = false, order = false, json = false, quiet = false;
};

/// A format of C or D; nullptr: two's complement of as many bits, "int32".
const Format* accumulator(const std::string& name, int& bits) {
  constexpr int kMostBits = 32;  // of a unit's register
  const std::string_view digits = name.starts_with("int") ? std::string_view(name).substr(3) : "";
  int wanted = 0;
  const char* const end = digits.data() + digits.size();
  const auto read = std::from_chars(digits.data(), end, wanted);
  if (digits.empty() || read.ptr != end) return &find_format(name);
  if (read.ec != std::errc() || wanted < 2 || wanted > kMostBits)
    throw Error(fmt::format("{}: expected int2 to int{} for two's complement", name, kMostBits));
  bits = wanted;
  return nullptr;
}

unit::Sparsity parse_sparsity(const std::string& text) {
  unit::Sparsity s;
  const char* end = text.data() + text.size();
  const auto kept = std::from_chars(text.data(), end, s.kept);
  const bool colon = kept.ec == std::errc{} && kept.ptr != end && *kept.ptr == ':';
  const auto group = std::from_chars(colon ? kept.ptr + 1 : end, end, s.group);
  if (group.ec != std::errc{} || group.ptr != end || s.kept < 1 || s.kept > s.group || s.group > 16)
    throw Error("--sparsity: expected N:M with 1 <= N <= M <= 16, as in 2:4");
  return s;
}

bool is_described(const std::string& unit) { return unit.ends_with(".json"); }

Ports ports_like(const std::string& name, std::int64_t k) {
  const unit::Unit& unit = unit_named(name);
  if (unit.description() == nullptr)
    throw Error("--like: unit " + unit.row().name + " has no description");
  const int usual = unit.description()->k != 0 ? unit.description()->k : 32;
  return oracle::ports_of(*unit.description(), k != 0 ? static_cast<int>(k) : usual);
}

/// From the options, which go before what the file's first line says.
Ports ports_of_options(const Options& o, const std::string& header) {
  Ports ports;
  if (!o.like.empty()) {
    ports = ports_like(o.like, o.k);
  } else if (!header.empty()) {
    const oracle::Subject subject = oracle::parse_header(header, unit_described(o.in, header));
    if (subject.unit == nullptr) throw Error(o.in + ": line 1: expected records of a unit");
    if (subject.rounding.stochastic())
      throw Error(fmt::format("{}: line 1: expected a unit without random numbers, found {}", o.in,
                              subject.unit->row().name));
    ports = oracle::ports_of(*subject.unit->description(), static_cast<int>(subject.k));
    ports.a = subject.a;
    ports.b = subject.b;
  } else if (o.a.empty() || o.d.empty() || o.k == 0) {
    throw Error("expected --format-a, --format-d and --k, or --like U: what the unit takes");
  }
  if (!o.a.empty()) ports.a = ports.b = &find_format(o.a);
  if (!o.b.empty()) ports.b = &find_format(o.b);
  if (!o.d.empty()) ports.c = ports.d = accumulator(o.d, ports.bits);
  if (!o.c.empty()) ports.c = accumulator(o.c, ports.bits);
  if (o.k != 0) ports.k = static_cast<int>(o.k);
  if (!o.sparsity.empty()) ports.sparsity = parse_sparsity(o.sparsity);
  if (o.scale.empty() != (o.block == 0))
    throw Error("--scale: expected together with --block, elements per scale");
  if (!o.scale.empty()) {
    ports.scale = &find_format(o.scale);
    ports.block = static_cast<int>(o.block);
  }
  oracle::check_ports(ports);
  return ports;
}

/// The unit of --like FILE.json, or of the first line of a file of vectors.
std::vector<unit::UnitDescription> own_units(const Options& o, const Ports& ports,
                                             const std::string& header) {
  const unit::Unit* const unit = is_described(o.like) ? &unit_named(o.like)
                                 : o.like.empty()     ? unit_described(o.in, header)
                                                      : nullptr;
  if (unit == nullptr) return {};
  unit::UnitDescription u = *unit->description();
  u.a = ports.a;
  u.b = ports.b;
  return {u};
}

/// Reads and asks by text; keeps count.
class Conversation {
 public:
  Conversation(const Ports& ports, QuestionDevice& device)
      : ports_(ports), device_(device), layout_(oracle::answer_layout(ports)) {
    device_.write(oracle::questions_header(ports));
  }

  std::uint64_t ask(const Dot& dot) {
    device_.write(oracle::question_text(ports_, dot));
    // The reader begins with a line: there is none before the first question.
    if (!reader_)
      reader_.emplace("device", [this](char* to, std::size_t most) { return read(to, most); });
    if (!reader_->read(layout_, 1, answer_))
      throw Error(fmt::format("device: no answer to question {}", asked_ + 1));
    if (answer_.has_unknown(layout_, 0, 0))
      throw Error(
          fmt::format("device: answer {}: expected hexadecimal digits, found X or Z", asked_ + 1));
    ++asked_;
    unanswered_ = 0;
    return answer_.code(0, 0);
  }
  std::size_t asked() const { return asked_; }

 private:
  /// Comments may come, too, but not without end.
  std::size_t read(char* to, std::size_t most) {
    constexpr std::size_t kMostUnanswered = 1 << 20;
    const std::size_t count = device_.read(to, most);
    unanswered_ += count;
    if (unanswered_ > kMostUnanswered)
      throw Error(fmt::format("device: expected one line for question {}, found over 2^20 bytes",
                              asked_ + 1));
    return count;
  }

  const Ports& ports_;
  QuestionDevice& device_;
  oracle::Layout layout_;
  oracle::Records answer_;
  std::optional<oracle::TextReader> reader_;
  std::size_t asked_ = 0, unanswered_ = 0;
};

/// All records of the file without unknown digits, and their lines.
std::vector<oracle::Answered> read_records(RecordFile& reader, const Ports& ports,
                                           std::size_t& skipped, std::vector<std::int64_t>& lines) {
  constexpr std::int64_t kPiece = 1024;
  constexpr std::size_t kMost = 1 << 20;
  const oracle::Layout layout = oracle::record_layout(ports);
  std::vector<oracle::Answered> all;
  for (oracle::Records records; reader.read(layout, kPiece, records);) {
    for (std::int64_t i = 0; i < records.size; ++i) {
      bool unknown = false;
      for (std::size_t f = 0; f < layout.size(); ++f)
        unknown = unknown || records.has_unknown(layout, static_cast<int>(f), i);
      if (unknown || all.size() == kMost) {
        ++skipped;
        continue;
      }
      std::string name(records.class_name(i));
      all.push_back({{name.empty() ? "record" : std::move(name), oracle::dot_of(ports, records, i)},
                     records.code(oracle::find_field(layout, "d"), i)});
      lines.push_back(records.line[static_cast<std::size_t>(i)]);
    }
  }
  return all;
}

/// A bar for each phase of work that takes longer than a moment.
class Phases {
 public:
  explicit Phases(bool quiet) : quiet_(quiet) {}
  void operator()(std::string_view phase, std::size_t done, std::size_t total) {
    constexpr double kMoment = 2;  // seconds
    if (phase != phase_) {
      bar_ = nullptr;
      phase_ = phase;
      first_ = done - 1;
      start_ = seconds();
    }
    if (bar_ == nullptr && seconds() - start_ < kMoment) return;
    if (bar_ == nullptr)
      bar_ = std::make_shared<Progress>("identify", static_cast<std::int64_t>(total), phase_,
                                        quiet_, start_);
    bar_->show(static_cast<double>(std::min(done, total)), "", static_cast<double>(first_));
  }

 private:
  std::string phase_;
  std::shared_ptr<Progress> bar_;
  std::size_t first_ = 0;
  double start_ = 0;
  bool quiet_;
};

int run_identify(const Options& o) {
  if (int{!o.in.empty()} + int{!o.device.empty()} + int{o.live} != 1)
    throw Error("expected one of --in FILE, --device COMMAND and --live");
  if (o.order && !o.in.empty()) throw Error("--order: not allowed with --in: it asks");
  if (!o.out.empty()) {
    if (is_folder(o.in)) throw Error("--out: not allowed with --in FOLDER");
    require_replaceable(o.out);
    require_distinct_paths(
        {{"--out", o.out, false}},
        {{"--in", o.in, false}, {"--like", is_described(o.like) ? o.like : "", false}});
  }
  oracle::IdentifyOptions options{.seed = o.seed,
                                  .confirmations = static_cast<std::size_t>(o.confirm),
                                  .any_nan = o.nan == "any"};
  if (o.time_limit)
    options.stop = [until = seconds() + *o.time_limit] { return seconds() > until; };
  options.on_progress = Phases(o.quiet || o.json);
  if (is_folder(o.in)) return identify_folder(o.in, o.instr, options, o.json);
  if (!o.instr.empty()) throw Error("--instr: expected together with --in FOLDER");
  IdentifyReport report;
  Ports ports;
  if (!o.in.empty()) {
    RecordFile reader(o.in);
    report.place = reader.place();
    ports = ports_of_options(o, reader.header());
    std::size_t skipped = 0;
    const auto records = read_records(reader, ports, skipped, report.places);
    if (records.empty()) throw Error(o.in + ": expected at least one record");
    if (skipped != 0)
      say("numemu: {}: {} records with unknown digits or beyond 2^20 are ignored", o.in, skipped);
    options.units = own_units(o, ports, reader.header());
    report.finding = oracle::identify(ports, records, options);
    report.asked = records.size();
  } else {
    ports = ports_of_options(o, "");
    const auto device = o.live ? QuestionDevice::of_standard_streams(o.timeout)
                               : QuestionDevice::of_command(o.device, o.timeout);
    Conversation conversation(ports, *device);
    options.units = own_units(o, ports, "");
    const oracle::Device ask = [&](const Dot& dot) { return conversation.ask(dot); };
    report.finding = oracle::identify(ports, ask, options);
    constexpr int kMostForTree = 256;
    const bool unknown = !report.finding.fits && !report.finding.found_but() &&
                         report.finding.reproducible && !report.finding.too_late;
    report.order_asked = (o.order || unknown) && ports.kept() <= kMostForTree;
    if (report.order_asked) report.tree = oracle::read_summation_tree(ports, ask);
    report.asked = conversation.asked();
  }
  const bool found = report.finding.fits && report.finding.decided;
  if (!o.out.empty() && found)
    unit::write_description(own_description(report.finding, ports), o.out);
  const std::string text = o.json ? identify_json(report, ports) : identify_text(report, ports);
  // Standard output belongs to the questions.
  if (o.live) {
    write_talk(text);
  } else if (!o.quiet || o.json) {
    fmt::print("{}", text);
  }
  return found ? kFine : kMismatch;
}

}  // namespace

void add_identify(Program& program) {
  auto options = std::make_shared<Options>();
  Command& command = program.command("identify", [options] { return run_identify(*options); });
  Options& o = *options;
  command.option(
      "--in FILE", o.in,
      "Records of a vector file of any form, results made elsewhere; - is standard input");
  command.option("--instr TEXT", o.instr,
                 "Of a folder that a GPU recorded (--in FOLDER): instructions whose name has it");
  command.option("--device COMMAND", o.device, "A program that reads questions and writes answers");
  command.flag("--live", o.live,
               "Ask on standard output, read answers from standard input, report on stderr");
  command.option(
      "--like U", o.like,
      "What the unit takes: as this unit, by name, or a file unit.json, which may be it");
  command.option("--format-a F", o.a, "Format of A (and of B)");
  command.option("--format-b F", o.b, "Format of B");
  command.option("--format-c F", o.c, "Format of C (default: that of D)");
  command.option("--format-d F", o.d, "Format of D; int32: two's complement (int2 to int32)");
  command.option("--k K", o.k, "Elements of B in a dot").whole(1, 4096);
  command.option("--scale F", o.scale, "Format of block scales");
  command.option("--block N", o.block, "Elements per scale").whole(1, 4096);
  command.option("--sparsity N:M", o.sparsity, "Kept elements of A");
  command
      .option("--nan RULE", o.nan,
              "strict: NaN answers count bit by bit; any: every NaN is the same")
      .one_of({"strict", "any"});
  command.option("--confirm N", o.confirm, "Mixed vectors of the rule that was found, asked last")
      .whole(0, 1000000)
      .show_default();
  command.option("--timeout S", o.timeout, "Seconds to wait for a whole answer")
      .positive()
      .show_default();
  command.option("--time-limit S", o.time_limit, "Seconds after which what is known is reported")
      .positive();
  command.flag("--order", o.order,
               "Read the order of the sum, too (asked anyway where no rule fits)");
  command.option("--out UNIT.json", o.out, "The description, for gemm --unit");
  command.option("--seed S", o.seed, "Seed of the random questions (default: 0)");
  command.flag("--json", o.json, "Print JSON");
  command.flag("--quiet", o.quiet, "No report");
  add_threads(command);
}

}  // namespace numemu::cli
