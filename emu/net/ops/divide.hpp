// y = a / b; da = g / b, db = -g a / b^2.
#pragma once
#include "emu/net/ops/broadcast.hpp"

namespace numemu::net {

class Divide final : public Binary {
 public:
  Divide() : Binary(true) {}
  std::string_view kind() const override { return "divide"; }

 protected:
  void values(std::int64_t n, const float* a, const float* b, float* y) const override;
  void gradients(std::int64_t n, const float* a, const float* b, const float* g, float* da,
                 float* db) const override;
};

}  // namespace numemu::net
