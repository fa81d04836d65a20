// The GPU in hand as a Machine: copies tiles there, launches the instruction's kernel, copies D
// back.
#include <cstring>
#include <map>
#include <stdexcept>

#include "emu/oracle/recording/instruction.hpp"
#include "tests/oracle/cuda/device/check.cuh"
#include "tests/oracle/cuda/device/gpu_machine.cuh"

namespace numemu::oracle::recording {
namespace {

/// Device memory that holds a copy of host bytes.
class DeviceBytes {
 public:
  explicit DeviceBytes(const std::vector<std::uint8_t>& host) : size_(host.size()) {
    if (size_ == 0) return;
    check(cudaMalloc(&bytes_, size_), "cudaMalloc");
    check(cudaMemcpy(bytes_, host.data(), size_, cudaMemcpyHostToDevice), "copy to the GPU");
  }
  ~DeviceBytes() { cudaFree(bytes_); }
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;

  std::uint8_t* get() const { return static_cast<std::uint8_t*>(bytes_); }
  void copy_to(std::vector<std::uint8_t>& host) const {
    check(cudaMemcpy(host.data(), bytes_, size_, cudaMemcpyDeviceToHost), "copy from the GPU");
  }

 private:
  void* bytes_ = nullptr;
  std::size_t size_;
};

class Gpu : public Machine {
 public:
  Gpu() : identity_(gpu_identity()) {
    for (const Kernel& kernel : kernels())
      if (recording::has(kernel.instruction, identity_.capability))
        launches_[full_name(kernel.instruction)] = kernel.launch;
  }

  std::string name() const override { return identity_.name; }
  bool has(const Instruction& i) const override { return launches_.count(full_name(i)) != 0; }
  void run(Batch& batch) override {
    const auto found = launches_.find(full_name(*batch.instruction));
    if (found == launches_.end())
      throw std::runtime_error(full_name(*batch.instruction) +
                               ": this GPU has no such instruction");
    const DeviceBytes a(batch.a), b(batch.b), c(batch.c), metadata(batch.metadata);
    const DeviceBytes scale_a(batch.scale_a), scale_b(batch.scale_b), d(batch.d);
    found->second({a.get(), b.get(), c.get(), metadata.get(), scale_a.get(), scale_b.get(), d.get(),
                   batch.count});
    check(cudaGetLastError(), found->first.c_str());
    check(cudaDeviceSynchronize(), found->first.c_str());
    d.copy_to(batch.d);
  }

 private:
  GpuIdentity identity_;
  std::map<std::string, void (*)(const Tiles&)> launches_;
};

}  // namespace

GpuIdentity gpu_identity() {
  int count = 0;
  check(cudaGetDeviceCount(&count), "looking for a GPU");
  if (count == 0) throw std::runtime_error("looking for a GPU: there is none");
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, 0), "asking the GPU's properties");
  GpuIdentity identity{properties.name, 10 * properties.major + properties.minor, 0, 0};
  check(cudaDriverGetVersion(&identity.driver), "asking the driver's version");
  check(cudaRuntimeGetVersion(&identity.runtime), "asking the runtime's version");
  return identity;
}

std::vector<Kernel> kernels() {
  std::vector<Kernel> all;
  add_mma_half(all);
  add_mma_volta(all);
  add_mma_tf32(all);
  add_mma_f64(all);
  add_mma_fp8(all);
  add_mma_int(all);
  add_mma_sparse(all);
  add_wgmma(all);
  add_wgmma_sparse(all);
  add_mma_f8f6f4(all);
  add_mma_block_scale(all);
  add_tcgen05(all);
  add_tcgen05_sparse(all);
  add_tcgen05_block_scale(all);
  return all;
}

Converter gpu_converter() {
  return [](const Conversion& c, const std::vector<std::uint32_t>& in) {
    std::vector<ConversionKernel> all;
    add_conversions(all);
    for (const ConversionKernel& kernel : all) {
      if (std::string(kernel.conversion.name) != c.name) continue;
      const auto bytes = [](const std::vector<std::uint32_t>& words) {
        const auto* first = reinterpret_cast<const std::uint8_t*>(words.data());
        return std::vector<std::uint8_t>(first, first + 4 * words.size());
      };
      std::vector<std::uint8_t> answers(4 * in.size());
      const DeviceBytes from(bytes(in)), to(answers);
      kernel.launch(reinterpret_cast<const std::uint32_t*>(from.get()),
                    reinterpret_cast<std::uint32_t*>(to.get()), static_cast<int>(in.size()));
      check(cudaGetLastError(), c.name);
      check(cudaDeviceSynchronize(), c.name);
      to.copy_to(answers);
      std::vector<std::uint32_t> words(in.size());
      std::memcpy(words.data(), answers.data(), answers.size());
      return words;
    }
    throw std::runtime_error(std::string(c.name) + ": this program was built without it");
  };
}

std::unique_ptr<Machine> gpu_machine() { return std::make_unique<Gpu>(); }

}  // namespace numemu::oracle::recording
