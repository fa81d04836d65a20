// A UVM predictor, part of numemu_pkg where NUMEMU_UVM is defined; uvm_macros.svh and uvm_pkg come first.

  // One transaction: the fields of an operation by their numbers.
  class numemu_item extends uvm_sequence_item;
    vector_t value[MOST_FIELDS];

    `uvm_object_utils(numemu_item)

    function new(string name = "numemu_item");
      super.new(name);
    endfunction
  endclass

  // Takes what a monitor saw at the inputs; sends the same with the expected results.
  class numemu_predictor extends uvm_subscriber #(numemu_item);
    // Set before the first transaction.
    numemu_operation                 operation;
    uvm_analysis_port #(numemu_item) expected_port;

    `uvm_component_utils(numemu_predictor)

    function new(string name, uvm_component parent);
      super.new(name, parent);
    endfunction

    virtual function void build_phase(uvm_phase phase);
      uvm_component self;
      super.build_phase(phase);
      self = this;  // arguments of new must have their very class in Verilator 5.006
      expected_port = new("expected_port", self);
    endfunction

    virtual function void write(numemu_item t);
      numemu_item expected;
      // The factory's type_id::create() is beyond Verilator 5.006.
      expected = new("expected");
      for (int f = 0; f < operation.fields(); f++) begin
        expected.value[f] = t.value[f];
        operation.set(f, t.value[f]);
      end
      if (!operation.compute()) begin
        `uvm_error("NUMEMU", numemu_sv_message())
        return;
      end
      for (int f = 0; f < operation.fields(); f++) begin
        if (operation.is_result(f)) operation.get(f, expected.value[f]);
      end
      expected_port.write(expected);
    endfunction
  endclass
