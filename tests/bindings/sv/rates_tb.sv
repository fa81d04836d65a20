// +mode=M +calls=N: makes so many calls of one kind, K = 32 products each.
module rates_tb;
  import numemu_pkg::*;

  localparam int Batch = 256;
  localparam int K = 32;

  numemu_operation  unit, fma;
  numemu_scoreboard board;
  numemu_vectors    vectors;
  string            mode;
  int               calls = 0;
  vector_t          a, b;
  code_t            sum = 0;
  code_t            many_a[Batch*K], many_b[Batch*K], many_c[Batch], many_d[Batch];

  initial begin
    void'($value$plusargs("mode=%s", mode));
    void'($value$plusargs("calls=%d", calls));
    void'(numemu_sv_set_threads(1));
    unit = numemu_operation::of_unit("h100.wgmma.e4m3.f32", K);
    fma = numemu_operation::of_formats("fma", "float16");
    board = new(unit);
    for (int i = 0; i < K; i++) begin
      a[8*i+:8] = 8'(48 + i);
      b[8*i+:8] = 8'(56 + i % 8);
    end
    for (int i = 0; i < Batch * K; i++) begin
      many_a[i] = code_t'(a[8*(i%K)+:8]);
      many_b[i] = code_t'(b[8*(i%K)+:8]);
    end
    sum = unit.dot(a, b);
    vectors = new(unit, "random", longint'(calls));
    case (mode)
      "scalar": for (int i = 0; i < calls; i++) sum += fma.scalar('h3c00, 'h4000, code_t'(i) & 'h3ff);
      "packed": for (int i = 0; i < calls; i++) sum += unit.dot(a, b, code_t'(i));
      "check":
      for (int i = 0; i < calls; i++) begin
        unit.set(0, a);
        unit.set(1, b);
        unit.set(2, '0);
        void'(board.check(VECTOR_BITS'(unit.code(3))));
      end
      "array":
      for (int i = 0; i < calls; i += Batch) begin
        many_c[0] = code_t'(i);
        if (numemu_sv_dots(unit.handle, many_a, many_b, many_c, many_d) != 0) $fatal(1, "%s", numemu_sv_message());
        sum += many_d[0];
      end
      "vectors": while (vectors.next()) sum += unit.code(3);
      default: ;
    endcase
    $display("%s: %0d calls, sum %h", mode, calls, sum);
    $finish;
  end
endmodule
