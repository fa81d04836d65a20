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
  if (!r.only_in.empty()) return r.label();
  std::string formats =
      r.weight.format == r.activation.format
          ? r.weight.format
          : r.weight.format + " weights and " + r.activation.format + " activations";
  if (!r.weight.rounding.empty()) formats += ", " + r.weight.rounding + ", " + r.weight.overflow;
  return formats;
}

/// What a configuration lost, in its own measure.
std::optional<double> loss_of(const Record& r) {
  if (r.bits_per_character) return r.bits_change();
  return r.difference ? std::optional(-*r.difference) : std::nullopt;
}

/// Whether a configuration loses less than what is called small, by its paired interval. Rows of
/// texts hold none: their rise is taken as it is.
Verdict loses_little(const Record& r) {
  if (r.bits_per_character) {
    const std::optional<double> rise = r.bits_change();
    return rise ? verdict_on({*rise, *rise}, at_most(kSmallRise)) : Verdict::undecided;
  }
  if (!r.difference_low || !r.difference_high) return Verdict::undecided;
  return verdict_on({*r.difference_low, *r.difference_high}, at_least(-kSmallLoss));
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

/// Of texts, whose rows hold no interval of the change.
void say_rises(const std::vector<Record>& records, std::vector<std::string>& out) {
  std::size_t compared = 0, small = 0;
  for (const Record& r : records) {
    if (!r.quantized() || !r.bits_change()) continue;
    ++compared;
    small += loses_little(r) == Verdict::holds;
  }
  if (compared == 0) return;
  out.push_back(
      fmt::format("Of {} quantized configuration{}, {} cost{} less than {:g} bits per "
                  "character.",
                  compared, compared == 1 ? "" : "s", small, small == 1 ? "s" : "", kSmallRise));
}

void say_losses(const std::vector<Record>& records, std::vector<std::string>& out) {
  std::size_t compared = 0;
  std::map<Verdict, std::size_t> losses;
  const bool texts = std::any_of(records.begin(), records.end(), [](const Record& r) {
    return r.quantized() && r.bits_change().has_value();
  });
  for (const Record& r : records) {
    if (!r.quantized() || !r.difference || r.bits_per_character) continue;
    ++compared;
    ++losses[loses_little(r)];
  }
  if (compared == 0 && texts) return;
  if (compared == 0) {
    out.push_back("No quantized configuration has been measured.");
    return;
  }
  const std::size_t less = losses[Verdict::holds], open = losses[Verdict::undecided];
  out.push_back(
      fmt::format("Of {} quantized configuration{}, {} lose{} less than {:.1f} points and {} more, "
                  "by the whole of their paired 95 % intervals; {} {} undecided.",
                  compared, compared == 1 ? "" : "s", less, less == 1 ? "s" : "", 100 * kSmallLoss,
                  losses[Verdict::fails], open, open == 1 ? "is" : "are"));
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
        "The fewest bits that cost less than {:g} bits per character are {} bits per element: {}, "
        "on {}, at {:.4f}.",
        kSmallRise, bits, describe(*best), best->unit, *best->bits_per_character));
    return;
  }
  out.push_back(
      fmt::format("The fewest bits whose accuracy stays inside the float32 baseline's interval are "
                  "{} bits per element: "
                  "{}, on {}, at {}.",
                  bits, describe(*best), best->unit, percent(*best->top1)));
}

void say_predictions(const Verdicts& v, std::vector<std::string>& out) {
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
        "configurations; it differs from the measured one by {:.2f} dB in the median and by at "
        "most "
        "{:.2f} dB.",
        kLayerHolds, v.outputs.holds, v.outputs.compared(), v.outputs.median, v.outputs.largest));
  }
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

const Record* find_baseline(const std::vector<Record>& records, const Record& of) {
  const Record* any_seed = nullptr;
  for (const Record& r : records) {
    if (r.quantized() || r.net != of.net || r.data != of.data) continue;
    if (r.seed == of.seed) return &r;
    if (!any_seed) any_seed = &r;
  }
  return any_seed;
}

const Record* cheapest_safe(const std::vector<Record>& records) {
  const Record* best = nullptr;
  const auto is_safe = [&records](const Record& r) {
    if (r.bits_per_character) return loses_little(r) == Verdict::holds;
    const Record* baseline = find_baseline(records, r);
    return baseline && baseline->ci_low && r.top1 && *r.top1 >= *baseline->ci_low;
  };
  const auto badness = [](const Record& r) {
    return r.bits_per_character ? *r.bits_per_character : -r.top1.value_or(0);
  };
  for (const Record& r : records) {
    if (!r.quantized() || !r.mean_bits() || !is_safe(r)) continue;
    if (!best || *r.mean_bits() < *best->mean_bits() ||
        (*r.mean_bits() == *best->mean_bits() && badness(r) < badness(*best))) {
      best = &r;
    }
  }
  return best;
}

std::vector<std::string> headline(const std::vector<Record>& records, const Verdicts& verdicts) {
  std::vector<std::string> out;
  say_baseline(records, out);
  say_losses(records, out);
  say_rises(records, out);
  say_cheapest(records, out);
  say_predictions(verdicts, out);
  return out;
}

std::vector<std::string> labels_by_loss(const std::vector<Record>& records, Verdict little) {
  std::map<std::string, std::set<std::string>> units;
  std::map<std::string, std::set<Verdict>> verdicts;
  for (const Record& r : records) {
    if (!r.quantized() || !loss_of(r)) continue;
    units[r.label()].insert(r.unit);
    verdicts[r.label()].insert(loses_little(r));
  }
  std::vector<std::string> out;
  for (const Record& r : records) {
    if (!r.quantized() || !loss_of(r) || loses_little(r) != little) continue;
    std::string label = r.label();
    if (const std::size_t count = units[label].size(); count > 1) {
      label += verdicts[r.label()].size() == 1 ? fmt::format(" on all {} units", count)
                                               : " on " + short_unit(r.unit);
    }
    if (std::find(out.begin(), out.end(), label) == out.end()) out.push_back(label);
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
