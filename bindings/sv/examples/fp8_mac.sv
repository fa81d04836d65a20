// A multiply-accumulate in FP8: each cycle adds four e4m3 products to a register of 14 significant bits.
//
// The products and the register are aligned to the largest of their exponents, with a guard bit and a sticky bit below the 14 bits;
// their exact sum is rounded to nearest even. The register travels as float32. fp8_mac.json describes the same arithmetic.

// verilator lint_off DECLFILENAME
package fp8_mac_pkg;
  // Bugs to plant, for the tests of the testbench.
  typedef enum int {
    FaultNone      = 0,
    FaultTies      = 1,  // ties go away from zero
    FaultSubnormal = 2,  // subnormal operands count as zero
    FaultSticky    = 3   // what the aligner shifts out is lost
  } fault_e;

  localparam int Lanes = 4;
  localparam int FractionBits = 13;              // of the register
  localparam int KeptBits = FractionBits + 2;    // below the largest exponent: guard and sticky, too
  localparam int AddendBits = KeptBits + 2;      // products are below 4
  localparam int SumBits = AddendBits + 4;       // five addends, and a sign

  localparam logic [31:0] NanCode = 32'h7fc00000;
  localparam int MinExponent = -126;

  typedef struct packed {
    logic       sign;
    logic [3:0] exponent;
    logic [2:0] fraction;
  } e4m3_t;

  // A finite addend: (-1)^sign * significand * 2^(exponent - 23), the significand below 2^25.
  typedef struct packed {
    logic               sign;
    logic signed [9:0]  exponent;
    logic        [24:0] significand;
  } addend_t;
endpackage
// verilator lint_on DECLFILENAME

module fp8_mac
  import fp8_mac_pkg::*;
#(
  parameter int Fault = int'(FaultNone)
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  // c_i starts a sum, in place of products.
  input  logic                  load_i,
  input  logic           [31:0] c_i,
  input  logic                  valid_i,
  input  e4m3_t     [Lanes-1:0] a_i,
  input  e4m3_t     [Lanes-1:0] b_i,
  output logic           [31:0] acc_o
);

  // --- operands ---------------------------------------------------------------------------------

  // 1.fff, or 0.fff of subnormal numbers.
  function automatic logic [3:0] significand(logic [3:0] exponent, logic [2:0] fraction);
    if (exponent == 4'd0) return Fault == int'(FaultSubnormal) ? 4'd0 : {1'b0, fraction};
    return {1'b1, fraction};
  endfunction

  // Subnormal numbers have the exponent of the smallest normal one.
  function automatic logic signed [9:0] unbiased(logic [7:0] exponent, logic signed [9:0] bias);
    return (exponent == 8'd0 ? 10'sd1 : $signed({2'd0, exponent})) - bias;
  endfunction

  addend_t [Lanes:0] addend;
  logic has_nan, has_infinity;

  always_comb begin
    has_nan = 1'b0;
    for (int i = 0; i < Lanes; i++) begin
      addend[i].sign = a_i[i].sign ^ b_i[i].sign;
      addend[i].exponent = unbiased({4'd0, a_i[i].exponent}, 10'sd7) + unbiased({4'd0, b_i[i].exponent}, 10'sd7);
      // 6 fraction bits become 23.
      addend[i].significand = {8'(significand(a_i[i].exponent, a_i[i].fraction)) *
                               8'(significand(b_i[i].exponent, b_i[i].fraction)), 17'd0};
      has_nan |= &{a_i[i].exponent, a_i[i].fraction} | &{b_i[i].exponent, b_i[i].fraction};
    end
    addend[Lanes].sign = acc_o[31];
    addend[Lanes].exponent = unbiased(acc_o[30:23], 10'sd127);
    addend[Lanes].significand = {1'b0, acc_o[30:23] != 8'd0, acc_o[22:0]};
    has_infinity = acc_o[30:0] == 31'h7f800000;
    has_nan |= acc_o[30:23] == 8'hff && acc_o[22:0] != '0;
  end

  // --- alignment to the largest exponent, and the sum -------------------------------------------

  logic signed [9:0] largest;
  logic signed [SumBits-1:0] sum;

  // The upper bits, shifted right; what is lost is jammed into the last bit.
  function automatic logic [AddendBits-1:0] align(logic [24:0] addend_significand, logic [9:0] shift);
    logic [24+AddendBits:0] wide;
    wide = {addend_significand, {AddendBits{1'b0}}} >> (shift > 10'(AddendBits) ? 10'(AddendBits) : shift);
    align = wide[24+AddendBits-:AddendBits];
    if (Fault != int'(FaultSticky)) align[0] |= wide[24:0] != '0;
  endfunction

  always_comb begin
    largest = 10'(MinExponent);
    for (int i = 0; i <= Lanes; i++) begin
      if (addend[i].significand != '0 && addend[i].exponent > largest) largest = addend[i].exponent;
    end
    sum = '0;
    for (int i = 0; i <= Lanes; i++) begin
      automatic logic signed [SumBits-1:0] aligned;
      aligned = SumBits'(align(addend[i].significand, 10'(largest - addend[i].exponent)));
      sum += addend[i].sign ? -aligned : aligned;
    end
  end

  // --- rounding to 14 significant bits ----------------------------------------------------------

  function automatic int leading_one(logic [SumBits:0] value);
    leading_one = 0;
    for (int i = 0; i <= SumBits; i++) begin
      if (value[i]) leading_one = i;
    end
  endfunction

  logic [SumBits:0] magnitude, kept, rounded;
  logic guard, sticky, round_up;
  int cut, top, exponent;  // exponent: of the leading one
  logic [31:0] result;

  always_comb begin
    magnitude = sum[SumBits-1] ? {1'b0, -sum} : {1'b0, sum};
    // Bits below the last one of the register; subnormal numbers have fewer.
    cut = leading_one(magnitude) - FractionBits;
    if (cut < KeptBits - FractionBits + MinExponent - int'(largest)) cut = KeptBits - FractionBits + MinExponent - int'(largest);
    if (cut < 0) cut = 0;
    kept = magnitude >> cut;
    guard = cut > 0 && magnitude[cut-1];
    sticky = cut > 1 && (magnitude & (((SumBits+1)'(1) << (cut - 1)) - 1'b1)) != '0;
    round_up = guard & (sticky | kept[0] | (Fault == int'(FaultTies)));
    rounded = (kept + (SumBits+1)'(round_up)) << cut;

    top = leading_one(rounded);
    exponent = int'(largest) - KeptBits + top;
    result[31] = sum[SumBits-1];
    if (exponent > 127) begin
      result[30:0] = 31'h7f800000;
    end else if (exponent >= MinExponent) begin
      result[30:23] = 8'(exponent + 127);
      result[22:0] = 23'(31'(rounded) << (23 - top));
    end else begin
      result[30:0] = 31'(rounded) << (int'(largest) - KeptBits + 149);
    end
    if (rounded == '0) result = '0;
    if (has_infinity) result = acc_o;
    if (has_nan) result = NanCode;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      acc_o <= '0;
    end else if (load_i) begin
      acc_o <= c_i;
    end else if (valid_i) begin
      acc_o <= result;
    end
  end

endmodule
