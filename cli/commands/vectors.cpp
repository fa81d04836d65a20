// numemu vectors: records of inputs and expected results, for testbenches and kernels.
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

#include "api/oracle.hpp"
#include "cli/command.hpp"
#include "cli/product.hpp"
#include "cli/progress.hpp"
#include "cli/subject_options.hpp"
#include "formats/error.hpp"
#include "formats/storage/atomic_file.hpp"
#include "formats/storage/output_files.hpp"

namespace numemu::cli {
namespace {

using oracle::FileForm;

struct VectorsOptions {
  api::VectorOptions made;
  std::string out, form = "text", format_d;
  bool quiet = false;
};

void to_standard_output(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size())
    throw std::system_error(errno, std::generic_category());
}

int run_vectors(VectorsOptions o) {
  require_requantize(o.made.epilogue);
  if (!o.format_d.empty()) {
    if (o.made.epilogue.requantize.empty())
      throw usage_error("--format-d: expected --requantize, too");
    o.made.epilogue.format = o.format_d;
  }
  const FileForm form = oracle::parse_file_form(o.form);
  const bool in_ports = form == FileForm::readmemh || form == FileForm::sv;
  const bool to_stdout = o.out.empty() || o.out == "-";
  if ((form == FileForm::npz || in_ports) && to_stdout)
    throw usage_error(fmt::format("--out: expected a {} with --file-format {}",
                                  form == FileForm::npz ? "file" : "prefix of files", o.form));
  const api::Vectors vectors(o.made);
  if (!to_stdout && !in_ports) {
    require_replaceable(o.out);
    require_distinct_paths({{"--out", o.out, false}},
                           {{"--unit", api::is_unit_file(o.made.unit) ? o.made.unit : "", false}});
  }
  if (to_stdout) {
    vectors.write(form, to_standard_output, progress_of("vectors", o.quiet));
  } else {
    vectors.write_file(form, o.out, progress_of("vectors", o.quiet));
  }
  if (!o.quiet) note_subject_names(o.made);
  return kFine;
}

}  // namespace

void add_vectors(Program& program) {
  auto [command, options] = program.command<VectorsOptions>("vectors", run_vectors);
  add_subject(command, options.made);
  add_epilogue(command, options.made.epilogue);
  command.option("--format-d F", options.format_d,
                 "Format of the codes of --requantize, whose other numbers are those of every "
                 "record, or drawn (default: int8)");
  command
      .option("--style S", options.made.style,
              "mixed, random, edges, exhaustive, cancel, subnormal, overflow, ties, alignment, "
              "near_ties or carry")
      .show_default();
  command.option("--level L", options.made.level, "1, or 2: more edges, a million records")
      .show_default()
      .whole(1, 2);
  command.option("--n N", options.made.n, "Records (default: 10000 at level 1, 1000000 at level 2)")
      .whole(1, std::int64_t{1} << 40);
  command.option("--seed S", options.made.seed, "Seed of the inputs").show_default();
  command
      .option("--file-format FORM", options.form,
              "text, csv, jsonl, npz, readmemh (a file per port) or sv (the same with a package)")
      .show_default();
  command.option("--out FILE", options.out,
                 "Where to (default: standard output); with readmemh and sv: FILE.a.hex, "
                 "FILE.b.hex, ..., FILE_pkg.sv");
  command.flag("--quiet", options.quiet, "Print no progress");
  add_threads(command);
}

}  // namespace numemu::cli
