// The rows in sentences: what a reader should know before looking at any chart.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "experiments/engine/judge.hpp"
#include "experiments/predict/layer_noise.hpp"
#include "experiments/report/findings.hpp"

namespace numemu::experiments {
namespace {

std::string percent(double fraction) { return fmt::format("{:.2f} %", 100 * fraction); }

std::string describe(const Record& r) {
  if (!r.only_in.empty() || !r.overrides.empty()) return r.label;
  std::string formats =
      r.weight.format == r.activation.format
          ? r.weight.format
          : r.weight.format + " weights and " + r.activation.format + " activations";
  if (!r.weight.rounding.empty()) formats += ", " + r.weight.rounding + ", " + r.weight.overflow;
  return formats;
}

void say_baseline(const std::vector<Record>& records, std::vector<std::string>& out) {
  std::set<std::string> said;
  for (const Record& r : records) {
    const Record* baseline = find_baseline(records, r);
    if (!said.insert(r.net + '\n' + r.data).second) continue;
    const std::string what = fmt::format("{} on {}", r.net.empty() ? "the network" : r.net,
                                         r.data.empty() ? "its data" : r.data);
    if (r.bits_per_character && r.baseline_bits_per_character) {
      out.push_back(
          fmt::format("Unquantized, {} reaches {:.4f} bits per character on {} characters.", what,
                      *r.baseline_bits_per_character, grouped(r.images)));
    } else if (baseline && baseline->top1) {
      std::string text =
          fmt::format("Unquantized, {} reaches {} top-1", what, percent(*baseline->top1));
      if (baseline->images) text += " on " + grouped(baseline->images) + " images";
      if (baseline->ci_low && baseline->ci_high) {
        text += fmt::format(" (95 % interval {:.2f} to {})", 100 * *baseline->ci_low,
                            percent(*baseline->ci_high));
      }
      out.push_back(text + ".");
    } else if (r.baseline_top1) {
      out.push_back(
          fmt::format("Unquantized, {} reaches {} top-1.", what, percent(*r.baseline_top1)));
    }
  }
}

/// "12 lose less than 0.5 points, 3 lose that or more, for 2 the interval holds the limit".
void say_losses(const std::vector<Record>& records, std::vector<std::string>& out) {
  std::size_t compared = 0, less = 0, undecided = 0, more = 0, texts = 0;
  for (const Record& r : records) {
    const std::optional<Verdict> little = loses_little(r);
    if (!little) continue;
    ++compared;
    less += little == Verdict::holds;
    undecided += little == Verdict::undecided;
    more += little == Verdict::fails;
    texts += r.bits_per_character.has_value();
  }
  if (compared == 0) {
    out.push_back("No quantized configuration has been measured.");
    return;
  }
  const std::string limit = texts ? fmt::format("{:g} bits per character", kSmallRise)
                                  : fmt::format("{:.1f} points", 100 * kSmallLoss);
  std::string text =
      fmt::format("Of {} quantized configuration{}, {} lose{} less than {}", compared,
                  compared == 1 ? "" : "s", less, less == 1 ? "s" : "", limit);
  if (more > 0) text += fmt::format(", {} that or more", more);
  if (undecided > 0)
    text += fmt::format(", and {} {} undecided: the paired 95 % interval holds the limit",
                        undecided, undecided == 1 ? "is" : "are");
  out.push_back(text + ".");
}

void say_not_finite(const std::vector<Record>& records, std::vector<std::string>& out) {
  std::vector<std::string> names;
  for (const Record& r : records) {
    if (r.not_finite) names.push_back(r.name);
  }
  if (!names.empty())
    out.push_back(fmt::format("NaN or infinite outputs: {}.", listed_names(names)));
}

void say_cheapest(const std::vector<Record>& records, std::vector<std::string>& out) {
  const Record* best = cheapest_safe(records);
  if (!best) return;
  std::string bits = fmt::format("{:.2f}", *best->mean_bits());
  if (best->bits_weight && best->bits_activation) {
    bits += fmt::format(" (weights {:.2f}, activations {:.2f})", *best->bits_weight,
                        *best->bits_activation);
  }
  if (best->bits_per_character) {
    out.push_back(fmt::format(
        "The fewest bits that lose less than {:g} bits per character are {} bits per element: {}, "
        "on {}, at {:.4f}.",
        kSmallRise, bits, describe(*best), best->unit, *best->bits_per_character));
    return;
  }
  out.push_back(
      fmt::format("The fewest bits that surely lose less than {:.1f} points are {} bits per "
                  "element: {}, on {}, at {}.",
                  100 * kSmallLoss, bits, describe(*best), best->unit, percent(*best->top1)));
}

std::string listed(const std::set<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ", ") + word;
  return out;
}

}  // namespace

std::string grouped(const std::optional<double>& count) {
  if (!count) return "–";
  std::string out = fmt::format("{:.0f}", *count);
  for (std::size_t at = out.size(); at > 3 + (*count < 0); at -= 3) out.insert(at - 3, ",");
  return out;
}

std::vector<std::string> headline(const std::vector<Record>& records) {
  std::vector<std::string> out;
  say_cheapest(records, out);
  say_losses(records, out);
  say_not_finite(records, out);
  say_baseline(records, out);
  return out;
}

std::vector<std::string> prediction_sentences(const Verdicts& v) {
  std::vector<std::string> out;
  // The empirical error of a tensor is the same sum as the measured one: no prediction.
  if (v.weight_tensors + v.activation_tensors) {
    out.push_back(
        fmt::format("A fitted distribution was accepted for {} of {} weight and {} of {} "
                    "activation tensors, and "
                    "{} of the {} predictions made from these fits lie within {:.1f} dB.",
                    v.weight_accepted, v.weight_tensors, v.activation_accepted,
                    v.activation_tensors, v.fitted.holds, v.fitted.compared(), kFittedTolerance));
  }
  if (v.outputs.compared()) {
    out.push_back(fmt::format(
        "The predicted SQNR of the network's output holds (within {:g} dB) in {} of {} "
        "configurations{} it differs from the measured one by {:.2f} dB in the median and by at "
        "most "
        "{:.2f} dB.",
        kLayerHolds, v.outputs.holds, v.outputs.compared(),
        v.outputs.not_finite == 0
            ? ";"
            : fmt::format(", and fails in {} whose outputs are NaN or infinite; elsewhere",
                          v.outputs.not_finite),
        v.outputs.median, v.outputs.largest));
  }
  return out;
}

std::string conditions(const std::vector<Record>& records) {
  std::set<std::string> rounding, overflow, scale;
  for (const Record& r : records) {
    for (const auto& [role, name] :
         {std::pair(&r.weight, "weights"), {&r.activation, "activations"}}) {
      if (!role->quantized) continue;
      if (!role->rounding.empty()) rounding.insert(role->rounding);
      if (!role->overflow.empty()) overflow.insert(role->overflow);
      if (!role->scale.empty())
        scale.insert(fmt::format("{} per {} ({})", role->scale, role->granularity, name));
    }
  }
  std::string out;
  const auto add = [&out](const char* name, const std::set<std::string>& words) {
    if (!words.empty()) out += fmt::format("{}{} {}", out.empty() ? "" : "; ", name, listed(words));
  };
  add("rounding", rounding);
  add("overflow", overflow);
  add("scale", scale);
  return out.empty() ? "nothing quantized" : out;
}

}  // namespace numemu::experiments
