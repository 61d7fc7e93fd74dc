
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
volatile unsigned long sink;
__attribute__((noinline)) void planted_hot_function(void) {
    for (unsigned long i = 0; i < 60000; i++) sink += i;
}
int main(int argc, char **argv) {
    const char *answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    int hot = argc > 2 && !strcmp(argv[2], "true");
    int l = socket(AF_INET, SOCK_STREAM, 0), one = 1, n = 1;
    setsockopt(l, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1]))};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(l, (void *)&a, sizeof a) || listen(l, 100)) return 1;
    struct pollfd fds[512] = {{.fd = l, .events = POLLIN}};
    char buf[8192];
    for (;;) {
        poll(fds, n, -1);
        for (int i = n - 1; i > 0; i--) {
            if (!fds[i].revents) continue;
            if (read(fds[i].fd, buf, sizeof buf) <= 0) {
                close(fds[i].fd);
                fds[i] = fds[--n];
                continue;
            }
            if (hot) planted_hot_function();
            if (write(fds[i].fd, answer, strlen(answer)) < 0) continue;
        }
        if (fds[0].revents && n < 512) {
            int c = accept(l, 0, 0);
            if (c >= 0) fds[n++] = (struct pollfd){.fd = c, .events = POLLIN};
        }
    }
}
