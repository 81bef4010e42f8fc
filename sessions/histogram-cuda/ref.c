// The oracle. Integers stay integers.
void histogram_ref(int *count, const unsigned char *x, int N)
{
    for (int b = 0; b < 256; b++)
        count[b] = 0;
    for (int i = 0; i < N; i++)
        count[x[i]] += 1;
}
