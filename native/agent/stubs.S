/* The stubs of hooks.def: an exported name that asks stub_target where its caller's call belongs, and jumps there.
 *
 * A slot per name would be faster and wrong: libraries that are opened RTLD_LOCAL each have their own ExecuTorch,
 * or XNNPACK, under the same names. These calls are rare, a few per inference.
 */
    .text
    .set etmem_stub_count, 0

#if defined(__x86_64__)

    .macro ETMEM_DEFINE_STUB symbol
    .globl \symbol
    .type \symbol, @function
\symbol:
    .cfi_startproc
    endbr64
    push $etmem_stub_count
    .cfi_adjust_cfa_offset 8
    jmp etmem_stub_common
    .cfi_endproc
    .size \symbol, . - \symbol
    .set etmem_stub_count, etmem_stub_count + 1
    .endm

#elif defined(__aarch64__)

    .macro ETMEM_DEFINE_STUB symbol
    .globl \symbol
    .type \symbol, @function
\symbol:
    .cfi_startproc
    hint #34                   /* bti c */
    mov w17, #etmem_stub_count
    b etmem_stub_common
    .cfi_endproc
    .size \symbol, . - \symbol
    .set etmem_stub_count, etmem_stub_count + 1
    .endm

#else
#error "stubs.S: written for x86-64 and aarch64"
#endif

#define ETMEM_STUB(name, symbol) ETMEM_DEFINE_STUB symbol
#include "hooks.def"

#if defined(__x86_64__)

    .type etmem_stub_common, @function
etmem_stub_common:
    .cfi_startproc
    .cfi_def_cfa_offset 16
    push %rbp
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset rbp, 0
    mov %rsp, %rbp
    .cfi_def_cfa_register rbp
    and $-16, %rsp
    sub $192, %rsp
    mov %rdi, 0(%rsp)
    mov %rsi, 8(%rsp)
    mov %rdx, 16(%rsp)
    mov %rcx, 24(%rsp)
    mov %r8, 32(%rsp)
    mov %r9, 40(%rsp)
    mov %rax, 48(%rsp)
    movups %xmm0, 64(%rsp)
    movups %xmm1, 80(%rsp)
    movups %xmm2, 96(%rsp)
    movups %xmm3, 112(%rsp)
    movups %xmm4, 128(%rsp)
    movups %xmm5, 144(%rsp)
    movups %xmm6, 160(%rsp)
    movups %xmm7, 176(%rsp)
    mov 8(%rbp), %edi          /* which stub */
    mov 16(%rbp), %rsi         /* who called it */
    call etmem_stub_target
    mov %rax, %r11
    mov 0(%rsp), %rdi
    mov 8(%rsp), %rsi
    mov 16(%rsp), %rdx
    mov 24(%rsp), %rcx
    mov 32(%rsp), %r8
    mov 40(%rsp), %r9
    mov 48(%rsp), %rax
    movups 64(%rsp), %xmm0
    movups 80(%rsp), %xmm1
    movups 96(%rsp), %xmm2
    movups 112(%rsp), %xmm3
    movups 128(%rsp), %xmm4
    movups 144(%rsp), %xmm5
    movups 160(%rsp), %xmm6
    movups 176(%rsp), %xmm7
    leave
    .cfi_def_cfa rsp, 16
    add $8, %rsp               /* the pushed number: now as if the caller had called the target */
    .cfi_def_cfa_offset 8
    jmp *%r11
    .cfi_endproc
    .size etmem_stub_common, . - etmem_stub_common

#elif defined(__aarch64__)

    .type etmem_stub_common, @function
etmem_stub_common:
    .cfi_startproc
    stp x29, x30, [sp, #-224]!
    .cfi_def_cfa_offset 224
    .cfi_offset x29, -224
    .cfi_offset x30, -216
    mov x29, sp
    stp x0, x1, [sp, #16]
    stp x2, x3, [sp, #32]
    stp x4, x5, [sp, #48]
    stp x6, x7, [sp, #64]
    str x8, [sp, #80]          /* where a large result goes */
    stp q0, q1, [sp, #96]
    stp q2, q3, [sp, #128]
    stp q4, q5, [sp, #160]
    stp q6, q7, [sp, #192]
    mov w0, w17                /* which stub */
    mov x1, x30                /* who called it */
    bl etmem_stub_target
    mov x16, x0
    ldp x0, x1, [sp, #16]
    ldp x2, x3, [sp, #32]
    ldp x4, x5, [sp, #48]
    ldp x6, x7, [sp, #64]
    ldr x8, [sp, #80]
    ldp q0, q1, [sp, #96]
    ldp q2, q3, [sp, #128]
    ldp q4, q5, [sp, #160]
    ldp q6, q7, [sp, #192]
    ldp x29, x30, [sp], #224
    .cfi_restore x29
    .cfi_restore x30
    .cfi_def_cfa_offset 0
    br x16
    .cfi_endproc
    .size etmem_stub_common, . - etmem_stub_common

#endif

    /* In the slots of attached modules only: finds what dlopen brought, then jumps to dlsym, which looks at its
     * caller's address. */
    .globl etmem_dlsym_stub
    .hidden etmem_dlsym_stub
    .type etmem_dlsym_stub, @function
etmem_dlsym_stub:
    .cfi_startproc
#if defined(__x86_64__)
    push %rdi
    .cfi_adjust_cfa_offset 8
    push %rsi
    .cfi_adjust_cfa_offset 8
    sub $8, %rsp
    .cfi_adjust_cfa_offset 8
    call etmem_new_modules
    add $8, %rsp
    .cfi_adjust_cfa_offset -8
    pop %rsi
    .cfi_adjust_cfa_offset -8
    pop %rdi
    .cfi_adjust_cfa_offset -8
    jmp *dlsym@GOTPCREL(%rip)
#elif defined(__aarch64__)
    hint #34                   /* bti c */
    stp x29, x30, [sp, #-32]!
    .cfi_def_cfa_offset 32
    .cfi_offset x29, -32
    .cfi_offset x30, -24
    stp x0, x1, [sp, #16]
    bl etmem_new_modules
    ldp x0, x1, [sp, #16]
    ldp x29, x30, [sp], #32
    .cfi_restore x29
    .cfi_restore x30
    .cfi_def_cfa_offset 0
    adrp x16, :got:dlsym
    ldr x16, [x16, #:got_lo12:dlsym]
    br x16
#endif
    .cfi_endproc
    .size etmem_dlsym_stub, . - etmem_dlsym_stub

    .section .note.GNU-stack, "", @progbits
