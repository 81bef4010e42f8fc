#include "base/text.h"

int text_decode(const char *s, size_t n, uint32_t *cp)
{
    const unsigned char *p = (const unsigned char *)s;
    if (n == 0)
        return 0;
    if (p[0] < 0x80) {
        *cp = p[0];
        return 1;
    }
    int len = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : p[0] >= 0xc2 ? 2 : 0;
    if (len == 0 || p[0] > 0xf4 || (size_t)len > n)
        return 0;
    uint32_t c = p[0] & (0x7fu >> len);
    for (int i = 1; i < len; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (p[i] & 0x3fu);
    }
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (c < least[len] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
        return 0;
    *cp = c;
    return len;
}

bool text_valid_utf8(const char *s, size_t n)
{
    uint32_t cp;
    for (size_t i = 0; i < n;) {
        int len = text_decode(s + i, n - i, &cp);
        if (!len)
            return false;
        i += (size_t)len;
    }
    return true;
}

// Characters that change how their neighbours look without being seen themselves.
static bool is_format(uint32_t c)
{
    static const uint32_t ranges[][2] = {{0xad, 0xad},       {0x61c, 0x61c},     {0x180e, 0x180e},
                                         {0x200b, 0x200f},   {0x2028, 0x202e},   {0x2060, 0x206f},
                                         {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},   {0xfff9, 0xfffb},
                                         {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff}, {0xfdd0, 0xfdef}};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (c >= ranges[i][0] && c <= ranges[i][1])
            return true;
    return false;
}

void text_clean(struct str *out, const char *s, size_t n, enum text_mode mode)
{
    size_t line_start = out->len;
    for (size_t i = 0; i < n;) {
        uint32_t c = 0;
        int len = text_decode(s + i, n - i, &c);
        if (len == 0) {
            str_addf(out, "\\x%02x", (unsigned char)s[i]);
            i++;
            continue;
        }
        if (c == '\n' && mode == TEXT_BLOCK) {
            str_addc(out, '\n');
            line_start = out->len;
        } else if (c == '\n') {
            str_add(out, "\\n");
        } else if (c == '\t') {
            do
                str_addc(out, ' ');
            while (mode == TEXT_BLOCK && (out->len - line_start) % 8);
        } else if (c < 0x20 || c == 0x7f) {
            str_addf(out, "^%c", (char)(c ^ 0x40));
        } else if (c < 0xa0 && c >= 0x80) {
            str_addf(out, "\\x%02x", c);
        } else if (is_format(c)) {
            str_addf(out, "<U+%04X>", c);
        } else {
            str_addn(out, s + i, (size_t)len);
        }
        i += (size_t)len;
    }
}
