#include "experiments/search/operands.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <filesystem>
#include <optional>

#include "emu/net/forward.hpp"
#include "emu/net/graph.hpp"
#include "emu/net/numerics.hpp"
#include "emu/net/run_context.hpp"
#include "experiments/predict/block_noise.hpp"
#include "experiments/predict/tensor_noise.hpp"
#include "formats/analysis/phase_noise.hpp"
#include "formats/blocks/block_layout.hpp"
#include "formats/digest.hpp"
#include "formats/error.hpp"
#include "formats/portable/math.hpp"
#include "formats/portable/pairwise.hpp"
#include "formats/storage/atomic_file.hpp"
#include "formats/storage/json_reader.hpp"
#include "formats/version.hpp"
#include "policies/calibrate/static_scale.hpp"
#include "policies/numerics/operands/scale_groups.hpp"
#include "policies/numerics/quantized_tensor.hpp"
#include "policies/recipe/bound_recipe.hpp"
#include "policies/recipe/role_quantizer.hpp"

namespace numemu::experiments {
namespace {

/// Of noise that probes add, below the operand's power.
constexpr double kProbeNoise = 1e-3;
/// Of what gains are measured by; another one finds none on disk.
constexpr int kGainVersion = 1;

}  // namespace

void take_sample(SearchOperand& operand, std::int64_t most) {
  const std::int64_t width = operand.width(), lines = operand.tensor->size() / width;
  const std::int64_t kept = std::clamp<std::int64_t>(most / width, 1, lines);
  for (std::int64_t i = 0; i < kept; ++i) {
    const std::int64_t line = i * lines / kept;
    operand.lines.push_back(line);
    const auto begin = operand.tensor->data.begin() + line * width;
    operand.sample.insert(operand.sample.end(), begin, begin + width);
  }
}

std::vector<SearchOperand> search_operands(const net::Graph& graph,
                                           const policies::FloatReference& reference) {
  std::vector<SearchOperand> out;
  const auto add = [&](const net::GemmLayer& gemm, net::Role role, bool right,
                       const net::Tensor& tensor) {
    if (tensor.size() == 0 || tensor.shape.empty()) return;
    out.push_back({.gemm = gemm, .role = role, .right = right, .tensor = &tensor});
    take_sample(out.back());
  };
  for (const net::GemmLayer& gemm : net::gemm_layers(graph)) {
    add(gemm, net::Role::activation, false, net::at_layer(reference.inputs, gemm.name));
    if (gemm.weight != nullptr) {
      add(gemm, net::Role::weight, true, *gemm.weight);
    } else {
      add(gemm, gemm.right, true, net::at_layer(reference.seconds, gemm.name));
    }
  }
  return out;
}

SampleScales sample_scales(const policies::RolePolicy& policy, const SearchOperand& operand,
                           const policies::CalibrationPolicy& calibration,
                           const policies::FloatReference& reference) {
  const std::int64_t width = operand.width();
  if (policy.block != nullptr) {
    const auto lines = static_cast<std::int64_t>(operand.lines.size());
    const BlockLayout layout = block_layout(*policy.block, {lines, width}, 1);
    return {block_factors(policy, layout, operand.sample.data()),
            policy.block->span == Span::block ? policy.block->size : width};
  }
  SampleScales out{{}, width};
  if (!operand.weight() && policies::has_static_scale(calibration, policy)) {
    const double scale =
        policies::static_scale(calibration, policy, reference, *operand.tensor).scale;
    out.scales.assign(operand.lines.size(), scale);
    return out;
  }
  const std::int64_t size = operand.tensor->size();
  const std::int64_t samples = operand.weight() ? 1 : operand.tensor->dim(0);
  const policies::ScaleGroups groups =
      policies::scale_groups(policy, operand.gemm, operand.role, operand.tensor->shape, samples);
  // Columns of keys and values are taken as if they were rows.
  const std::int64_t each = groups.columns ? width : size / groups.count;
  const std::vector<float> chosen = policies::choose_scales(
      policies::RoleQuantizer(policy), operand.tensor->data.data(), size, size / each);
  out.each = std::min(width, each);
  for (const std::int64_t line : operand.lines)
    for (std::int64_t at = line * width; at < (line + 1) * width; at += out.each)
      out.scales.push_back(chosen[at / each]);
  return out;
}

std::vector<double> expanded(const SampleScales& scales, std::int64_t width,
                             std::int64_t elements) {
  const std::int64_t per_line = (width + scales.each - 1) / scales.each;
  std::vector<double> out(static_cast<std::size_t>(elements));
  for (std::int64_t i = 0; i < elements; ++i)
    out[i] = scales.scales[i / width * per_line + i % width / scales.each];
  return out;
}

namespace {

/// Float32 numerics that add small white noise to one operand.
class OneOperandNoise : public net::Numerics {
 public:
  OneOperandNoise(const SearchOperand& operand, std::int64_t probe)
      : operand_(operand),
        random_{.seed = 0,
                .stream = Stream::probe,
                .tensor = tensor_word(fmt::format("{}/{}/gain", operand.name(), probe)),
                .draw = 0} {}

