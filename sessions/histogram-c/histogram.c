// Counts the values of N bytes. Equal neighbours wait for each other: each count is read, raised and written.
void histogram(int *count, const unsigned char *x, int N)
{
    for (int b = 0; b < 256; b++)
        count[b] = 0;
    for (int i = 0; i < N; i++)
        count[x[i]]++;
}
