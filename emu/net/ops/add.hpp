// y = a + b; da = g, db = g.
#pragma once
#include "emu/net/ops/broadcast.hpp"

namespace numemu::net {

class Add final : public Binary {
 public:
  Add() : Binary(false) {}
  std::string_view kind() const override { return "add"; }

 protected:
  void values(std::int64_t n, const float* a, const float* b, float* y) const override;
  void gradients(std::int64_t n, const float* a, const float* b, const float* g, float* da,
                 float* db) const override;
};

}  // namespace numemu::net
