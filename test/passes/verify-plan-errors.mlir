// RUN: gpuc-opt %s -split-input-file --plan-verify -verify-diagnostics

// Two buffers that are live at once share bytes: c reads what b has overwritten.
plan.arena 192 bytes, variables at 0x0, workspace at 0x0, inputs at 0xC0, slots 1, lower_bound 192
plan.kernel @make () { %0 = gpuc.constant 1.0 : tensor<16xf32> gpuc.yield %0 : tensor<16xf32> }
plan.kernel @add (%a: tensor<16xf32>, %b: tensor<16xf32>) {
  %0 = gpuc.add %a, %b : tensor<16xf32>
  gpuc.yield %0 : tensor<16xf32>
}
plan.program @f {
  %a = plan.buffer "a" : tensor<16xf32> activation at 0x0
  // expected-note @+1 {{the buffer that lies there}}
  %b = plan.buffer "b" : tensor<16xf32> activation at 0x0
  %c = plan.buffer "c" : tensor<16xf32> activation at 0x40
  plan.stream "compute" {
    plan.launch @make() -> (%a)
    plan.launch @make() -> (%b)
    // expected-error @+1 {{reads a [0x0, 0x40), which b has overwritten}}
    plan.launch @add(%a, %b) -> (%c)
  }
}

// -----

// Nothing writes a.
plan.arena 128 bytes, variables at 0x0, workspace at 0x0, inputs at 0x80, slots 1, lower_bound 128
plan.kernel @copy (%a: tensor<16xf32>) { gpuc.yield %a : tensor<16xf32> }
plan.program @f {
  %a = plan.buffer "a" : tensor<16xf32> activation at 0x0
  %b = plan.buffer "b" : tensor<16xf32> activation at 0x40
  plan.stream "compute" {
    // expected-error @+1 {{reads a [0x0, 0x40) before anything in this step has written it}}
    plan.launch @copy(%a) -> (%b)
  }
}

// -----

// A buffer over a variable: no harm in the first step, but the second finds the variable gone.
plan.arena 64 bytes, variables at 0x0, workspace at 0x40, inputs at 0x40, slots 1, lower_bound 64
plan.variable @w : tensor<16xf32> "parameter" init zeros at 0x0
plan.kernel @negate (%a: tensor<16xf32>) {
  %0 = gpuc.neg %a : tensor<16xf32>
  gpuc.yield %0 : tensor<16xf32>
}
plan.program @f {
  %w = plan.use @w : tensor<16xf32> parameter
  // expected-note @+1 {{the buffer that lies there}}
  %b = plan.buffer "b" : tensor<16xf32> activation at 0x0
  plan.stream "compute" {
    // expected-error @+1 {{reads w [0x0, 0x40), which b has overwritten}}
    plan.launch @negate(%w) -> (%b)
  }
}

// -----

// Compute does not wait for the upload.
plan.arena 192 bytes, variables at 0x0, workspace at 0x0, inputs at 0x40, slots 2, lower_bound 192
plan.kernel @copy (%a: tensor<16xf32>) { gpuc.yield %a : tensor<16xf32> }
plan.program @f {
  %x = plan.input "x" : tensor<16xf32> at 0x40 stride 64
  %y = plan.buffer "y" : tensor<16xf32> activation at 0x0
  %free = plan.event "slot_free"
  plan.stream "compute" {
    // expected-note @+1 {{the other command}}
    plan.launch @copy(%x) -> (%y)
    plan.record %free
  }
  plan.stream "copy" {
    plan.wait %free distance 2
    // expected-error @+1 {{writes x [0x40, 0x80) while another stream reads x [0x40, 0x80): no event orders them}}
    plan.upload %x
  }
}

// -----

