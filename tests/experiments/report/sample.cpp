// Rows, experiments and histograms from formulas.
#include "tests/experiments/report/sample.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace numemu::experiments::sample {

double wobble(std::size_t i, double salt) {
  return std::sin(static_cast<double>(i) * 12.9898 + salt * 78.233);
}

Json role(const Swept& f, const char* granularity) {
  return {{"format", f.name},  {"rounding", "rne"},          {"overflow", "saturate"},
          {"scale", "absmax"}, {"granularity", granularity}, {"axis", "channel"},
          {"mask", nullptr}};
}

Json point(const Swept* w, const Swept* a, const std::string& unit) {
  Json roles = {{"weight", w ? role(*w, "channel") : Json()},
                {"activation", a ? role(*a, "tensor") : Json()}};
  for (const char* name : {"gradient", "vector", "output", "saved", "state", "exchange"}) {
    roles[name] = nullptr;
  }
  const Json gemm = {{"unit", unit}};
  return {{"net", "lenet"},
          {"data", "glyphs"},
          {"eval_images", 10000},
          {"seed", 0},
          {"recipe",
           {{"numemu_recipe", 1},
            {"seed", 0},
            {"roles", roles},
            {"gemms", {{"fprop", gemm}, {"dgrad", gemm}, {"wgrad", gemm}}},
            {"update", {{"optimizer", "sgd"}}},
            {"calibrate", {{"rule", "absmax"}, {"samples", 512}}},
            {"layers", Json::array()}}}};
}

Json tensor(const Layer& layer, std::size_t at, const char* name, const Swept& f) {
  const bool weight = name[0] == 'w';
  const double db = f.sqnr + 1.5 * wobble(at, f.sqnr) - (weight ? 0 : 2.0);
  const double mse = std::pow(10, -db / 10) * 0.01;
  const double ks = weight ? 0.02 + 0.05 * std::abs(wobble(at, 3)) : 0.2 + 0.05 * wobble(at, 4);
  const double n = weight ? layer.parameters : 401408;
  const double threshold = 0.03 + 1.36 / std::sqrt(n);
  const bool accepted = ks <= threshold;
  return {{"layer", layer.name},
          {"role", name},
          {"format", f.name},
          {"n", n},
          {"measured_mse", mse},
          {"measured_db", db},
          {"empirical_mse", mse * (1 + 1e-12 * wobble(at, 5))},
          {"empirical_db", db},
          {"fitted",
           {{"family", weight ? "normal" : "laplace"},
            {"ks", ks},
            {"threshold", threshold},
            {"accepted", accepted},
            {"db", db + 0.4 * wobble(at + 7, f.sqnr)}}}};
}

Json row(std::size_t at, const Swept* w, const Swept* a, const std::string& unit) {
  const double base = 0.9795;
  const double noise =
      (w ? std::pow(10, -w->sqnr / 10) : 0) + (a ? std::pow(10, -a->sqnr / 10) : 0);
  const bool exact = noise == 0;
  const double sqnr = exact ? 0 : -10 * std::log10(noise) - 4;
  const double lost = exact ? 0 : 0.88 * (1 - std::exp(-std::pow(noise * 6.5, 1.6)));
  const double top1 = std::round((base - lost + (exact ? 0 : 0.0004 * wobble(at, 1))) * 1e4) / 1e4;
  const double half = 1.96 * std::sqrt(top1 * (1 - top1) / 10000);
  const double paired = exact ? 0 : 0.0006 + 0.3 * half * std::min(1.0, lost * 20);
  Json layers = Json::array(), tensors = Json::array();
  for (std::size_t i = 0; i < kLayers.size(); ++i) {
    const double db = sqnr + 5 - static_cast<double>(i) + wobble(i, 2);
    layers.push_back({{"name", kLayers[i].name},
                      {"gemm", "fprop"},
                      {"unit", unit},
                      {"sqnr_db", exact ? Json() : Json(db)},
                      {"predicted_db", exact ? Json() : Json(db + 0.5 * wobble(i + at, 6))},
                      {"overflow", 0},
                      {"underflow", exact ? 0.0 : 0.01 * std::abs(wobble(i, 8))}});
    if (w) tensors.push_back(tensor(kLayers[i], i, "weight", *w));
    if (a) tensors.push_back(tensor(kLayers[i], i + 10, "activation", *a));
  }
  char key[65];
  for (int i = 0; i < 64; ++i) {
    key[i] = "0123456789abcdef"[(at * 2654435761u + static_cast<unsigned>(i) * 40503u) >> 7 & 15];
  }
  key[64] = 0;
  return {
      {"key", key},
      {"point", point(w, a, unit)},
      {"bits", {{"weight", w ? w->bits + 0.09 : 32.0}, {"activation", a ? a->bits + 0.01 : 32.0}}},
      {"metrics",
       {{"top1", top1},
        {"n", 10000},
        {"ci95", {top1 - half, top1 + half}},
        {"loss", 0.07 + lost * 3},
        {"sqnr_db", exact ? Json() : Json(sqnr)},
        {"baseline_top1", base},
        {"difference", top1 - base},
        {"difference_ci95", {top1 - base - paired, top1 - base + paired}}}},
      {"predicted",
       {{"sqnr_db", exact ? Json() : Json(sqnr + 0.6 * wobble(at, 9))}, {"tensors", tensors}}},
      {"layers", layers},
      {"version", "1"}};
}

