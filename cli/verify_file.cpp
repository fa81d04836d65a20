// Reads a file of records in batches, which are checked over threads.
#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "cli/product.hpp"
#include "cli/progress.hpp"
#include "cli/verify_input.hpp"
#include "emu/oracle/foreign.hpp"
#include "emu/oracle/text_form.hpp"
#include "emu/oracle/text_reader.hpp"
#include "formats/error.hpp"
#include "formats/storage/byte_stream.hpp"

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
Subject subject_of(const VerifyOptions& o, const std::string& name, const std::string& header) {
  if (header.empty()) return told_subject(o, o.k);
  Subject s;
  try {
    s = oracle::parse_header(header, o.unit.empty() ? nullptr : &unit_named(o.unit));
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

/// Reads records of either kind of file.
struct Source {
  std::unique_ptr<oracle::TextReader> text;
  std::unique_ptr<oracle::ForeignReader> foreign;
  Subject subject;

  bool read(const oracle::Layout& layout, std::int64_t most, Records& records) const {
    return foreign ? foreign->read(most, records) : text->read(layout, most, records);
  }
  bool has_flags(const oracle::Layout& layout) const {
    if (oracle::find_field(layout, "flags") < 0) return false;
    return foreign ? foreign->has("flags") : text->has_optional();
  }
};

Source open_source(const VerifyOptions& o, const std::string& name, oracle::ByteReader bytes) {
  Source source;
  if (o.fields.empty()) {
    source.text =
        std::make_unique<oracle::TextReader>(name, oracle::as_text(name, std::move(bytes)));
    source.subject = subject_of(o, name, source.text->header());
    return source;
  }
  oracle::Layout fields = oracle::parse_fields(o.fields);
  const int b = oracle::find_field(fields, "b");
  source.subject = told_subject(o, b < 0 ? 1 : fields[static_cast<std::size_t>(b)].count);
  const auto order =
      o.element_order == "msb" ? oracle::ElementOrder::msb : oracle::ElementOrder::lsb;
  source.foreign = std::make_unique<oracle::ForeignReader>(std::move(fields), order, source.subject,
                                                           name, std::move(bytes));
  return source;
}

}  // namespace

Verified verify_file(const VerifyOptions& o) {
  ByteStream stream(o.in);
  Source source = open_source(o, stream.name(),
                              [&](char* to, std::size_t most) { return stream.read(to, most); });
  const oracle::Layout layout = oracle::layout_of(source.subject);
  std::int64_t codes = 0;
  for (const oracle::Field& field : layout) codes += field.count;
  const std::int64_t most = std::clamp<std::int64_t>(kBatchCodes / codes, 1, kBatchRecords);
  std::vector<Records> batches(static_cast<std::size_t>(omp_get_max_threads()));
  const std::int64_t bytes = stream.size();
  constexpr std::int64_t kQuick = std::int64_t{1} << 27;  // some seconds
  Progress progress("verify", bytes, "bytes", o.quiet || bytes < kQuick);

  // The first batch decides whether there are flags.
  std::size_t filled = source.read(layout, most, batches[0]) ? 1 : 0;
  if (filled == 0) throw Error(stream.name() + ": expected records, found none");
  oracle::Compared compared = compared_by(o);
  compared.flags = source.has_flags(layout);
  Verified verified{oracle::Verifier(source.subject, compared), stream.name(), nullptr};
  while (filled != 0) {
    while (filled < batches.size() && source.read(layout, most, batches[filled])) ++filled;
    verified.complete = verified.verifier.check({batches.data(), filled});
    if (!verified.complete) break;
    progress.show(static_cast<double>(stream.consumed()));
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
