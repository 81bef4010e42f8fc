#include <stdio.h>

int main(void)
{
    puts("ksmith " KSMITH_VERSION);
    return 0;
}
