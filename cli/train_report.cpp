// Rows and lines; numbers of rows carry six digits.
#include "cli/train_report.hpp"

#include <fmt/format.h>

#include <cmath>

#include "experiments/engine/scores.hpp"
#include "experiments/report/decimals.hpp"
#include "experiments/report/judged_evaluation.hpp"
#include "experiments/report/percent.hpp"
#include "formats/error.hpp"
#include "formats/storage/atomic_file.hpp"
#include "policies/recipe/canonical_json.hpp"

namespace numemu::cli {
namespace {

double top1(const net::Evaluation& tested) {
  return static_cast<double>(tested.correct) / static_cast<double>(tested.n);
}

stats::Interval interval_of(const net::Evaluation& tested, const net::Dataset& data) {
  return experiments::top1_intervals(
             data, tested, tested,
             experiments::scores_json(data, net::scores_for(data, {}), tested, tested))
      .top1;
}

/// Two nulls where there is no interval: of one sample with several classes.
Json ends_json(const stats::Interval& interval) {
  if (!std::isfinite(interval.low)) return {nullptr, nullptr};
  return {interval.low, interval.high};
}

/// A token of a text is a character.
const char* bits_key(const net::Dataset& data) {
  return data.name() == "tokens" ? "bits_per_token" : "bits_per_character";
}

const char* bits_words(const net::Dataset& data) {
  return data.name() == "tokens" ? "bits per token" : "bits per character";
}

}  // namespace

std::string MetricsFile::row(const net::EpochMetrics& epoch) const {
  const auto digits = [](double value) { return policies::significant(value, 6); };
  Json row{{"epoch", epoch.epoch},
           {"step", epoch.step},
           {"learning_rate", digits(epoch.learning_rate)},
           {"train_loss", digits(epoch.train_loss)},
           {"train_top1", digits(epoch.train_top1)},
           {"validation_loss", nullptr},
           {"validation_top1", nullptr}};
  const bool validated = data_.validation_count() > 0;
  if (validated) {
    row["validation_loss"] = digits(epoch.validation_loss);
    row["validation_top1"] = digits(epoch.validation_top1);
  }
  if (validated && data_.kind() == net::DataKind::text) {
    row["perplexity"] = digits(net::perplexity(epoch.validation_loss));
    row[bits_key(data_)] = digits(net::bits_per_character(epoch.validation_loss));
  }
  row["gradient_norm"] = digits(epoch.gradient_norm);
  row["skipped_steps"] = epoch.skipped;
  row["loss_scale"] = epoch.loss_scale;  // powers of two keep their digits
  if (const net::KeptBytes::Sums* const kept = kept_.of_epoch(epoch.epoch)) {
    row["kept_bytes_per_sample"] = digits(kept->per_sample());
    row["kept_bytes_per_sample_float32"] = digits(kept->float32_per_sample());
  }
  if (!stored_.empty()) {
    const Json stored =
        stored_json(stored_.at(staged_ == nullptr ? 0 : staged_->stage(epoch.epoch)));
    for (const auto& item : stored.items()) row[item.key()] = item.value();
  }
  if (staged_ != nullptr) row["stage"] = staged_->stage(epoch.epoch);
  return row.dump() + "\n";
}

void MetricsFile::begin(const std::vector<net::EpochMetrics>& history) {
  std::string rows;
  for (const net::EpochMetrics& epoch : history) rows += row(epoch);
  write_atomically(path_, {rows});
}

void MetricsFile::append(const net::EpochMetrics& epoch) { append_text(path_, row(epoch)); }

std::string epoch_line(const net::EpochMetrics& epoch, const net::Dataset& data) {
  const bool validated = data.validation_count() > 0;
  std::string line = fmt::format("epoch {:3}  loss {}  train {} %", epoch.epoch,
                                 experiments::decimal_text(epoch.train_loss, 4),
                                 experiments::percent_text(epoch.train_top1));
  line += validated ? fmt::format("  validation loss {}  {} %",
                                  experiments::decimal_text(epoch.validation_loss, 4),
                                  experiments::percent_text(epoch.validation_top1))
                    : "  no validation samples";
  if (validated && data.kind() == net::DataKind::text) {
    line += fmt::format("  perplexity {:.3f}  {:.3f} {}", net::perplexity(epoch.validation_loss),
                        net::bits_per_character(epoch.validation_loss), bits_words(data));
  }
  if (epoch.skipped > 0)
    line += fmt::format("  {} steps skipped, loss scale {}", epoch.skipped, epoch.loss_scale);
  return line;
}

std::string kept_line(const net::KeptBytes::Sums* kept) {
  if (kept == nullptr) return "";
  return fmt::format("kept for backward: {:.0f} bytes per sample, float32 {:.0f}\n",
                     kept->per_sample(), kept->float32_per_sample());
}

Json kept_json(const net::KeptBytes::Sums* kept) {
  if (kept == nullptr) return nullptr;
  return {{"bytes_per_sample", policies::significant(kept->per_sample(), 6)},
          {"float32_bytes_per_sample", policies::significant(kept->float32_per_sample(), 6)}};
}

std::string stored_line(const policies::ParameterBytes& stored,
                        const policies::ParameterBytes& float32) {
  return fmt::format(
      "stored of each parameter: {:.2f} bytes of master weights, {:.2f} of optimizer state; "
      "float32 {:.2f}, {:.2f}\n",
      stored.master, stored.state, float32.master, float32.state);
}

Json stored_json(const policies::ParameterBytes& stored) {
  return {{"master_bytes_per_parameter", policies::significant(stored.master, 6)},
          {"state_bytes_per_parameter", policies::significant(stored.state, 6)}};
}

Json test_json(const net::Evaluation& tested, const net::Dataset& data) {
  const stats::Interval interval = interval_of(tested, data);
  Json metrics{{"top1", top1(tested)},
               {"n", tested.n},
               {"ci95", ends_json(interval)},
               {"loss", tested.loss}};
  if (data.kind() == net::DataKind::text) {
    metrics["perplexity"] = net::perplexity(tested.loss);
    metrics[bits_key(data)] = net::bits_per_character(tested.loss);
  }
  return metrics;
}

std::string test_line(const net::Evaluation& tested, const net::Dataset& data) {
  const stats::Interval interval = interval_of(tested, data);
  std::string line = fmt::format(
      "test {} % of {}, {}, loss {}", experiments::percent_text(top1(tested)),
      experiments::targets_text(data, tested),
      std::isfinite(interval.low)
          ? "95 % interval " + experiments::percent_interval(interval.low, interval.high)
          : "no interval",
      experiments::decimal_text(tested.loss, 4));
  if (data.kind() == net::DataKind::text) {
    line += fmt::format(", perplexity {:.3f}, {:.4f} {}", net::perplexity(tested.loss),
                        net::bits_per_character(tested.loss), bits_words(data));
  }
  return line;
}

}  // namespace numemu::cli
