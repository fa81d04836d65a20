// numemu eval: the accuracy of a trained network under a recipe, predicted noise beside measured.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/report_files.hpp"
#include "cli/table.hpp"
#include "experiments/engine/run_point.hpp"
#include "policies/recipe/json_reader.hpp"

namespace numemu::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string net, data, recipe;
  std::int64_t images = 0;
  bool json = false;
};

std::string decibels(const Json& value) {
  return value.is_number() ? fmt::format("{:.2f}", value.get<double>()) : "-";
}

void print_row(const Json& row) {
  fmt::print("{}\n", summary_table({row}));
  const Json& metrics = row["metrics"];
  fmt::print(
      "float32 {:.2f} %, difference {:+.2f} points, 95 % interval [{:+.2f}, {:+.2f}] paired by "
      "image, loss {:.4f}\n\n",
      100 * metrics["baseline_top1"].get<double>(), 100 * metrics["difference"].get<double>(),
      100 * metrics["difference_ci95"][0].get<double>(),
      100 * metrics["difference_ci95"][1].get<double>(), metrics["loss"].get<double>());
  std::vector<std::vector<std::string>> layers;
  for (const Json& layer : row["layers"]) {
    layers.push_back({layer["name"], layer["unit"], decibels(layer["sqnr_db"]),
                      decibels(layer["predicted_db"]), layer["verdict"],
                      fmt::format("{:.2e}", layer["overflow"].get<double>()),
                      fmt::format("{:.2e}", layer["underflow"].get<double>())});
  }
  fmt::print("{}\n", text_table({"layer", "unit", "SQNR dB", "predicted", "verdict", "overflow",
                                 "underflow"},
                                layers));
  std::vector<std::vector<std::string>> tensors;
  for (const Json& tensor : row["predicted"]["tensors"]) {
    const Json& fitted = tensor["fitted"];
    tensors.push_back({tensor["layer"], tensor["role"], tensor["format"],
                       decibels(tensor["measured_db"]), decibels(tensor["empirical_db"]),
                       tensor["verdict"], fitted.is_null() ? "-" : fitted["family"],
                       fitted.is_null() ? "-" : fmt::format("{:.3f}", fitted["ks"].get<double>()),
                       fitted.is_null() ? "-" : decibels(fitted["db"]),
                       fitted.is_null() ? "-" : fitted["verdict"]});
  }
  if (!tensors.empty()) {
    fmt::print("{}", text_table({"layer", "tensor", "format", "SQNR dB", "empirical", "verdict",
                                 "fit", "KS", "fitted", "verdict"},
                                tensors));
  }
}

int run(const Options& options) {
  const Json recipe =
      options.recipe.empty()
          ? Json{{"numemu_recipe", 1}}
          : policies::parse_json(policies::read_text(options.recipe), options.recipe);
  experiments::Point point;
  point.recipe =
      policies::Recipe::parse(recipe, options.recipe.empty() ? "recipe" : options.recipe);
  point.net = options.net;
  point.data = options.data;
  point.where = options.recipe;
  experiments::Workbench bench(options.net, options.data,
                               options.images == 0 ? INT64_MAX : options.images,
                               {data_folder(), cache_folder()});
  point.json = {{"net", point.net},
                {"data", point.data},
                {"eval_images", bench.eval_images},
                {"recipe", point.recipe.json()}};
  const Json row = experiments::run_point(point, bench);
  if (options.json) {
    fmt::print("{}\n", row.dump(2));
  } else {
    print_row(row);
  }
  return kFine;
}

}  // namespace

void add_eval(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("eval", "Accuracy of a trained network under a recipe");
  auto options = std::make_shared<Options>();
  command
      ->add_option("--net", options->net,
                   "A reference network with a shipped checkpoint, or a .safetensors file")
      ->required()
      ->type_name("NAME|FILE");
  command->add_option("--data", options->data, "glyphs, mnist:DIR or cifar10:DIR")
      ->required()
      ->type_name("SET");
  command->add_option("--recipe", options->recipe, "The numerics (default: float32)")
      ->type_name("R.json");
  command->add_option("--images", options->images, "Use only the first test images")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
  command->add_flag("--json", options->json, "Print the row");
  add_threads(*command);
  command->callback([&action, options] { action = [options] { return run(*options); }; });
}

}  // namespace numemu::cli
