#include "emu/net/data/calibration.hpp"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "formats/digest.hpp"
#include "formats/error.hpp"

namespace numemu::net {
namespace {

class RecalibratedSamples final : public Samples {
 public:
  RecalibratedSamples(std::shared_ptr<const Samples> own, std::int64_t count)
      : own_(std::move(own)) {
    facts_ = own_->facts();
    facts_.sizes.calibration = count;
    facts_.digest = sha256_hex(fmt::format("{} calibration {}", facts_.digest, count))
                        .substr(0, facts_.digest.size());
  }
  void read(Part part, std::int64_t id, const AugmentDraw* draw, float* x,
            TargetSpan targets) const override {
    own_->read(part, id, draw, x, targets);
  }

 private:
  std::shared_ptr<const Samples> own_;
};

}  // namespace

Dataset with_calibration(const Dataset& data, std::int64_t count) {
  if (count < 1 || count > data.train_count()) {
    throw Error(fmt::format("calibration: expected 1 to {} training samples of {}, found {}",
                            data.train_count(), data.name(), count));
  }
  if (count == data.calibration_count()) return data;
  return {data.name(), std::make_shared<RecalibratedSamples>(data.samples(), count)};
}

}  // namespace numemu::net
