/* A native server with a known appetite for malloc, to be linked with musl: it keeps MIB allocated and answers each
 * request with two bytes.
 *
 * Arguments: PORT MIB.
 */
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CONNECTIONS_MAX = 64, MIB = 1 << 20, PIECE = 64 << 10 };

int main(int arguments, char **argument) {
    static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    if (arguments != 3) {
        return 2;
    }
    for (int i = 0; i < atoi(argument[2]) * (MIB / PIECE); i++) {
        char *piece = malloc(PIECE);
        if (!piece) {
            return 3;
        }
        memset(piece, 0x6b, PIECE);
    }
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(argument[1]))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    struct pollfd polled[CONNECTIONS_MAX + 1] = {{.fd = socket(AF_INET, SOCK_STREAM, 0), .events = POLLIN}};
    int on = 1, count = 1;
    setsockopt(polled[0].fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(polled[0].fd, (struct sockaddr *)&address, sizeof address) || listen(polled[0].fd, CONNECTIONS_MAX)) {
        return 4;
    }
    while (poll(polled, count, -1) > 0) {
        /* Local requests arrive in one piece. */
        for (int i = count - 1; i > 0; i--) {
            char request[4096];
            if (polled[i].revents && (read(polled[i].fd, request, sizeof request) <= 0 ||
                                      write(polled[i].fd, answer, sizeof answer - 1) < 0)) {
                close(polled[i].fd);
                polled[i] = polled[--count];
            }
        }
        if (polled[0].revents && count <= CONNECTIONS_MAX) {
            polled[count++] = (struct pollfd){.fd = accept(polled[0].fd, NULL, NULL), .events = POLLIN};
        }
    }
    return 5;
}