  void product(const net::Step& step, const net::Product& p) override {
    if (p.layer != operand_.gemm.name) return net::Numerics::product(step, p);
    net::Product changed = p;
    net::ProductSide& side = operand_.right ? changed.b : changed.a;
    net::Tensor y = *side.source;
    // Probes of a recurrent layer have phases of their own in every step.
    std::vector<float> phases(y.data.size());
    fill_phases(random_, y.size() * p.repetition, y.size(), phases.data());
    const double power = mean_square(y);
    const auto step_size = static_cast<float>(std::sqrt(12 * kProbeNoise * power));
    double added = 0;
    for (std::size_t i = 0; i < y.data.size(); ++i) {
      if (y.data[i] == 0) continue;  // every format has it
      const float error = step_size * phases[i];
      y.data[i] += error;
      added += double{error} * error;
    }
    noise_ += added / static_cast<double>(std::max<std::int64_t>(1, y.size()) * p.repetitions);
    side.source = &y;
    net::Numerics::product(step, changed);
  }
  /// Mean square of what was added.
  double noise() const { return noise_; }

 private:
  const SearchOperand& operand_;
  RandomSource random_;
  double noise_ = 0;
};

double gain_of(const SearchOperand& operand, const Workbench& bench) {
  const policies::FloatReference& reference = bench.reference;
  const std::int64_t samples = std::min(kGainSamples, reference.samples());
  const std::int64_t chunks = reference.samples() / samples;
  const std::int64_t each = reference.logits.size() / reference.samples();
  double gain = 0;
  for (std::int64_t probe = 0; probe < kGainProbes; ++probe) {
    const std::int64_t first = probe % chunks * samples;
    std::vector<net::Tensor> batch;
    for (const net::Tensor& x : reference.batch)
      batch.push_back(policies::samples_of(x, first, samples));
    OneOperandNoise noise(operand, probe);
    const net::Tensor logits = net::forward(bench.trained.graph, batch, noise);
    const float* const clean = reference.logits.data.data() + first * each;
    const double error = pairwise_sum(logits.size(), [&](std::int64_t i) {
      return (double{logits.data[i]} - clean[i]) * (double{logits.data[i]} - clean[i]);
    });
    if (noise.noise() > 0)
      gain += error / static_cast<double>(logits.size()) / noise.noise() / kGainProbes;
  }
  const double signal = mean_square(reference.logits);
  return signal > 0 ? gain / signal : 0;
}

/// Gains of the file, where it is whole and has that key.
std::optional<std::vector<double>> kept_gains(const std::string& path, const std::string& key,
                                              std::size_t count) {
  if (path.empty() || !std::filesystem::exists(path)) return std::nullopt;
  try {
    const Json json = parse_json(read_text(path), path);
    const std::string text = json.at("gains").dump();
    if (json.at("key") != key || json.at("digest") != sha256_hex(text)) return std::nullopt;
    auto gains = json.at("gains").get<std::vector<double>>();
    if (gains.size() == count) return gains;
  } catch (const std::exception&) {  // damaged: measured again
  }
  return std::nullopt;
}

}  // namespace

std::vector<double> output_gains(const std::vector<SearchOperand>& operands, const Workbench& bench,
                                 const std::string& cache) {
  Json identity = {{"gains", kGainVersion},
                   {"numerics", kNumericsVersion},
                   {"data", bench.dataset.digest()},
                   {"samples", bench.reference.samples()},
                   {"logits", sha256_hex(std::string_view(
                                  reinterpret_cast<const char*>(bench.reference.logits.data.data()),
                                  bench.reference.logits.data.size() * sizeof(float)))}};
  identify(identity, bench.trained);
  const std::string key = sha256_hex(identity.dump());
  const std::string path =
      cache.empty() ? "" : fmt::format("{}/gains/{}.json", cache, key.substr(0, 32));
  if (const auto kept = kept_gains(path, key, operands.size())) return *kept;
  std::vector<double> gains(operands.size());
  std::vector<std::exception_ptr> failures(operands.size());
  net::RunContext& run = net::RunScope::current();
#pragma omp parallel for schedule(dynamic)
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const net::RunScope scope(run);
    try {
      gains[i] = gain_of(operands[i], bench);
    } catch (...) {
      failures[i] = std::current_exception();
    }
  }
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  if (!path.empty()) {
    try {
      std::filesystem::create_directories(cache + "/gains");
      const Json list = gains;
      write_atomically(
          path,
          {Json{{"key", key}, {"gains", list}, {"digest", sha256_hex(list.dump())}}.dump(), "\n"});
    } catch (
        const std::exception&) {  // a folder that cannot be written costs the next run its time
    }
  }
  return gains;
}

}  // namespace numemu::experiments
