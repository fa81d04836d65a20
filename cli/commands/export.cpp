// numemu export: a trained network under a recipe as ONNX with QuantizeLinear and DequantizeLinear,
// or as codes and scales in a safetensors file.
#include <fmt/format.h>

#include "api/networks.hpp"
#include "cli/command.hpp"
#include "cli/format_names.hpp"
#include "cli/network_options.hpp"
#include "cli/talk.hpp"
#include "formats/joined.hpp"

namespace numemu::cli {
namespace {

struct ExportOptions {
  api::OpenRequest names;
  api::ExportRequest asked;
  bool json = false, quiet = false;
};

int run_export(const ExportOptions& options) {
  api::Context context = program_context(options.quiet);
  context.on_checked = [&] {
    if (!options.quiet && !options.names.recipe.empty()) note_short_names_in(options.names.recipe);
  };
  const api::Agreement a = api::export_network(options.names, options.asked, context);
  if (options.json) {
    fmt::print("{}\n", Json{{"file", options.asked.out},
                            {"samples", a.samples},
                            {"compared", a.names},
                            {"outputs", a.outputs},
                            {"same_bits", a.same_bits},
                            {"same_class", a.same_class},
                            {"largest_difference", a.difference},
                            {"largest_output", a.largest},
                            {"notes", a.notes}}
                           .dump(2));
    return kFine;
  }
  if (!options.quiet) {
    for (const std::string& note : a.notes) say("numemu: note: {}", note);
    const bool several = a.names.size() > 1;
    fmt::print(
        "read back{}: {} of {} outputs have the same bits, {} of {} samples the same class{}; "
        "largest difference {:.3g} of outputs up to {:.3g}\n",
        several ? harmless(", " + joined(a.names, " and ")) : "", a.same_bits, a.outputs,
        a.same_class, a.samples, several ? harmless(" in " + a.names[0]) : "", a.difference,
        a.largest);
  }
  fmt::print("{}\n", harmless(options.asked.out));
  return kFine;
}

}  // namespace

void add_export(Program& program) {
  auto [command, options] = program.command<ExportOptions>("export", run_export);
  const std::vector<api::Option> names = api::options_of(options.names);
  add_options(command, names, {"net"});
  command.option("--data SET", options.names.data,
                 "The data set whose samples calibrate activation scales: docs/data.md");
  command.option("--in [NAME=]X.npy", options.asked.in,
                 "Arrays of an ONNX file's inputs (repeatable) that calibrate in place of --data");
  add_options(command, names, {"recipe"});
  command
      .option("--out FILE", options.asked.out,
              "FILE.onnx with QuantizeLinear and DequantizeLinear, or FILE.safetensors with codes "
              "and scales")
      .required();
  command
      .option("--samples N", options.asked.samples,
              "Calibration samples on which the file is compared with the recipe")
      .show_default()
      .whole(1, 1000000);
  add_options(command, names, {"fold_batch_norm"});
  command.flag("--json", options.json, "Print the comparison as JSON");
  command.flag("--quiet", options.quiet, "Print only the path of the file");
  add_threads(command);
  add_memory(command);
}

}  // namespace numemu::cli
