// Reads a file of records in batches, which are checked over threads.
#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "cli/product.hpp"
#include "cli/progress.hpp"
#include "cli/record_file.hpp"
#include "cli/verify_input.hpp"
#include "emu/oracle/foreign.hpp"
#include "formats/error.hpp"

namespace numemu::cli {
namespace {

using oracle::Operation;
using oracle::Records;
using oracle::Subject;

/// Codes of one batch: what several threads check at a time takes a few MiB each.
constexpr std::int64_t kBatchCodes = std::int64_t{1} << 18, kBatchRecords = 8192;

/// What the first line of a file of `numemu vectors` would say.
const std::string& required(const std::string& text, const char* option) {
  if (text.empty())
    throw Error(fmt::format("{}: expected one, as the file has no first line with it", option));
  return text;
}

/// What the options alone say; `k` of a foreign layout.
Subject told_subject(const VerifyOptions& o, std::int64_t k) {
  if (o.unit.empty()) {
    const Operation operation = oracle::parse_operation(required(o.op, "--unit or --op"));
    const Format& from = find_format(required(o.from, "--from"));
    const Format& to = o.to.empty() ? from : find_format(o.to);
    return oracle::operation_subject(
        operation, from, to, parse_rounding(o.rounding.empty() ? "rne" : o.rounding),
        parse_overflow(required(o.overflow, "--overflow")), std::max<std::int64_t>(k, 1));
  }
  const auto format = [](const std::string& name) {
    return name.empty() ? nullptr : &find_format(name);
  };
  return oracle::unit_subject(unit_named(o.unit), k, format(o.arrays.format_a),
                              format(o.arrays.format_b));
}

/// Refuses operands that are not those of the file's first line.
void require_told(const VerifyOptions& o, const std::string& name, const Subject& s) {
  const auto require = [&](const char* option, bool agrees, const auto& found) {
    if (!agrees)
      throw Error(fmt::format("{}: expected {} or nothing, as {} has it", option, found, name));
  };
  const auto format = [&](const char* option, const std::string& told, const Format* own) {
    const std::string found = own != nullptr ? own->name : "nothing";
    require(option, told.empty() || (own != nullptr && find_format(told).name == found), found);
  };
  require("--k", o.k == 0 || o.k == s.k, s.k);
  format("--from", o.from, s.a);
  format("--to", o.to, s.to);
  format("--format-a", o.arrays.format_a, s.a);
  format("--format-b", o.arrays.format_b, s.b);
  if (s.unit != nullptr && (!o.rounding.empty() || !o.overflow.empty()))
    throw Error(fmt::format("{}: not allowed with the unit's vectors of {}",
                            o.rounding.empty() ? "--overflow" : "--rounding", name));
}

/// The file's first line, except for what the options say instead.
/// `depth`: products of a record as the file has them, where it tells.
Subject subject_of(const VerifyOptions& o, const std::string& name, const std::string& header,
                   std::int64_t depth) {
  if (header.empty()) return told_subject(o, o.k == 0 ? depth : o.k);
  Subject s;
  try {
    s = oracle::parse_header(header,
                             o.unit.empty() ? unit_described(name, header) : &unit_named(o.unit));
  } catch (const Error& error) {
    throw Error(fmt::format("{}: line 1: {}", name, error.what()));
  }
  if (!o.unit.empty() && s.unit == nullptr)
    throw Error(
        fmt::format("--unit: {} holds vectors of operation {}", name, to_string(s.operation)));
  if (!o.op.empty() && (s.unit != nullptr || oracle::parse_operation(o.op) != s.operation))
    throw Error(fmt::format(
        "--op: {} contradicts {}, whose vectors are of {}", o.op, name,
        s.unit != nullptr ? "unit " + s.unit->row().name : std::string(to_string(s.operation))));
  require_told(o, name, s);
  if (!o.rounding.empty()) s.rounding = parse_rounding(o.rounding);
  if (!o.overflow.empty()) s.overflow = parse_overflow(o.overflow);
  return s;
}

/// Records of either kind of file.
class Source {
 public:
  explicit Source(const VerifyOptions& o) {
    if (o.fields.empty()) {
      file_.emplace(o.in);
      subject = subject_of(o, file_->name(), file_->header(), file_->depth());
      return;
    }
    oracle::Layout fields = oracle::parse_fields(o.fields);
    const int b = oracle::find_field(fields, "b");
    subject = told_subject(o, b < 0 ? 1 : fields[static_cast<std::size_t>(b)].count);
    const auto order =
        o.element_order == "msb" ? oracle::ElementOrder::msb : oracle::ElementOrder::lsb;
    stream_.emplace(o.in);
    foreign_.emplace(std::move(fields), order, subject, stream_->name(), text_of(*stream_));
  }

