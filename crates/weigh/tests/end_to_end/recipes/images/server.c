
#include <arpa/inet.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
static void end(int number) { _exit(0); }
static void *serve(void *given) {
    static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello\n";
    int client = (int)(long)given;
    char buffer[4096];
    while (read(client, buffer, sizeof buffer) > 0)
        if (write(client, answer, sizeof answer - 1) < 0) break;
    close(client);
    return 0;
}
int main(int count, char **words) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY)};
    int one = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
    signal(SIGTERM, end);
    at.sin_port = htons(atoi(count > 1 ? words[1] : getenv("PORT")));
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener, (void *)&at, sizeof at) || listen(listener, 128)) return 1;
    for (;;) {
        pthread_t thread;
        pthread_create(&thread, 0, serve, (void *)(long)accept(listener, 0, 0));
        pthread_detach(thread);
    }
}
