// The sandbox program of every pod of the local cluster: sleeps until it is told to end, and reaps
// the processes that it inherits.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void End(int signal_number) {
  (void)signal_number;
  _exit(0);
}

static void Reap(int signal_number) {
  (void)signal_number;
  while (waitpid(-1, NULL, WNOHANG) > 0) {
  }
}

int main(void) {
  signal(SIGINT, End);
  signal(SIGTERM, End);
  signal(SIGCHLD, Reap);
  for (;;) pause();
}
