// numemu verify: results made elsewhere, held against those that an operation or a unit must give.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "api/array_files.hpp"
#include "api/oracle.hpp"
#include "api/oracle/records.hpp"
#include "api/text/recorded_folder.hpp"
#include "api/text/verification.hpp"
#include "cli/command.hpp"
#include "cli/product.hpp"
#include "cli/progress.hpp"
#include "formats/error.hpp"
#include "formats/storage/atomic_file.hpp"
#include "formats/storage/output_files.hpp"

namespace numemu::cli {
namespace {

struct VerifyOptions {
  std::string folder, only, in, d, junit, b_layout = "kn", element_order;
  std::string nan = "any", zero_sign = "strict", invalid = "strict";
  api::RecordsTold told;
  api::ProductFiles arrays;
  api::EpilogueFiles epilogue;
  std::string format_d;
  bool dots = false, hashes = false, json = false, quiet = false;
  std::int64_t max_errors = 0, ulp = 0;
};

struct Given {
  const char* option;
  bool given;
};

/// Refuses options that would be ignored.
void refuse_with(const char* what, std::initializer_list<Given> options) {
  for (const Given& one : options) {
    if (one.given) throw usage_error(fmt::format("{}: not allowed with {}", one.option, what));
  }
}

/// Everything that can be refused before anything is read.
void check_options(const VerifyOptions& o) {
  const bool arrays = !o.arrays.a.empty() || !o.arrays.b.empty() || !o.d.empty();
  if (arrays == !o.in.empty())
    throw usage_error("--in: expected a file of records, or the arrays --a, --b and --d");
  if (arrays) {
    if (o.arrays.a.empty() || o.arrays.b.empty() || o.d.empty() || o.told.unit.empty())
      throw usage_error("--a, --b, --d: expected all three, and --unit");
    refuse_with("arrays", {{"--fields", !o.told.fields.empty()}, {"--k", o.told.k != 0}});
    if (o.dots) refuse_with("--dots", {{"--b-layout", o.b_layout != "kn"}});
    api::check_meta_layout(o.arrays);
    require_requantize(o.epilogue);
  } else {
    if (!o.told.fields.empty() && api::is_form_of_fields(o.in))
      throw usage_error(
          fmt::format("--fields: not allowed with {}, whose fields have names", o.in));
    refuse_with("--in", {{"--c", !o.arrays.c.empty()},
                         {"--scale-a", !o.arrays.scale_a.empty()},
                         {"--scale-b", !o.arrays.scale_b.empty()},
                         {"--meta", !o.arrays.meta.empty()},
                         {"--meta-layout", !o.arrays.meta_layout.empty()},
                         {"--b-layout", o.b_layout != "kn"},
                         {"--seed", o.arrays.seed != 0},
                         {"--dots", o.dots},
                         {"--bias", !o.epilogue.bias.empty()},
                         {"--factor", !o.epilogue.factor.empty()},
                         {"--multiplier", !o.epilogue.multiplier.empty()},
                         {"--shift", !o.epilogue.shift.empty()},
                         {"--zero-point", o.epilogue.zero_point.has_value()}});
    require_requantize(o.epilogue);
  }
  if (!o.format_d.empty() && o.epilogue.requantize.empty())
    throw usage_error("--format-d: expected --requantize, too");
  if (o.told.fields.empty() && !o.element_order.empty())
    throw usage_error("--element-order: expected together with --fields");
  if (!o.told.unit.empty()) {
    refuse_with("--unit", {{"--op", !o.told.op.empty()},
                           {"--from", !o.told.from.empty()},
                           {"--to", !o.told.to.empty()},
                           {"--rounding", !o.told.rounding.empty()},
                           {"--overflow", !o.told.overflow.empty()}});
  }
  if (!o.junit.empty()) {
    api::require_file("--junit", o.junit);
    require_replaceable(o.junit);
    require_distinct_paths({{"--junit", o.junit}}, {{"--in", o.in == "-" ? "" : o.in},
                                                    {"--a", o.arrays.a},
                                                    {"--b", o.arrays.b},
                                                    {"--c", o.arrays.c},
                                                    {"--d", o.d}});
  }
}

/// The large runs of a folder; a line for each as it ends, every few seconds.
int run_hashes(const VerifyOptions& o) {
  const auto all = api::verify_hashes(o.folder, o.only, [&](const oracle::HashReplay& v) {
    if (o.json) return;
    fmt::print("{}", api::hash_line(v));
    std::fflush(stdout);
  });
  if (!o.junit.empty()) write_atomically(o.junit, {api::hashes_junit(all, o.folder)});
  std::int64_t differ = 0;
  for (const oracle::HashReplay& v : all) differ += v.differ != 0;
  if (o.json) {
    fmt::print("{}\n", api::hashes_json(all).dump(2));
  } else {
    fmt::print("\n{} of {} large runs differ from their units\n", differ, all.size());
  }
  return differ == 0 ? kFine : kMismatch;
}

/// What a folder of records says itself needs no option.
int run_folder(const VerifyOptions& o) {
  refuse_with("a folder", {{"--in", !o.in.empty()},
                           {"--a", !o.arrays.a.empty()},
                           {"--b", !o.arrays.b.empty()},
                           {"--d", !o.d.empty()},
                           {"--op", !o.told.op.empty()},
                           {"--fields", !o.told.fields.empty()},
                           {"--requantize", !o.epilogue.requantize.empty()},
                           {"--k", o.told.k != 0},
                           {"--ulp", o.ulp != 0},
                           {"--max-errors", o.max_errors != 0}});
  if (o.hashes) refuse_with("--hashes", {{"--unit", !o.told.unit.empty()}});
  if (!o.junit.empty()) {
    api::require_file("--junit", o.junit);
    require_replaceable(o.junit);
  }
  if (o.hashes) return run_hashes(o);
  const auto verified = api::verify_folder(o.folder, o.only, o.told.unit);
  if (!o.junit.empty()) write_atomically(o.junit, {api::folder_junit(*verified, o.folder)});
  fmt::print("{}",
             o.json ? api::folder_json(*verified).dump(2) + "\n" : api::folder_text(*verified));
  return verified->holds() ? kFine : kMismatch;
}

api::Equality equality_of(const VerifyOptions& o) {
  api::Equality equality;
  equality.tolerance.nan = o.nan == "canonical" ? oracle::NanMatch::canonical
                           : o.nan == "payload" ? oracle::NanMatch::payload
                                                : oracle::NanMatch::any;
  equality.tolerance.zero =
      o.zero_sign == "ignore" ? oracle::ZeroSign::ignore : oracle::ZeroSign::strict;
  equality.tolerance.any_invalid_integer = o.invalid == "any";
  equality.tolerance.ulps = static_cast<std::uint64_t>(o.ulp);
  equality.most_mismatches = o.max_errors;
  return equality;
}

api::Verified verify_arrays(const VerifyOptions& o) {
  api::ProductFiles files = o.arrays;
  files.format_a = o.told.format_a;
  files.format_b = o.told.format_b;
  files.shape = o.dots ? api::ProductShape::dots : api::ProductShape::batches;
  files.b_by_columns = o.b_layout == "nk";
  api::EpilogueFiles epilogue = o.epilogue;
  if (!o.format_d.empty()) epilogue.format = find_format(o.format_d).name;
  return api::verify_product(o.told.unit, files, o.d, equality_of(o), epilogue);
}

api::Verified verify_file(const VerifyOptions& o) {
  api::RecordsTold told = o.told;
  if (o.element_order == "msb") told.order = oracle::ElementOrder::msb;
  told.requantize = o.epilogue.requantize;
  told.format_d = o.format_d;
  told.low = o.epilogue.low;
  told.high = o.epilogue.high;
  return api::verify_records(o.in, told, equality_of(o), progress_of("verify", o.quiet));
}

int run_verify(const VerifyOptions& o) {
  if (!o.folder.empty()) return run_folder(o);
  refuse_with("records of a file", {{"--only", !o.only.empty()}, {"--hashes", o.hashes}});
  check_options(o);
  const api::Verified verified = o.in.empty() ? verify_arrays(o) : verify_file(o);
  if (!o.junit.empty()) write_atomically(o.junit, {api::verify_junit(verified)});
  fmt::print("{}", o.json ? api::verify_json(verified).dump(2) + "\n" : api::verify_text(verified));
  return verified.holds() ? kFine : kMismatch;
}

}  // namespace

void add_verify(Program& program) {
  auto [command, o] = program.command<VerifyOptions>("verify", run_verify);
  command.option("folder FOLDER", o.folder,
                 "Answers of a GPU as tests/oracle/cuda/run records them, or published ones");
  command.option(
      "--in FILE|-", o.in,
      "Records: text, csv or JSON lines, gzip or not; FILE.npz; PREFIX of $readmemh files; - is "
      "standard input");
  command.option("--unit U", o.told.unit, "A unit's name (numemu units) or a file unit.json");
  command.option("--op OP", o.told.op, oracle::joined_operation_names());
  command.option("--from F", o.told.from, "Format of the operands of --op");
  command.option("--to F", o.told.to, "Format of its results (default: --from)");
  command.option("--rounding R", o.told.rounding, "Rounding of --op (default: the file's, or rne)");
  command.option("--overflow O", o.told.overflow, "Overflow of --op (default: the file's)");
  command.option("--k K", o.told.k, "Products of a record, where the file has no first line")
      .whole(1, 65536);
  command.option("--fields LIST", o.told.fields,
                 "Fields of foreign lines: a:32xe4m3fn,b:32xe4m3fn,c:f32,d:f32");
  command
      .option("--element-order ORDER", o.element_order,
              "With --fields: which end of a word has element 0, lsb (default) or msb")
      .one_of({"lsb", "msb"});
  command.option("--a A.npy", o.arrays.a, "Codes of A of a kernel, [batch x] M x K");
  command.option("--b B.npy", o.arrays.b, "Codes of B, [batch x] K x N");
  command.option("--b-layout LAYOUT", o.b_layout, "kn, or nk where B is [batch x] N x K")
      .one_of({"kn", "nk"});
  command.flag("--dots", o.dots, "A and B are N x K, C and D have N elements, as in numemu dot");
  command.option("--c C.npy", o.arrays.c, "C, [batch x] M x N (default: +0)");
  command.option("--d D.npy", o.d, "The kernel's D, [batch x] M x N");
  command.option("--format-a F", o.told.format_a, "Format of A if the unit takes any format");
  command.option("--format-b F", o.told.format_b, "Format of B if the unit takes any format");
  add_epilogue(command, o.epilogue);
  command.option("--bias BIAS.npy", o.epilogue.bias, "int32 [N], with --requantize and arrays");
  command.option("--format-d F", o.format_d, "Format of the codes of --requantize (default: int8)");
  command.option("--scale-a SA.npy", o.arrays.scale_a, "Block scales of A, [batch x] M x blocks");
  command.option("--scale-b SB.npy", o.arrays.scale_b, "Block scales of B, [batch x] blocks x N");
  command.option("--meta E.npy", o.arrays.meta, "Metadata of a sparse A");
  command.option("--meta-layout LAYOUT", o.arrays.meta_layout, "Of --meta: index (default) or ptx");
  command.option("--seed S", o.arrays.seed, "Seed of a kernel's stochastic registers (default: 0)");
  command.option("--nan RULE", o.nan, "any, canonical or payload: which NaN results are equal")
      .one_of({"any", "canonical", "payload"});
  command.option("--zero-sign RULE", o.zero_sign, "strict or ignore: whether +0 equals -0")
      .one_of({"strict", "ignore"});
  command
      .option("--invalid RULE", o.invalid,
              "strict or any: whether all integers of conversions that raise NV are equal")
      .one_of({"strict", "any"});
  command.option("--ulp N", o.ulp, "Finite results within N ulps are equal (default: 0)")
      .whole(0, std::int64_t{1} << 62);
  command.option("--max-errors N", o.max_errors, "Stop after N mismatches (default: never)")
      .whole(0, std::int64_t{1} << 62);
  command.option("--only TEXT", o.only,
                 "Of a folder: files whose kind, instruction or name has it");
  command.flag("--hashes", o.hashes, "Of a folder: compute every dot of the large runs again");
  command.option("--junit FILE", o.junit, "Write a JUnit report, too");
  command.flag("--json", o.json, "Print JSON");
  command.flag("--quiet", o.quiet, "No progress");
  add_threads(command);
}

}  // namespace numemu::cli