// The upload of step 2 does not wait for step 0, which used its slot.
plan.arena 192 bytes, variables at 0x0, workspace at 0x0, inputs at 0x40, slots 2, lower_bound 192
plan.kernel @copy (%a: tensor<16xf32>) { gpuc.yield %a : tensor<16xf32> }
plan.program @f {
  %x = plan.input "x" : tensor<16xf32> at 0x40 stride 64
  %y = plan.buffer "y" : tensor<16xf32> activation at 0x0
  %ready = plan.event "batch_ready"
  plan.stream "compute" {
    plan.wait %ready
    // expected-note @+1 {{the other command}}
    plan.launch @copy(%x) -> (%y)
  }
  plan.stream "copy" {
    // expected-error @+1 {{writes x [0x40, 0x80) while another stream reads x [0x40, 0x80): no event orders them}}
    plan.upload %x
    plan.record %ready
  }
}

// -----

// Each stream waits for the other: neither begins.
plan.arena 64 bytes, variables at 0x0, workspace at 0x0, inputs at 0x40, slots 1, lower_bound 64
plan.program @f {
  %a = plan.event "a"
  %b = plan.event "b"
  plan.stream "compute" {
    // expected-error @+1 {{can never return: what it waits for comes behind it}}
    plan.wait %a
    plan.record %b
  }
  plan.stream "copy" {
    plan.wait %b
    plan.record %a
  }
}

// -----

// A result lies askew over its operand.
plan.arena 128 bytes, variables at 0x0, workspace at 0x0, inputs at 0x80, slots 1, lower_bound 128
plan.kernel @make () { %0 = gpuc.constant 1.0 : tensor<32xf32> gpuc.yield %0 : tensor<32xf32> }
plan.kernel @head (%a: tensor<32xf32>) {
  %0 = gpuc.slice %a starts [0] limits [16] strides [1] : (tensor<32xf32>) -> tensor<16xf32>
  gpuc.yield %0 : tensor<16xf32>
}
plan.program @f {
  %a = plan.buffer "a" : tensor<32xf32> activation at 0x0
  %b = plan.buffer "b" : tensor<16xf32> activation at 0x40
  plan.stream "compute" {
    plan.launch @make() -> (%a)
    // expected-error @+1 {{accesses overlapping bytes at once: a [0x0, 0x80) and b [0x40, 0x80)}}
    plan.launch @head(%a) -> (%b)
  }
}

// -----

// An output is overwritten before the program ends.
plan.arena 64 bytes, variables at 0x0, workspace at 0x0, inputs at 0x40, slots 1, lower_bound 64
plan.kernel @make () { %0 = gpuc.constant 1.0 : tensor<16xf32> gpuc.yield %0 : tensor<16xf32> }
plan.program @f {
  %a = plan.buffer "a" : tensor<16xf32> activation at 0x0
  // expected-note @+1 {{the buffer that lies there}}
  %b = plan.buffer "b" : tensor<16xf32> activation at 0x0
  plan.stream "compute" {
    plan.launch @make() -> (%a)
    plan.launch @make() -> (%b)
  }
  // expected-error @+1 {{reads a [0x0, 0x40), which b has overwritten}}
  plan.output "a" %a
}

// -----

// Beyond the end of the arena.
plan.arena 64 bytes, variables at 0x0, workspace at 0x0, inputs at 0x40, slots 1, lower_bound 64
plan.kernel @make () { %0 = gpuc.constant 1.0 : tensor<16xf32> gpuc.yield %0 : tensor<16xf32> }
plan.program @f {
  %a = plan.buffer "a" : tensor<16xf32> activation at 0x40
  plan.stream "compute" {
    // expected-error @+1 {{touches a at bytes [64, 128) of an arena of 64}}
    plan.launch @make() -> (%a)
  }
}

// -----

// Not aligned.
plan.arena 128 bytes, variables at 0x0, workspace at 0x0, inputs at 0x80, slots 1, lower_bound 64
plan.kernel @make () { %0 = gpuc.constant 1.0 : tensor<16xf32> gpuc.yield %0 : tensor<16xf32> }
plan.program @f {
  %a = plan.buffer "a" : tensor<16xf32> activation at 0x4
  plan.stream "compute" {
    // expected-error @+1 {{uses a at 0x4, which is no multiple of 64}}
    plan.launch @make() -> (%a)
  }
}

// -----

