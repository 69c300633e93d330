/* A rank of Open MPI for bench/collective.py: for each line "bytes calls" of its pipe (argv[1] and
 * the rank), runs so many all-reduces of float32 in a row; rank 0 prints the milliseconds of one.
 * Between lines it waits in read(2), as MPI's waits would use a core. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int wrong(const float* data, int count, int world) {
  int bad = 0;
  for (int i = 0; i < count; ++i) bad += data[i] != (float)world * (float)(i % 1024);
  return bad;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, world = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world);
  char path[4096];
  snprintf(path, sizeof path, "%s%d", argv[1], rank);
  FILE* lines = fopen(path, "r");
  long bytes = 0;
  int calls = 0;
  while (lines != NULL && fscanf(lines, "%ld %d", &bytes, &calls) == 2) {
    const int count = (int)(bytes / (long)sizeof(float));
    float* data = malloc((size_t)bytes);
    for (int i = 0; i < count; ++i) data[i] = (float)(i % 1024);
    MPI_Allreduce(MPI_IN_PLACE, data, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    if (wrong(data, count, world)) {
      fprintf(stderr, "Open MPI gave a wrong sum\n");
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (int i = 0; i < count; ++i) data[i] = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    const double begun = MPI_Wtime();
    for (int i = 0; i < calls; ++i) {
      MPI_Allreduce(MPI_IN_PLACE, data, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    }
    const double seconds = MPI_Wtime() - begun;
    free(data);
    if (rank == 0) {
      printf("%.9f\n", seconds * 1e3 / calls);
      fflush(stdout);
    }
  }
  MPI_Finalize();
  return 0;
}
