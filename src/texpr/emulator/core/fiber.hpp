/* Stacks and switching between them. On x86-64 and aarch64 a switch saves what the calling convention says a call keeps and
   nothing else (System V AMD64 ABI 3.2.1, "callee-saved"; AAPCS64 6.1); the floating-point modes are never changed here.
   Elsewhere, or with TX_EMU_UCONTEXT, the C library's ucontext does it, some fifty times slower. */
#ifndef TEXPR_EMULATOR_FIBER_HPP
#define TEXPR_EMULATOR_FIBER_HPP

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#if !defined(TX_EMU_UCONTEXT) && !defined(__x86_64__) && !defined(__aarch64__)
#define TX_EMU_UCONTEXT
#endif
#if defined(TX_EMU_UCONTEXT)
#include <ucontext.h>
#endif

namespace tx_emu {

/* `top` is where a fiber starts, a little lower in each stack than in the one before, or all would meet in a few sets of the
   cache. Below `low` lies a page that nothing may touch. */
struct Stack {
    char *low = nullptr, *top = nullptr;
};

#if defined(TX_EMU_UCONTEXT)

struct Context {
    ucontext_t saved;
};

inline void start_context(Context &context, Stack stack, void (*run)()) {
    getcontext(&context.saved);
    context.saved.uc_stack.ss_sp = stack.low;
    context.saved.uc_stack.ss_size = (std::size_t)(stack.top - stack.low);
    context.saved.uc_link = nullptr;
    makecontext(&context.saved, run, 0);
}

inline void switch_context(Context &from, Context &to) { swapcontext(&from.saved, &to.saved); }

#else

struct Context {
    void *stack_pointer = nullptr;
};

extern "C" __attribute__((visibility("hidden"))) void tx_emu_switch(void **from, void *to) __asm__("tx_emu_switch");

#if defined(__APPLE__)
#define TX_EMU_ASM_HEAD ".text\n.p2align 4\n.private_extern tx_emu_switch\ntx_emu_switch:\n"
#else
#define TX_EMU_ASM_HEAD ".text\n.p2align 4\n.globl tx_emu_switch\n.hidden tx_emu_switch\ntx_emu_switch:\n"
#endif

#if defined(__x86_64__)
/* The last jump is not a `ret`: a processor predicts returns from the calls it saw, and these go elsewhere. */
__asm__(TX_EMU_ASM_HEAD
        "pushq %rbp\n pushq %rbx\n pushq %r12\n pushq %r13\n pushq %r14\n pushq %r15\n"
        "movq %rsp, (%rdi)\n movq %rsi, %rsp\n"
        "popq %r15\n popq %r14\n popq %r13\n popq %r12\n popq %rbx\n popq %rbp\n"
        "popq %rcx\n jmp *%rcx\n");

inline void start_context(Context &context, Stack stack, void (*run)()) {
    auto words = reinterpret_cast<std::uintptr_t *>(stack.top);
    *--words = 0; /* `run` never returns; this keeps the stack aligned as after a call */
    *--words = reinterpret_cast<std::uintptr_t>(run);
    for (int saved = 0; saved < 6; ++saved) *--words = 0;
    context.stack_pointer = words;
}
#else
__asm__(TX_EMU_ASM_HEAD
        "sub sp, sp, #160\n"
        "stp x19, x20, [sp, #0]\n stp x21, x22, [sp, #16]\n stp x23, x24, [sp, #32]\n stp x25, x26, [sp, #48]\n"
        "stp x27, x28, [sp, #64]\n stp x29, x30, [sp, #80]\n"
        "stp d8, d9, [sp, #96]\n stp d10, d11, [sp, #112]\n stp d12, d13, [sp, #128]\n stp d14, d15, [sp, #144]\n"
        "mov x9, sp\n str x9, [x0]\n mov sp, x1\n"
        "ldp x19, x20, [sp, #0]\n ldp x21, x22, [sp, #16]\n ldp x23, x24, [sp, #32]\n ldp x25, x26, [sp, #48]\n"
        "ldp x27, x28, [sp, #64]\n ldp x29, x30, [sp, #80]\n"
        "ldp d8, d9, [sp, #96]\n ldp d10, d11, [sp, #112]\n ldp d12, d13, [sp, #128]\n ldp d14, d15, [sp, #144]\n"
        "add sp, sp, #160\n br x30\n");

inline void start_context(Context &context, Stack stack, void (*run)()) {
    auto words = reinterpret_cast<std::uintptr_t *>(stack.top - 160);
    for (int saved = 0; saved < 20; ++saved) words[saved] = 0;
    words[11] = reinterpret_cast<std::uintptr_t>(run); /* x30 */
    context.stack_pointer = words;
}
#endif

inline void switch_context(Context &from, Context &to) { tx_emu_switch(&from.stack_pointer, to.stack_pointer); }

#endif

/* Stacks, taken and given back; the last given back is taken first, for its memory is in the cache. */
class Stacks {
  public:
    static constexpr std::size_t SIZE = 256 << 10; /* address space: pages are the machine's only once touched */
    static constexpr std::size_t AT_ONCE = 64;

    bool take(Stack &stack) {
        if (free_.empty() && !grow()) return false;
        stack = free_.back();
        free_.pop_back();
        return true;
    }

    void give(Stack stack) { free_.push_back(stack); }

    /* Whether `address` is in the page below some stack. */
    bool guards(const void *address) const {
        for (const char *region : regions_) {
            std::ptrdiff_t offset = static_cast<const char *>(address) - region;
            if (offset >= 0 && offset < (std::ptrdiff_t)(stride() * AT_ONCE)) return (std::size_t)offset % stride() < page();
        }
        return false;
    }

  private:
    std::vector<Stack> free_;
    std::vector<char *> regions_;

    static std::size_t page() {
        static const std::size_t bytes = (std::size_t)sysconf(_SC_PAGESIZE);
        return bytes;
    }
    static std::size_t stride() { return SIZE + page(); }

    bool grow() {
        int kind = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
        void *mapped = mmap(nullptr, stride() * AT_ONCE, PROT_READ | PROT_WRITE, kind, -1, 0);
        if (mapped == MAP_FAILED) return false;
        auto region = static_cast<char *>(mapped);
        regions_.push_back(region);
        for (std::size_t each = AT_ONCE; each-- > 0;) {
            char *guard = region + each * stride();
            if (mprotect(guard, page(), PROT_NONE) != 0) return false;
            std::size_t color = (regions_.size() * AT_ONCE + each) % 21 * 192;
            free_.push_back({guard + page(), guard + stride() - color});
        }
        return true;
    }
};

} // namespace tx_emu

#endif
