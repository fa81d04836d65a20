// numemu identify: the rule of an unknown unit, from its answers to questions that tell units
// apart.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>

#include "api/oracle.hpp"
#include "cli/command.hpp"
#include "cli/identify_report.hpp"
#include "cli/progress.hpp"
#include "cli/talk.hpp"
#include "emu/unit/description/json.hpp"
#include "formats/error.hpp"
#include "formats/storage/atomic_file.hpp"
#include "formats/storage/distinct_paths.hpp"

namespace numemu::cli {
namespace {

struct Options {
  std::string in, instr, device, out, nan = "strict";
  api::PortsTold told;
  std::int64_t confirm = 10'000;
  std::uint64_t seed = 0;
  double timeout = 10;
  std::optional<double> time_limit;
  bool live = false, order = false, json = false, quiet = false;
};

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

int run_folder(const Options& o, const oracle::IdentifyOptions& options) {
  Json all = Json::array();
  const bool fits = api::identify_folder(
      o.in, o.instr, options, [&](const oracle::RecordedUnit& one, const oracle::Finding& finding) {
        if (o.json) return all.push_back(finding_json(one, finding));
        fmt::print("{}", finding_text(one, finding));
        std::fflush(stdout);
      });
  if (o.json) fmt::print("{}\n", all.dump(2));
  return fits ? kFine : kMismatch;
}

api::Identified ask_device(const Options& o, const oracle::IdentifyOptions& options) {
  const api::UnknownUnit unknown = api::unknown_unit(o.told);
  const auto device = o.live ? api::QuestionDevice::of_standard_streams(o.timeout, seconds)
                             : api::QuestionDevice::of_command(o.device, o.timeout, seconds);
  return api::identify(unknown, *device, o.order, options);
}

int run_identify(const Options& o) {
  if (int{!o.in.empty()} + int{!o.device.empty()} + int{o.live} != 1)
    throw Error("expected one of --in FILE, --device COMMAND and --live");
  if (o.order && !o.in.empty()) throw Error("--order: not allowed with --in: it asks");
  if (!o.out.empty()) {
    if (api::is_folder(o.in)) throw Error("--out: not allowed with --in FOLDER");
    require_replaceable(o.out);
    require_distinct_paths({{"--out", o.out, false}},
                           {{"--in", o.in, false},
                            {"--like", api::is_unit_file(o.told.like) ? o.told.like : "", false}});
  }
  oracle::IdentifyOptions options{.seed = o.seed,
                                  .confirmations = static_cast<std::size_t>(o.confirm),
                                  .any_nan = o.nan == "any"};
  if (o.time_limit)
    options.stop = [until = seconds() + *o.time_limit] { return seconds() > until; };
  options.on_progress = Phases(o.quiet || o.json);
  if (api::is_folder(o.in)) return run_folder(o, options);
  if (!o.instr.empty()) throw Error("--instr: expected together with --in FOLDER");
  const api::Identified identified =
      o.in.empty() ? ask_device(o, options) : api::identify_records(o.in, o.told, options);
  if (identified.ignored != 0)
    say("numemu: {}: {} records with unknown digits or beyond 2^20 are ignored", o.in,
        identified.ignored);
  if (!o.out.empty() && identified.found())
    unit::write_description(api::own_description(identified), o.out);
  const std::string text = o.json ? identify_json(identified) : identify_text(identified);
  // Standard output belongs to the questions.
  if (o.live) {
    write_talk(text);
  } else if (!o.quiet || o.json) {
    fmt::print("{}", text);
  }
  return identified.found() ? kFine : kMismatch;
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
      "--like U", o.told.like,
      "What the unit takes: as this unit, by name, or a file unit.json, which may be it");
  command.option("--format-a F", o.told.a, "Format of A (and of B)");
  command.option("--format-b F", o.told.b, "Format of B");
  command.option("--format-c F", o.told.c, "Format of C (default: that of D)");
  command.option("--format-d F", o.told.d, "Format of D; int32: two's complement (int2 to int32)");
  command.option("--k K", o.told.k, "Elements of B in a dot").whole(1, 4096);
  command.option("--scale F", o.told.scale, "Format of block scales");
  command.option("--block N", o.told.block, "Elements per scale").whole(1, 4096);
  command.option("--sparsity N:M", o.told.sparsity, "Kept elements of A");
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
