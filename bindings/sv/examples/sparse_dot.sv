// A 2:4 sparse dot product in FP8: two of each four elements of A are kept, and metadata says which.
//
// Each kept element of A meets the element of B at its place. The e4m3 products and C, a float16, are added exactly in fixed point,
// and the sum is rounded once, to nearest even. sparse_dot.json describes the same arithmetic.

// verilator lint_off DECLFILENAME
package sparse_dot_pkg;
  // Bugs to plant, for the tests of the testbench.
  typedef enum int {
    FaultNone     = 0,
    FaultOrder    = 1,  // the two places of a group exchanged
    FaultZero     = 2,  // a kept zero takes no part, so that zero times NaN is lost
    FaultRounding = 3   // the sum of the products is rounded before C is added
  } fault_e;

  localparam int Groups = 4;
  localparam int Kept = 2 * Groups;  // elements of A
  localparam int K = 4 * Groups;     // elements of B

  // Fixed point: the smallest bit is 2^-24, the smallest float16; products are below 2^18.
  localparam int SumBits = 48;
  typedef logic signed [SumBits-1:0] sum_t;

  typedef struct packed {
    logic       sign;
    logic [3:0] exponent;
    logic [2:0] fraction;
  } e4m3_t;

  typedef struct packed {
    logic       sign;
    logic [4:0] exponent;
    logic [9:0] fraction;
  } float16_t;

  localparam float16_t NanCode = 16'h7e00;
endpackage
// verilator lint_on DECLFILENAME

module sparse_dot
  import sparse_dot_pkg::*;
#(
  parameter int Fault = int'(FaultNone)
) (
  input  e4m3_t [Kept-1:0]      a_i,
  input  logic  [Kept-1:0][1:0] place_i,  // of each kept element in its group
  input  e4m3_t [K-1:0]         b_i,
  input  float16_t              c_i,
  output float16_t              d_o
);

  // --- numbers as fixed point ---------------------------------------------------------------------

  // Significand with the leading one, and the exponent of its last bit above that of the smallest number.
  function automatic logic [3:0] significand8(logic [3:0] exponent, logic [2:0] fraction);
    return {exponent != 4'd0, fraction};
  endfunction

  function automatic logic [5:0] shift8(logic [3:0] exponent);
    return exponent == 4'd0 ? 6'd0 : {2'd0, exponent} - 6'd1;
  endfunction

  function automatic sum_t fixed16(logic sign, logic [4:0] exponent, logic [9:0] fraction);
    sum_t magnitude;
    magnitude = SumBits'({exponent != 5'd0, fraction}) << (exponent == 5'd0 ? 5'd0 : exponent - 5'd1);
    return sign ? -magnitude : magnitude;
  endfunction

  // --- rounding to nearest even -------------------------------------------------------------------

  // zero_sign: of a sum of exactly zero.
  function automatic float16_t round16(sum_t sum, logic zero_sign);
    sum_t magnitude, rounded;
    int   top, cut;
    logic guard, sticky;
    magnitude = sum < 0 ? -sum : sum;
    top = 0;
    for (int i = 0; i < SumBits; i++) begin
      if (magnitude[i]) top = i;
    end
    cut = top > 10 ? top - 10 : 0;
    rounded = magnitude >> cut;
    guard = cut > 0 && magnitude[cut-1];
    sticky = cut > 1 && (magnitude & ((sum_t'(1) << (cut - 1)) - 1)) != 0;
    if (guard && (sticky || rounded[0])) rounded = rounded + 1;
    // A carry out of the fraction increases the exponent.
    round16.sign = sum == 0 ? zero_sign : sum < 0;
    {round16.exponent, round16.fraction} = 15'(rounded[11:0]) + 15'(cut << 10);
    if (cut >= 30) {round16.exponent, round16.fraction} = {5'h1f, 10'd0};
  endfunction

  // --- the sum ------------------------------------------------------------------------------------

  e4m3_t [Kept-1:0] b_kept;  // the element of B that each element of A meets

  always_comb begin
    for (int i = 0; i < Kept; i++) begin
      b_kept[i] = b_i[4*(i/2)+int'(place_i[Fault == int'(FaultOrder) ? i ^ 1 : i])];
    end
  end

  sum_t products, sum;
  float16_t early;  // of FaultRounding
  logic has_nan, all_negative;

  always_comb begin
    products = '0;
    early = '0;
    has_nan = &c_i.exponent && c_i.fraction != '0;
    all_negative = 1'b1;
    for (int i = 0; i < Kept; i++) begin
      automatic sum_t product;
      automatic logic negative, skipped;
      negative = a_i[i].sign ^ b_kept[i].sign;
      // 12 fraction bits more than those of two smallest numbers, 2^-18.
      product = SumBits'(8'(significand8(a_i[i].exponent, a_i[i].fraction)) *
                         8'(significand8(b_kept[i].exponent, b_kept[i].fraction)))
                << (shift8(a_i[i].exponent) + shift8(b_kept[i].exponent) + 6'd6);
      products += negative ? -product : product;
      all_negative &= negative;
      skipped = Fault == int'(FaultZero) && {a_i[i].exponent, a_i[i].fraction} == '0;
      has_nan |= (&{a_i[i].exponent, a_i[i].fraction} | &{b_kept[i].exponent, b_kept[i].fraction}) & ~skipped;
    end
    if (Fault == int'(FaultRounding)) begin
      early = round16(products, all_negative);
      products = fixed16(early.sign, early.exponent, early.fraction);
    end
    sum = products + fixed16(c_i.sign, c_i.exponent, c_i.fraction);
    d_o = round16(sum, all_negative & c_i.sign);
    if (&early.exponent) d_o = early;
    if (&c_i.exponent) d_o = c_i;
    if (has_nan || (&early.exponent && &c_i.exponent && early.sign != c_i.sign)) d_o = NanCode;
  end

endmodule
