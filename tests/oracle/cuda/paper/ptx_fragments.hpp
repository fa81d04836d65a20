// A second source for fragments: thread-value tables typed from CuTe and from PTX, which
// fragment.hpp is held against and a machine on paper reads registers with.
#pragma once
#include "tests/oracle/cuda/layout/fragment.hpp"

namespace numemu::oracle::recording {

/// One mode of a layout: `extent` coordinates, `stride` apart. Extent 0: not there.
struct Mode {
  int extent = 0, stride = 0;
};

/// A thread-value layout as CuTe writes it: the coordinates of a lane and of a value, the first
/// mode running fastest, give an offset into a matrix of `rows` rows that is stored by columns.
struct ThreadValue {
  int rows = 0;
  Mode lane[4];
  Mode value[3];
  int registers = 0;  ///< of one lane, as PTX lists them
  int elements = 1;   ///< of the logical k behind a stored value: 2 in a sparse A

  /// Row (m or n) and k (column of C) of value v, k counted in stored values.
  Place place(int lane_id, int v) const;
  int values() const;  ///< of one lane
  int lanes() const;
  /// Lanes that differ in a mode of stride 0 hold the same; whether this is the first of them, the
  /// one that selector 0 names (metadata, scales) and whose D is written (quad pairs).
  bool first(int lane_id) const;
};

/// The layouts of one instruction. Rows of `b` are n, of the others m.
struct PtxFragments {
  ThreadValue a;
  ThreadValue b;                 ///< rows == 0: B lies in shared memory (wgmma)
  ThreadValue c, d;              ///< columns are n
  ThreadValue metadata;          ///< values are words of four bits, k counts them; rows == 0: dense
  ThreadValue scale_a, scale_b;  ///< values are bytes, k counts scales; rows == 0: not scaled
  int a_bits, b_bits;            ///< of a slot in a register
  const char* source;            ///< of a and b
};

/// Throws std::runtime_error for an instruction without such tables (tcgen05).
PtxFragments ptx_fragments(const Instruction&);

/// The code in slot `v` of a lane's registers; `bits` wide slots, FP4 in a byte in bits 2 to 5
/// (CUTLASS mma_traits_sm120.hpp, fp4_shift_A).
std::uint64_t read_slot(const std::uint64_t* registers, int register_bits, int bits, Element e,
                        int v);
void write_slot(std::uint64_t* registers, int register_bits, int bits, int v, std::uint64_t code);

}  // namespace numemu::oracle::recording