std::vector<Json> rows() {
  const std::string sequential = "neutral.f32.sequential";
  std::vector<Json> out = {row(0, nullptr, nullptr, sequential)};
  for (const std::string& unit : {sequential, std::string("neutral.exact")}) {
    for (const Swept& f : kFormats) out.push_back(row(out.size(), &f, &f, unit));
    const std::vector<std::pair<std::size_t, std::size_t>> mixes = {
        {10, 14}, {14, 10}, {0, 4}, {4, 0}, {10, 4}, {8, 14}, {9, 14}, {0, 14}};
    for (const auto& [w, a] : mixes) {
      out.push_back(row(out.size(), &kFormats[w], &kFormats[a], unit));
    }
  }
  return out;
}

Json not_finite_row() {
  Json out = row(47, &kFormats[10], &kFormats[10], "neutral.mac.float16.rne");
  Json& metrics = out["metrics"];
  metrics["loss"] = metrics["sqnr_db"] = nullptr;
  metrics["top1"] = 0.03;
  metrics["difference"] = -0.9495;
  metrics["difference_ci95"] = {-0.96, -0.93};
  out["predicted"]["verdict"] = "fails";
  for (std::size_t i = 1; i < kLayers.size(); ++i) {
    out["layers"][i]["sqnr_db"] = nullptr;
    out["layers"][i]["verdict"] = "fails";
  }
  const auto counts = [](const char* name, int nan, int infinite, int inherited,
                         const char* cause) {
    return Json{{"name", name},
                {"of", 40000},
                {"nan", nan},
                {"infinite", infinite},
                {"inherited", inherited},
                {"causes", Json::array({cause})}};
  };
  out["not_finite"]["test"] = {
      {"samples", 10000},
      {"outputs", {{"of", 100000}, {"nan", 97000}, {"infinite", 1000}}},
      {"layers",
       {counts("conv2", 0, 1200, 0, "accumulator overflow (float16, at most 6.55e+04)"),
        counts("fc1", 300, 20, 320, "operands that were not finite before")}}};
  return out;
}

std::vector<Json> block_rows() {
  std::vector<Json> out = {row(0, nullptr, nullptr, "u")};
  for (const Swept& f : kBlocks) {
    out.push_back(row(out.size(), &f, &f, "u"));
    Json& recipe = out.back()["point"]["recipe"];
    for (const char* name : {"weight", "activation"}) {
      recipe["roles"][name]["granularity"] = "block";
      recipe["roles"][name]["scale"] = "floor";
    }
    recipe["gemms"]["fprop"]["unit"] = {{"numemu_unit", 1}, {"name", "my.mac"}, {"core", "chain"}};
    out.back()["metrics"]["sqnr_error_db"] = 0.25;
  }
  return out;
}

std::vector<Json> text_rows() {
  std::vector<Json> out = block_rows();
  for (Json& row : out) {
    Json& metrics = row["metrics"];
    const double rise = -metrics["difference"].get<double>();
    metrics["bits_per_character"] = 2.1 + rise;
    metrics["baseline_bits_per_character"] = 2.1;
    metrics["perplexity"] = std::exp2(2.1 + rise);
    row["point"]["net"] = "char-transformer";
    row["point"]["data"] = "text";
  }
  return out;
}

