#include "emu/net/kept_bytes.hpp"

#include "formats/error.hpp"
#include "formats/storage/json.hpp"
#include "formats/storage/json_reader.hpp"

namespace numemu::net {
namespace {

constexpr const char* kState = "kept bytes";
constexpr std::int64_t kElement = sizeof(float);
constexpr std::int64_t kCurrent = -1;  ///< the number of the epoch that has not ended

}  // namespace

void KeptBytes::begin_step(const Step& step) {
  if (step.phase == Phase::training && step.samples != nullptr)
    current_.samples += static_cast<std::int64_t>(step.samples->size());
  Forwarding::begin_step(step);
}

void KeptBytes::end_epoch(const Epoch& epoch) {
  epochs_[epoch.index] = current_;
  current_ = {};
  Forwarding::end_epoch(epoch);
}

Saved KeptBytes::save(const Step& step, const Kept& kept, const SharedTensor& tensor) {
  const std::int64_t whole = kElement * tensor->size();
  if (!use_ || layer_ != kept.layer || kept.use <= *use_) {
    layer_ = kept.layer;
    stored_ = nullptr;
    current_.float32 += whole;
  }
  use_ = kept.use;
  Saved saved = Forwarding::save(step, kept, tensor);
  current_.bytes += static_cast<std::int64_t>(saved.packed.size());
  if (saved.tensor != nullptr && saved.tensor.get() != stored_) {
    stored_ = saved.tensor.get();
    current_.bytes += kElement * stored_->size();
  }
  return saved;
}

std::vector<std::int64_t> KeptBytes::counts() const {
  std::vector<std::int64_t> all = Forwarding::counts();
  all.insert(all.end(), {current_.bytes, current_.float32});
  return all;
}

void KeptBytes::add_counts(std::span<const std::int64_t> more) {
  const std::size_t inner = more.size() - 2;
  current_.bytes += more[inner];
  current_.float32 += more[inner + 1];
  Forwarding::add_counts(more.first(inner));
}

void KeptBytes::save_state(NamedState& state) const {
  Forwarding::save_state(state);
  Json all = Json::array();
  const auto add = [&all](std::int64_t epoch, const Sums& sums) {
    all.push_back(Json{epoch, sums.bytes, sums.float32, sums.samples});
  };
  for (const auto& [epoch, sums] : epochs_) add(epoch, sums);
  add(kCurrent, current_);
  state.emplace_back(kState, all.dump());
}

void KeptBytes::load_state(const NamedState& state) {
  Forwarding::load_state(state);
  current_ = {};
  epochs_.clear();
  for (const auto& [name, text] : state) {
    if (name != kState) continue;
    const Json all = parse_json(text, "state " + name);
    const auto whole = [](const Json& number) { return number.is_number_integer(); };
    const auto fits = [&](const Json& one) {
      return one.is_array() && one.size() == 4 && whole(one[0]) && whole(one[1]) && whole(one[2]) &&
             whole(one[3]);
    };
    if (!all.is_array()) throw Error("state " + name + ": expected a list");
    for (const Json& one : all) {
      if (!fits(one)) throw Error("state " + name + ": expected epoch, bytes, bytes and samples");
      const Sums sums{one[1], one[2], one[3]};
      const std::int64_t epoch = one[0];
      (epoch == kCurrent ? current_ : epochs_[epoch]) = sums;
    }
  }
}

const KeptBytes::Sums* KeptBytes::of_epoch(std::int64_t epoch) const {
  const auto found = epochs_.find(epoch);
  return found == epochs_.end() || found->second.samples == 0 ? nullptr : &found->second;
}

}  // namespace numemu::net
