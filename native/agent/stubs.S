/* The stubs of hooks.def: an exported name that asks stub_target where its caller's call belongs, and jumps there.
 *
 * A slot per name would be faster and wrong: libraries that are opened RTLD_LOCAL each have their own ExecuTorch,
 * or XNNPACK, under the same names. These calls are rare, a few per inference.
 */
#if !defined(__x86_64__)
#error "stubs.S: only x86-64 is written"
#endif

    .text
    .set etmem_stub_count, 0

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

#define ETMEM_STUB(name, symbol) ETMEM_DEFINE_STUB symbol
#include "hooks.def"

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

    .section .note.GNU-stack, "", @progbits