std::vector<Json> sensitivity_rows() {
  std::vector<Json> out;
  for (const Swept& f : kBlocks) {
    for (std::size_t i = 0; i <= kLayers.size(); ++i) {
      const bool all = i == kLayers.size();
      out.push_back(row(out.size(), &f, &f, "neutral.f32.sequential"));
      Json& recipe = out.back()["point"]["recipe"];
      const Json patch = {{"format", f.name}};
      recipe["roles"]["weight"] = recipe["roles"]["activation"] = nullptr;
      recipe["layers"] = Json::array({{{"match", all ? "*" : kLayers[i].name},
                                       {"roles", {{"weight", patch}, {"activation", patch}}}}});
      Json& metrics = out.back()["metrics"];
      metrics["sqnr_db"] = metrics["sqnr_db"].get<double>() + (all ? 0 : 4 + 3 * wobble(i, 4));
    }
  }
  return out;
}

Json chart_point(double x, const char* name, double y, double half) {
  Json point = {{"x", x}, {"y", y}};
  if (*name != 0) point["name"] = name;
  if (half > 0) point["ci95"] = {y - half, y + half};
  return point;
}

Json chart(const char* kind, const char* title, bool log, const Json& series) {
  return {{"kind", kind},      {"title", title},         {"caption", "Made up for tests."},
          {"x", "share kept"}, {"y", "noise to signal"}, {"log_x", log},
          {"log_y", log},      {"series", series}};
}

Json series(const char* name, bool predicted, const Json& points) {
  return {{"name", name}, {"predicted", predicted}, {"points", points}};
}

Json charts() {
  Json line = Json::array(), dense = Json::array(), law = Json::array(), cloud = Json::array(),
       mean = Json::array(), law_mean = Json::array();
  for (int i = 0; i < 40; ++i) {
    const double x = 0.02 * (i + 1), y = 1 / (1 + 30 * x);
    dense.push_back(chart_point(x, "", y * (1 + 0.04 * wobble(i, 1)), 0.06 * y));
    law.push_back(chart_point(x, "", y, 0));
  }
  for (int i = 0; i < 6; ++i)
    line.push_back(chart_point(0.1 + 0.12 * i, "", 0.2 + 0.05 * wobble(i, 2), 0.03));
  const char* const patterns[] = {"1:2", "2:4", "4:8", "8:16", "2:4-T", "4:8-T", "free"};
  for (int i = 0; i < 7; ++i) {
    cloud.push_back(chart_point(3.0 + 1.7 * i, patterns[i], 91 + 0.8 * i + wobble(i, 3), 0.5));
    mean.push_back(chart_point(0, patterns[i], 0.5 / (i + 1), 0.08 / (i + 1)));
    law_mean.push_back(chart_point(0, patterns[i], 0.47 / (i + 1), 0));
  }
  Json laws = Json::array();  // as many bars as an experiment draws at most
  for (const char* name : {"normal", "laplace", "lognormal:0.5", "lognormal:1", "lognormal:2"}) {
    laws.push_back(series((name + std::string(" measured")).c_str(), false, mean));
    laws.push_back(series((name + std::string(" predicted")).c_str(), true, law_mean));
  }
  const Json pair = {series("measured", false, dense), series("predicted", true, law)};
  return {chart("line", "A dense line and its law", false,
                {pair[0], pair[1], series("other", false, line)}),
          chart("line", "The same on logarithmic axes", true, pair),
          chart("points", "Named points", false, Json::array({series("patterns", false, cloud)})),
          chart("bars", "Means by pattern", false,
                {series("measured", false, mean), series("predicted", true, law_mean)}),
          chart("bars", "Means on a logarithmic axis", true, laws)};
}

