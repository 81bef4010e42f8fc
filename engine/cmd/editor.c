#include "cmd/editor.h"

#include "base/str.h"
#include "base/vec.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

const char *editor_name(void)
{
    const char *names[] = {getenv("KSMITH_EDITOR"), getenv("VISUAL"), getenv("EDITOR")};
    for (size_t i = 0; i < countof(names); i++)
        if (names[i] && *names[i])
            return names[i];
    return "vi";
}

__attribute__((noreturn)) static void child(const char *path)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGINT, SIG_DFL);
    signal(SIGQUIT, SIG_DFL);
    char *script = xasprintf("%s \"$@\"", editor_name());
    execlp("sh", "sh", "-c", script, "editor", path, (char *)NULL);
    _exit(127);
}

int editor_open(const char *path, struct err *e)
{
    int status = 0;
    fflush(NULL);
    // Ctrl-C is the editor's.
    void (*interrupt)(int) = signal(SIGINT, SIG_IGN), (*quit)(int) = signal(SIGQUIT, SIG_IGN);
    pid_t pid = fork();
    if (pid == 0)
        child(path);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    signal(SIGINT, interrupt);
    signal(SIGQUIT, quit);
    if (pid < 0)
        return err_sys(e, "", "cannot start %s", editor_name());
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return err_set(e, ERR_FAIL, "Set EDITOR to one that works here.", "%s ended with status %d",
                       editor_name(), WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    return 0;
}
