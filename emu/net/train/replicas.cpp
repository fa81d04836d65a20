#include "emu/net/train/replicas.hpp"

#include <fmt/format.h>

#include <utility>

#include "emu/net/ops/elementwise.hpp"

namespace numemu::net {

Replicas::Replicas(std::int64_t workers, std::span<const Parameter* const> parameters,
                   const Make& make) {
  for (const Parameter* parameter : parameters) {
    exchanged_.push_back(parameter->value);
    trained_.push_back(parameter->trained);
  }
  for (std::int64_t w = 0; w < workers; ++w) workers_.push_back({make(), exchanged_});
}

void Replicas::with(std::int64_t worker, Graph& graph, const std::function<void()>& work) {
  const std::vector<Parameter*> parameters = graph.parameters();
  const auto swap = [&] {
    for (std::size_t p = 0; p < parameters.size(); ++p)
      std::swap(parameters[p]->value, at(worker).weights[p]);
  };
  swap();
  try {
    work();
  } catch (...) {
    swap();
    throw;
  }
  swap();
}

std::vector<Tensor> Replicas::change(std::int64_t worker) const {
  std::vector<Tensor> change;
  const std::vector<Tensor>& weights = workers_.at(static_cast<std::size_t>(worker)).weights;
  for (std::size_t p = 0; p < exchanged_.size(); ++p) {
    if (!trained_[p]) {
      change.emplace_back();
      continue;
    }
    float* const out = change.emplace_back(exchanged_[p].shape).data.data();
    const float *const old = exchanged_[p].data.data(), *const now = weights[p].data.data();
    for_each_element(exchanged_[p].size(),
                     [=](std::int64_t i) { out[i] = neutral(old[i] - now[i]); });
  }
  return change;
}

void Replicas::exchanged(Graph& graph, const std::vector<Tensor>& change) {
  for (std::size_t p = 0; p < exchanged_.size(); ++p) {
    float* const x = exchanged_[p].data.data();
    if (trained_[p]) {
      const float* const lost = change[p].data.data();
      for_each_element(exchanged_[p].size(),
                       [=](std::int64_t i) { x[i] = neutral(x[i] - lost[i]); });
      continue;
    }
    const std::unique_ptr<Exchange> mean = make_exchange(workers());
    for (std::int64_t w = 0; w < workers(); ++w) mean->add({w, {at(w).weights[p]}});
    exchanged_[p] = std::move(mean->finish().gradients[0]);
  }
  const std::vector<Parameter*> parameters = graph.parameters();
  for (std::size_t p = 0; p < exchanged_.size(); ++p) {
    parameters[p]->value = exchanged_[p];
    for (Worker& worker : workers_) worker.weights[p] = exchanged_[p];
  }
}

std::vector<StateTensor> Replicas::state(std::size_t index) {
  std::vector<StateTensor> all;
  const auto add = [&](std::string name, Tensor* value) {
    all.push_back({*names_.insert(std::move(name)).first, value});
  };
  for (std::int64_t w = 0; w < workers(); ++w) {
    for (const StateTensor& own : at(w).optimizer->state(index))
      add(fmt::format("worker{}/{}", w, own.name), own.value);
    add(fmt::format("worker{}/weights", w), &at(w).weights[index]);
  }
  add("exchanged", &exchanged_[index]);
  return all;
}

std::vector<double*> Replicas::scalars() {
  std::vector<double*> all;
  for (Worker& worker : workers_) {
    const std::vector<double*> own = worker.optimizer->scalars();
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

}  // namespace numemu::net