// Shorter than a line, and less aligned than the power of two that holds it.
plan.arena 128 bytes, variables at 0x0, workspace at 0x0, inputs at 0x80, slots 1, lower_bound 64
plan.kernel @make () { %0 = gpuc.constant 1.0 : tensor<5xf32> gpuc.yield %0 : tensor<5xf32> }
plan.program @f {
  %a = plan.buffer "a" : tensor<5xf32> activation at 0x10
  plan.stream "compute" {
    // expected-error @+1 {{uses a at 0x10, which is no multiple of 32}}
    plan.launch @make() -> (%a)
  }
}

// -----

// A repeat that fills three of four pieces.
plan.arena 512 bytes, variables at 0x0, workspace at 0x0, inputs at 0x200, slots 1, lower_bound 512
plan.kernel @make () { %0 = gpuc.constant 1.0 : tensor<16xf32> gpuc.yield %0 : tensor<16xf32> }
plan.kernel @copy (%a: tensor<64xf32>) { gpuc.yield %a : tensor<64xf32> }
plan.program @f {
  %stack = plan.buffer "stack" : tensor<64xf32> activation at 0x0
  %y = plan.buffer "y" : tensor<64xf32> activation at 0x100
  %piece = plan.view %stack[0] strides [64] : tensor<16xf32>
  plan.stream "compute" {
    plan.repeat 3 {
      plan.launch @make() -> (%piece)
    }
    // expected-error @+1 {{reads stack [0x0, 0x100) before anything in this step has written it}}
    plan.launch @copy(%stack) -> (%y)
  }
}

// -----

// Iteration i reads slot i + 1 before it is written: only slot 0 is there before the loop.
plan.arena 640 bytes, variables at 0x0, workspace at 0x0, inputs at 0x280, slots 1, lower_bound 640
plan.kernel @make () { %0 = gpuc.constant 1.0 : tensor<16xf32> gpuc.yield %0 : tensor<16xf32> }
plan.kernel @copy (%a: tensor<16xf32>) { gpuc.yield %a : tensor<16xf32> }
plan.program @f {
  %h = plan.buffer "h" : tensor<10x16xf32> activation at 0x0
  %first = plan.view %h[0] : tensor<16xf32>
  plan.stream "compute" {
    plan.launch @make() -> (%first)
    plan.repeat 8 {
      %in = plan.view %h[64] strides [64] : tensor<16xf32>
      %out = plan.view %h[128] strides [64] : tensor<16xf32>
      // expected-error @+1 {{reads h [0x40, 0x80) before anything in this step has written it}}
      plan.launch @copy(%in) -> (%out)
    }
  }
}

// -----

// All goes well but in the last iteration, in which the stack would be left.
plan.arena 576 bytes, variables at 0x0, workspace at 0x0, inputs at 0x240, slots 1, lower_bound 576
plan.kernel @make () { %0 = gpuc.constant 1.0 : tensor<16xf32> gpuc.yield %0 : tensor<16xf32> }
plan.program @f {
  %h = plan.buffer "h" : tensor<8x16xf32> activation at 0x0
  %other = plan.buffer "other" : tensor<16xf32> activation at 0x200
  plan.stream "compute" {
    plan.repeat 9 {
      %out = plan.view %h[0] strides [64] : tensor<16xf32>
      // expected-error @+1 {{touches bytes [0, 576) of h, which has 512}}
      plan.launch @make() -> (%out)
    }
  }
}

// -----

// What one iteration leaves for the next lies where a value of one iteration only is written: the second iteration finds
// that instead.
plan.arena 128 bytes, variables at 0x0, workspace at 0x0, inputs at 0x80, slots 1, lower_bound 128
plan.kernel @make () { %0 = gpuc.constant 1.0 : tensor<16xf32> gpuc.yield %0 : tensor<16xf32> }
plan.kernel @copy (%a: tensor<16xf32>) { gpuc.yield %a : tensor<16xf32> }
plan.program @f {
  %c = plan.buffer "c" : tensor<16xf32> activation at 0x0
  // expected-note @+1 {{the buffer that lies there}}
  %t = plan.buffer "t" : tensor<16xf32> activation at 0x0
  %y = plan.buffer "y" : tensor<16xf32> activation at 0x40
  plan.stream "compute" {
    plan.launch @make() -> (%c)
    plan.repeat 1000000 {
      // expected-error @+1 {{reads c [0x0, 0x40), which t has overwritten}}
      plan.launch @copy(%c) -> (%y)
      plan.launch @copy(%y) -> (%t)
    }
  }
}

