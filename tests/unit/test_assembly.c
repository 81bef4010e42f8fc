// Assembly made to be compared: labels, padding, constants, start-up code.
#include "cpu/assembly.h"
#include "t.h"

static void of_x86(void)
{
    static const char listing[] =
        "\n/tmp/1.so:     file format elf64-x86-64\n\n\nDisassembly of section .plt:\n\n"
        "0000000000001020 <sqrtf@plt>:\n    1020:\tjmp    *0x2fe2(%rip)        # 4008 <sqrtf@GLIBC_2.2.5>\n\n"
        "Disassembly of section .text:\n\n"
        "0000000000001050 <register_tm_clones>:\n    1050:\tret\n\n"
        "0000000000001100 <k>:\n"
        "    1100:\ttest   %edx,%edx\n"
        "    1102:\tjle    1130 <k+0x30>\n"
        "    1104:\tvmovss 0xefc(%rip),%xmm1        # 2008 <_fini+0xdf0>\n"
        "    110c:\tvmovaps -0x10(%rip),%xmm2        # 1fd0 <table>\n"
        "    1110:\tnopw   0x0(%rax,%rax,1)\n"
        "    1118:\tdata16 cs nopw 0x0(%rax,%rax,1)\n"
        "    1120:\tvfmadd213ps (%rdi,%rcx,1),%zmm7,%zmm1\n"
        "    1126:\tcall   1020 <sqrtf@plt>\n"
        "    112c:\tjne    1120 <k+0x20>\n"
        "    1130:\tret\n"
        "    1131:\txchg   %ax,%ax\n\n"
        "0000000000001140 <other>:\n    1140:\tjmp    1100 <k>\n\n"
        "Disassembly of section .fini:\n\n0000000000001218 <_fini>:\n    1218:\tret\n";
    struct str out = {0};
    assembly_x86(listing, &out);
    CHECK_STR(str_c(&out), "k:\n"
                           "    test         %edx,%edx\n"
                           "    jle          L2\n"
                           "    vmovss       const(%rip),%xmm1\n"
                           "    vmovaps      table(%rip),%xmm2\n"
                           "L1:\n"
                           "    vfmadd213ps  (%rdi,%rcx,1),%zmm7,%zmm1\n"
                           "    call         sqrtf@plt\n"
                           "    jne          L1\n"
                           "L2:\n"
                           "    ret\n"
                           "\nother:\n"
                           "    jmp          k\n");
    str_free(&out);
}

// Listings come from what candidates made: cut anywhere they must not lead outside.
static void cut_short(void)
{
    static const char listing[] =
        "Disassembly of section .text:\n\n0000000000001100 <k>:\n"
        "    1100:\tjmp    1100 <k+0x\n    1102:\tmov 0x1(%rip),%eax # 12 <a\n    11\n";
    for (size_t n = 0; n <= sizeof listing - 1; n++) {
        char *part = malloc(n + 1);
        struct str out = {0};
        memcpy(part, listing, n);
        part[n] = 0;
        assembly_x86(part, &out);
        assembly_sass(part, &out);
        CHECK(out.len < 4 * sizeof listing);
        str_free(&out);
        free(part);
    }
}

static void of_sass(void)
{
    static const char listing[] =
        "\t.headerflags\t@\"EF_CUDA_SM90\"\n.text.k:\n"
        "        /*0000*/                   LDC R1, c[0x0][0x28] ;\n"
        "        /*0010*/              @!P0 BRA `(.L_x_1) ;   /* 0x0000000000007945 */\n.L_x_1:\n";
    struct str out = {0};
    assembly_sass(listing, &out);
    CHECK_STR(str_c(&out), ".text.k:\n"
                           "                           LDC R1, c[0x0][0x28] ;\n"
                           "                      @!P0 BRA `(.L_x_1) ;\n"
                           ".L_x_1:\n");
    str_free(&out);
}

int main(void)
{
    T(of_x86);
    T(cut_short);
    T(of_sass);
    T_END;
}
