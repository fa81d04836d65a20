// The classes of UVM that numemu_uvm.svh uses, in 40 lines: names and order of arguments are those of UVM 1.2.
package uvm_pkg;
  class uvm_object;
    string m_name;
    function new(string name = "");
      m_name = name;
    endfunction
  endclass

  class uvm_sequence_item extends uvm_object;
    function new(string name = "");
      super.new(name);
    endfunction
  endclass

  class uvm_component extends uvm_object;
    function new(string name, uvm_component parent);
      super.new(name);
    endfunction
  endclass

  class uvm_subscriber #(type T = int) extends uvm_component;
    function new(string name, uvm_component parent);
      super.new(name, parent);
    endfunction
    virtual function void write(T t);
    endfunction
  endclass

  // UVM connects to subscriber.analysis_export.
  class uvm_analysis_port #(type T = int) extends uvm_component;
    uvm_subscriber #(T) readers[$];
    function new(string name, uvm_component parent);
      super.new(name, parent);
    endfunction
    function void connect(uvm_subscriber #(T) reader);
      readers.push_back(reader);
    endfunction
    function void write(T t);
      foreach (readers[i]) readers[i].write(t);
    endfunction
  endclass
endpackage