// -----

// The second cotangent begins within the first one's piece of a row.
plan.arena 1536 bytes, variables at 0x0, workspace at 0x0, inputs at 0x600, slots 1, lower_bound 1536
plan.kernel @make () { %0 = gpuc.constant 1.0 : tensor<48xf32> gpuc.yield %0 : tensor<48xf32> }
plan.kernel @logs () { %0 = gpuc.constant 1.0 : tensor<12xf32> gpuc.yield %0 : tensor<12xf32> }
plan.program @meet {
  %q = plan.buffer "q" : tensor<48xf32> activation at 0x0
  %log = plan.buffer "log" : tensor<12xf32> activation at 0x100
  %all = plan.buffer "all" : tensor<2x3x24xf32> activation at 0x200
  %dq = plan.view %all[0] : tensor<128xf32>
  %dk = plan.view %all[16] : tensor<128xf32>
  %dv = plan.view %all[64] : tensor<128xf32>
  plan.stream "compute" {
    plan.launch @make() -> (%q)
    plan.launch @logs() -> (%log)
    // expected-error @+1 {{writes all [0x200, 0x400) with gaps that its other results do not fill}}
    plan.attention_gradient %q of %q, %log query %q key %q value %q -> %dq, %dk, %dv : f32 batch 2 heads 2 groups 2 queries 3 keys 3 width 4 value_width 4 scale 0.5 strides [24, 12, 4, 24, 12, 4, 24, 12, 4, 24, 12, 4, 24, 12, 4, 72, 4, 24, 72, 4, 24, 72, 4, 24]
  }
  plan.output "d" %all
}

// -----

// The last third of each row is written by nothing: the third cotangent lies elsewhere.
plan.arena 1536 bytes, variables at 0x0, workspace at 0x0, inputs at 0x600, slots 1, lower_bound 1536
plan.kernel @make () { %0 = gpuc.constant 1.0 : tensor<48xf32> gpuc.yield %0 : tensor<48xf32> }
plan.kernel @logs () { %0 = gpuc.constant 1.0 : tensor<12xf32> gpuc.yield %0 : tensor<12xf32> }
plan.program @gap {
  %q = plan.buffer "q" : tensor<48xf32> activation at 0x0
  %log = plan.buffer "log" : tensor<12xf32> activation at 0x100
  %all = plan.buffer "all" : tensor<2x3x24xf32> activation at 0x200
  %dq = plan.view %all[0] : tensor<128xf32>
  %dk = plan.view %all[32] : tensor<128xf32>
  %dv = plan.buffer "dv" : tensor<48xf32> activation at 0x480
  plan.stream "compute" {
    plan.launch @make() -> (%q)
    plan.launch @logs() -> (%log)
    // expected-error @+1 {{writes all [0x200, 0x400) with gaps that its other results do not fill}}
    plan.attention_gradient %q of %q, %log query %q key %q value %q -> %dq, %dk, %dv : f32 batch 2 heads 2 groups 2 queries 3 keys 3 width 4 value_width 4 scale 0.5 strides [24, 12, 4, 24, 12, 4, 24, 12, 4, 24, 12, 4, 24, 12, 4, 72, 4, 24, 72, 4, 24, 24, 12, 4]
  }
  plan.output "d" %all
}

// -----

