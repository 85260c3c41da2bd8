/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two jobs meet, talk and part.
 *
 *   meet serve FILE   writes the name of its MPI port into the file
 *   meet visit FILE   connects to the port that the file names, once it is there
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LONG_BYTES (1 << 20)
#define WORD 42
#define WAIT_S 30

static void fail(const char *what)
{
    (void)fprintf(stderr, "meet: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static MPI_Comm serve(const char *path)
{
    char port[MPI_MAX_PORT_NAME], draft[4096];
    MPI_Comm visitor;
    MPI_Open_port(MPI_INFO_NULL, port);
    (void)snprintf(draft, sizeof draft, "%s.draft", path);
    FILE *file = fopen(draft, "w");
    if (file == NULL || fputs(port, file) < 0 || fclose(file) != 0 || rename(draft, path) != 0)
        fail("cannot write the name of the port");
    MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &visitor);
    return visitor;
}

static MPI_Comm visit(const char *path)
{
    char port[MPI_MAX_PORT_NAME];
    MPI_Comm server;
    FILE *file = NULL;
    for (int i = 0; i < WAIT_S * 100 && (file = fopen(path, "r")) == NULL; i++)
        (void)usleep(10000);
    if (file == NULL || fgets(port, sizeof port, file) == NULL)
        fail("nobody has opened a port");
    (void)fclose(file);
    MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &server);
    return server;
}

static char data[LONG_BYTES];

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    if (argc != 3)
        fail("usage: meet serve|visit FILE");
    int word = 0;
    MPI_Comm other = strcmp(argv[1], "serve") == 0 ? serve(argv[2]) : visit(argv[2]);
    if (strcmp(argv[1], "serve") == 0) {
        MPI_Recv(&word, 1, MPI_INT, 0, 0, other, MPI_STATUS_IGNORE);
        MPI_Recv(data, LONG_BYTES, MPI_CHAR, 0, 1, other, MPI_STATUS_IGNORE);
        if (word != WORD || data[0] != WORD || data[LONG_BYTES - 1] != WORD)
            fail("a message is not what was sent");
    } else {
        word = WORD;
        memset(data, WORD, LONG_BYTES);
        MPI_Send(&word, 1, MPI_INT, 0, 0, other);
        MPI_Send(data, LONG_BYTES, MPI_CHAR, 0, 1, other);
    }
    MPI_Comm_disconnect(&other);
    (void)printf("met by %s\n", argv[1]);
    MPI_Finalize();
    return 0;
}