Json experiment() {
  return {
      {"numemu_experiment", 1},
      {"name", "sensitivity"},
      {"question", "which layer breaks first"},
      {"source", "Noises add up, it is claimed."},
      {"version", "1"},
      {"seed", 0u},
      {"settings", {{"net", "lenet"}}},
      {"claims",
       {{{"key", "noise"},
         {"claim", "The output's SQNR is within 1 dB."},
         {"holds", 1},
         {"undecided", 0},
         {"fails", 1},
         {"verdict", "fails"},
         {"worst",
          {{"what", "output SQNR in dB with mxfp4 in fc1"},
           {"predicted", 19.4},
           {"measured", 15.9},
           {"ci95", {15.5, 16.3}},
           {"verdict", "fails"}}}},
        {{"key", "gains"},
         {"claim", "Gains are linear."},
         {"holds", 0},
         {"undecided", 0},
         {"fails", 0},
         {"verdict", nullptr},
         {"worst", nullptr}}}},
      {"sentences",
       {"mxfp4: conv2 is the most sensitive layer.", "int4: fc1 is.",
        "The recipe is "
        "out/a-folder-whose-name-is-longer-than-the-narrowest-of-all-screens-is-wide/"
        "recipe.json."}},
      {"tables",
       {{{"title", "mxfp4, the most sensitive layer first"},
         {"header", {"layer", "output SQNR dB"}},
         {"rows", Json::array({Json::array({"conv2", "14.1"}), Json::array({"fc1", "15.9"})})}}}},
      {"findings",
       {{{"what", "output SQNR in dB with mxfp4 in conv2"},
         {"predicted", 14.4},
         {"measured", 14.1},
         {"ci95", {14.0, 14.2}},
         {"verdict", "holds"}},
        {{"what", "output SQNR in dB with mxfp4 in fc1"},
         {"predicted", 19.4},
         {"measured", 15.9},
         {"ci95", {15.5, 16.3}},
         {"verdict", "fails"}},
        {{"what", "noise of nothing"},
         {"predicted", 0},
         {"measured", 0},
         {"ci95", {0, 0}},
         {"verdict", "holds"},
         {"self_check", true}}}},
      {"charts", charts()}};
}

Json tensors() {
  Json list = Json::array();
  for (std::size_t i = 0; i < kLayers.size(); ++i) {
    for (const char* name : {"weight", "activation"}) {
      const bool weight = name[0] == 'w';
      const double n = weight ? kLayers[i].parameters : 401408;
      const double low = weight ? -0.6 : -0.42, high = weight ? 0.6 : 4.2;
      Json counts = Json::array();
      for (int bin = 0; bin < 128; ++bin) {
        const double x = low + (high - low) * (bin + 0.5) / 128;
        const double density = weight ? std::exp(-x * x / 0.045) * 2.66 *
                                            (1 + 0.2 * wobble(static_cast<std::size_t>(bin), 11))
                                      : (x < 0 ? 0.05 : std::exp(-x / 0.6) * 1.6);
        counts.push_back(std::floor(n * density * (high - low) / 128));
      }
      list.push_back({{"layer", kLayers[i].name},
                      {"role", name},
                      {"n", n},
                      {"min", low},
                      {"max", high * 0.97},
                      {"low", low},
                      {"high", high},
                      {"counts", counts},
                      {"absmax", high * 0.97}});
    }
  }
  return {{"tensors", list}};
}

Json sweep() {
  Json formats = Json::array();
  for (const Swept& f : kFormats) formats.push_back(f.name);
  return {{"numemu_sweep", 1},
          {"net", "lenet"},
          {"data", "glyphs"},
          {"eval_images", 10000},
          {"seeds", {0}},
          {"grid", {{"roles.weight.format", formats}}},
          {"tie", {{"roles.weight.format", "roles.activation.format"}}}};
}

Json poisoned(const Json& value, const std::string& key) {
  if (value.is_string()) {
    const bool is_free = key == "net" || key == "data" || key == "unit" || key == "name" ||
                         key == "layer" || key == "version" || key == "family" || key == "mask" ||
                         key == "rounding" || key == "key" || key == "match" || key == "what" ||
                         key == "verdict" || key == "title" || key == "header" || key == "rows" ||
                         key == "sentences" || key == "caption" || key == "x" || key == "y";
    return is_free ? Json(value.get<std::string>() + kPoison) : value;
  }
  Json out = value;
  if (value.is_array()) {
    for (Json& element : out) element = poisoned(element, key);
  } else if (value.is_object()) {
    for (Json::Member& member : out.items()) member.json = poisoned(member.json, member.name);
  }
  return out;
}

}  // namespace numemu::experiments::sample