// Two heads that do not adjoin: no piece of a row.
plan.arena 1536 bytes, variables at 0x0, workspace at 0x0, inputs at 0x600, slots 1, lower_bound 1536
plan.kernel @make () { %0 = gpuc.constant 1.0 : tensor<48xf32> gpuc.yield %0 : tensor<48xf32> }
plan.kernel @logs () { %0 = gpuc.constant 1.0 : tensor<12xf32> gpuc.yield %0 : tensor<12xf32> }
plan.program @apart {
  %q = plan.buffer "q" : tensor<48xf32> activation at 0x0
  %log = plan.buffer "log" : tensor<12xf32> activation at 0x100
  %all = plan.buffer "all" : tensor<2x3x24xf32> activation at 0x200
  %dq = plan.view %all[0] : tensor<132xf32>
  %dk = plan.view %all[32] : tensor<132xf32>
  %dv = plan.buffer "dv" : tensor<48xf32> activation at 0x480
  plan.stream "compute" {
    plan.launch @make() -> (%q)
    plan.launch @logs() -> (%log)
    // expected-error @+1 {{writes all [0x200, 0x410) with gaps that its other results do not fill}}
    plan.attention_gradient %q of %q, %log query %q key %q value %q -> %dq, %dk, %dv : f32 batch 2 heads 2 groups 2 queries 3 keys 3 width 4 value_width 4 scale 0.5 strides [24, 12, 4, 24, 12, 4, 24, 12, 4, 24, 12, 4, 24, 12, 4, 72, 8, 24, 72, 8, 24, 24, 12, 4]
  }
  plan.output "d" %all
}

// -----

// Both parts write where the second one reads.
plan.arena 192 bytes, variables at 0x0, workspace at 0x0, inputs at 0xC0, slots 1, lower_bound 192
plan.kernel @make () { %0 = gpuc.constant 1.0 : tensor<16xf32> gpuc.yield %0 : tensor<16xf32> }
plan.kernel @copy (%a: tensor<16xf32>) { gpuc.yield %a : tensor<16xf32> }
plan.program @f {
  %a = plan.buffer "a" : tensor<16xf32> activation at 0x0
  %b = plan.buffer "b" : tensor<2x16xf32> activation at 0x40
  plan.stream "compute" {
    // expected-error @+1 {{has parts that may meet: the result a [0x0, 0x40) and the result a [0x0, 0x40)}}
    plan.parallel 2 {
      %part = plan.view %b[0] strides [64] : tensor<16xf32>
      plan.launch @make() -> (%a)
      plan.launch @copy(%a) -> (%part)
    }
  }
}

// -----

// A place for each of three parts, of which the last reads that of the second.
plan.arena 640 bytes, variables at 0x0, workspace at 0x0, inputs at 0x280, slots 1, lower_bound 640
plan.kernel @make () { %0 = gpuc.constant 1.0 : tensor<16xf32> gpuc.yield %0 : tensor<16xf32> }
plan.kernel @copy (%a: tensor<16xf32>) { gpuc.yield %a : tensor<16xf32> }
plan.program @f {
  %a = plan.buffer "a" : tensor<7x16xf32> activation at 0x0
  %b = plan.buffer "b" : tensor<3x16xf32> activation at 0x1C0
  %all = plan.view %a[0] strides [64] : tensor<16xf32>
  plan.stream "compute" {
    plan.repeat 7 {
      plan.launch @make() -> (%all)
    }
    // expected-error @+1 {{has parts that may meet: the result a [0x0, 0x40) and the operand a [0x140, 0x180)}}
    plan.parallel 3 {
      %mine = plan.view %a[0] strides [64] : tensor<16xf32>
      %twice = plan.view %a[320] strides [-128] : tensor<16xf32>
      %part = plan.view %b[0] strides [64] : tensor<16xf32>
      plan.launch @make() -> (%mine)
      plan.launch @copy(%twice) -> (%part)
    }
  }
}

// -----

// Each part reads what the next one writes.
plan.arena 448 bytes, variables at 0x0, workspace at 0x0, inputs at 0x1C0, slots 1, lower_bound 448
plan.kernel @make () { %0 = gpuc.constant 1.0 : tensor<16xf32> gpuc.yield %0 : tensor<16xf32> }
plan.kernel @copy (%a: tensor<16xf32>) { gpuc.yield %a : tensor<16xf32> }
plan.program @f {
  %a = plan.buffer "a" : tensor<4x16xf32> activation at 0x0
  %b = plan.buffer "b" : tensor<3x16xf32> activation at 0x100
  %all = plan.view %a[0] strides [64] : tensor<16xf32>
  plan.stream "compute" {
    plan.repeat 4 {
      plan.launch @make() -> (%all)
    }
    // expected-error @+1 {{has parts that may meet: the result a [0x0, 0x40) and the operand a [0x40, 0x80)}}
    plan.parallel 3 {
      %mine = plan.view %a[0] strides [64] : tensor<16xf32>
      %next = plan.view %a[64] strides [64] : tensor<16xf32>
      %part = plan.view %b[0] strides [64] : tensor<16xf32>
      plan.launch @copy(%next) -> (%part)
      plan.launch @make() -> (%mine)
    }
  }
}