  bool read(const oracle::Layout& layout, std::int64_t most, Records& records) {
    return file_ ? file_->read(layout, most, records) : foreign_->read(most, records);
  }
  bool has_flags(const oracle::Layout& layout) const {
    if (oracle::find_field(layout, "flags") < 0) return false;
    return file_ ? file_->has_optional() : foreign_->has("flags");
  }
  const std::string& name() const { return file_ ? file_->name() : stream_->name(); }
  const char* place() const { return file_ ? file_->place() : "line"; }
  std::int64_t size() const { return file_ ? file_->size() : stream_->size(); }
  std::int64_t consumed() const { return file_ ? file_->consumed() : stream_->consumed(); }

  Subject subject;

 private:
  std::optional<RecordFile> file_;
  std::optional<ByteStream> stream_;
  std::optional<oracle::ForeignReader> foreign_;
};

}  // namespace

Verified verify_file(const VerifyOptions& o) {
  Source source(o);
  const oracle::Layout layout = oracle::layout_of(source.subject);
  std::int64_t codes = 0;
  for (const oracle::Field& field : layout) codes += field.count;
  const std::int64_t most = std::clamp<std::int64_t>(kBatchCodes / codes, 1, kBatchRecords);
  std::vector<Records> batches(static_cast<std::size_t>(omp_get_max_threads()));
  const std::int64_t bytes = source.size();
  constexpr std::int64_t kQuick = std::int64_t{1} << 27;  // some seconds
  Progress progress("verify", bytes, "bytes", o.quiet || bytes < kQuick);

  // The first batch decides whether there are flags.
  std::size_t filled = source.read(layout, most, batches[0]) ? 1 : 0;
  if (filled == 0) throw Error(source.name() + ": expected records, found none");
  oracle::Compared compared = compared_by(o);
  compared.flags = source.has_flags(layout);
  compared.name = source.name();
  compared.place = source.place();
  Verified verified{oracle::Verifier(source.subject, compared), source.name(), nullptr};
  verified.place = source.place();
  while (filled != 0) {
    while (filled < batches.size() && source.read(layout, most, batches[filled])) ++filled;
    verified.complete = verified.verifier.check({batches.data(), filled});
    if (!verified.complete) break;
    progress.show(static_cast<double>(source.consumed()));
    filled = source.read(layout, most, batches[0]) ? 1 : 0;
  }
  return verified;
}

oracle::Compared compared_by(const VerifyOptions& o) {
  oracle::Compared compared;
  compared.tolerance.nan = o.nan == "canonical" ? oracle::NanMatch::canonical
                           : o.nan == "payload" ? oracle::NanMatch::payload
                                                : oracle::NanMatch::any;
  compared.tolerance.zero =
      o.zero_sign == "ignore" ? oracle::ZeroSign::ignore : oracle::ZeroSign::strict;
  compared.tolerance.ulps = static_cast<std::uint64_t>(o.ulp);
  compared.most_mismatches = o.max_errors;
  return compared;
}

}  // namespace numemu::cli
