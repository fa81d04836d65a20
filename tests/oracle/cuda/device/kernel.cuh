// The kernels of the program: one launcher per instruction, collected family by family.
#pragma once
#include <vector>

#include "emu/oracle/recording/batch.hpp"

namespace numemu::oracle::recording {

struct Kernel {
  Instruction instruction;
  void (*launch)(const Tiles&);  ///< asynchronous; pointers are device memory
  const void* symbol;            ///< of the __global__ function, for its name in the evidence
};

// Each is defined in device/FAMILY.cu and appends the rows of instructions/FAMILY.def.
void add_mma_half(std::vector<Kernel>&);
void add_mma_volta(std::vector<Kernel>&);
void add_mma_tf32(std::vector<Kernel>&);
void add_mma_f64(std::vector<Kernel>&);
void add_mma_fp8(std::vector<Kernel>&);
void add_mma_int(std::vector<Kernel>&);
void add_mma_sparse(std::vector<Kernel>&);
void add_wgmma(std::vector<Kernel>&);
void add_wgmma_sparse(std::vector<Kernel>&);
void add_mma_f8f6f4(std::vector<Kernel>&);
void add_mma_block_scale(std::vector<Kernel>&);
void add_tcgen05(std::vector<Kernel>&);
void add_tcgen05_sparse(std::vector<Kernel>&);
void add_tcgen05_block_scale(std::vector<Kernel>&);

}  // namespace numemu::oracle::recording