// -----

// What is written is read half a row further on.
plan.arena 640 bytes, variables at 0x0, workspace at 0x0, inputs at 0x280, slots 1, lower_bound 640
plan.kernel @copy (%a: tensor<4x16xf32>) attributes {rows = 4 : i64, by_rows = array<i64: 0, 1>} { gpuc.yield %a : tensor<4x16xf32> }
plan.kernel @make () { %0 = gpuc.constant 1.0 : tensor<80xf32> gpuc.yield %0 : tensor<80xf32> }
plan.program @f {
  %a = plan.buffer "a" : tensor<80xf32> activation at 0x0
  %b = plan.buffer "b" : tensor<4x16xf32> activation at 0x140
  %first = plan.view %a[0] : tensor<4x16xf32>
  %later = plan.view %a[32] : tensor<4x16xf32>
  plan.stream "compute" {
    plan.launch @make() -> (%a)
    // expected-error @+1 {{has parts that may meet: the operand a [0x0, 0x100) and the result a [0x20, 0x120)}}
    plan.parallel rows 4 {
      plan.repeat 2 {
        plan.launch @copy(%first) -> (%b)
        plan.launch @copy(%b) -> (%later)
      }
    }
  }
}

// -----

// A product of four rows has no thirds.
plan.arena 512 bytes, variables at 0x0, workspace at 0x0, inputs at 0x200, slots 1, lower_bound 512
plan.program @f {
  %a = plan.buffer "a" : tensor<4x4xf32> activation at 0x0
  %b = plan.buffer "b" : tensor<4x4xf32> activation at 0x40
  %c = plan.buffer "c" : tensor<4x4xf32> activation at 0x80
  plan.stream "compute" {
    plan.fill %a with 1.0 : f32
    plan.fill %b with 1.0 : f32
    // expected-error @+1 {{of 3 parts by the rows of commands that have 4 in common}}
    plan.parallel rows 3 {
      plan.matmul %a, %b -> %c : f32 batch 1 m 4 n 4 k 4
    }
  }
}

// -----

// A gradient is packed into what is summed over ranks.
plan.arena 256 bytes, variables at 0x0, workspace at 0x0, inputs at 0x100, slots 1, lower_bound 256
plan.kernel @make () { %0 = gpuc.constant 1.0 : tensor<16xf32> gpuc.yield %0 : tensor<16xf32> }
plan.program @f {
  %bucket = plan.buffer "bucket0" : tensor<16xf32> gradient at 0x0
  %g = plan.buffer "g" : tensor<16xf32> gradient at 0x40
  %part = plan.view %bucket[0] : tensor<16xf32>
  plan.stream "compute" {
    plan.launch @make() -> (%g)
    // expected-error @+1 {{packs what is summed over ranks in 'bucket0': let it be a view of that}}
    plan.copy %g -> %part
    plan.all_reduce %bucket -> %bucket : f32
  }
}

// -----

// And unpacked.
plan.arena 256 bytes, variables at 0x0, workspace at 0x0, inputs at 0x100, slots 1, lower_bound 256
plan.kernel @make () { %0 = gpuc.constant 1.0 : tensor<16xf32> gpuc.yield %0 : tensor<16xf32> }
plan.program @f {
  %bucket = plan.buffer "bucket0" : tensor<16xf32> gradient at 0x0
  %g = plan.buffer "g" : tensor<16xf32> gradient at 0x40
  plan.stream "compute" {
    plan.launch @make() -> (%bucket)
    plan.all_reduce %bucket -> %bucket : f32
    // expected-error @+1 {{unpacks what is summed over ranks in 'bucket0': let it be a view of that}}
    plan.copy %bucket -> %g
  }
}
