//! Whether a command only reads. What a model proposes is shown as a command only then: somebody will paste it.

/// Programs that only read, whatever their arguments.
const READERS: &[&str] = &[
    "cat",
    "df",
    "dig",
    "dmesg",
    "du",
    "egrep",
    "free",
    "grep",
    "head",
    "host",
    "id",
    "iostat",
    "jq",
    "journalctl",
    "last",
    "ls",
    "lsblk",
    "lscpu",
    "lsof",
    "mpstat",
    "mtr",
    "netstat",
    "nproc",
    "nslookup",
    "oncall",
    "pidstat",
    "ping",
    "promtool",
    "ps",
    "sar",
    "sort",
    "ss",
    "stat",
    "tail",
    "top",
    "traceroute",
    "uniq",
    "uptime",
    "vmstat",
    "wc",
    "whoami",
    "zcat",
    "zgrep",
];
/// Options that make a reader write or erase.
const WRITING_OPTIONS: &[&str] =
    &["--vacuum-size", "--vacuum-time", "--vacuum-files", "--rotate", "--flush", "-c", "--clear", "-C", "--read-clear"];
/// Programs whose subcommands decide, with the ones that read.
const SUBCOMMANDS: &[(&str, &[&str])] = &[
    ("kubectl", &["get", "describe", "logs", "top", "events", "explain", "version", "cluster-info", "api-resources"]),
    ("kubectl rollout", &["history", "status"]),
    ("kubectl auth", &["can-i", "whoami"]),
    ("systemctl", &["status", "show", "list-units", "is-active", "is-failed", "list-timers", "cat"]),
    ("docker", &["ps", "logs", "inspect", "stats", "images", "version", "info", "top"]),
    ("crictl", &["ps", "logs", "inspect", "stats", "images", "pods"]),
    ("helm", &["list", "history", "status", "get"]),
    ("redis-cli", &["info", "ping", "slowlog", "dbsize", "ttl", "exists", "type", "llen", "memory"]),
    ("openssl", &["x509", "s_client", "verify"]),
    ("chronyc", &["tracking", "sources", "sourcestats"]),
    ("timedatectl", &["status", "show", "timesync-status"]),
    ("ip", &["addr", "route", "link", "neigh"]),
    ("nginx", &["-t", "-T", "-v", "-V"]),
    ("kafka-consumer-groups", &["--describe", "--list"]),
    ("kafka-consumer-groups.sh", &["--describe", "--list"]),
];
/// Words that change something wherever they stand.
const WRITING_WORDS: &[&str] =
    &["set", "add", "del", "delete", "flush", "change", "replace", "reset", "--reset-offsets"];
/// Programs that send statements to a database.
const SQL: &[&str] = &["psql", "mysql", "mariadb", "clickhouse-client", "sqlite3"];
const READING_STATEMENTS: &[&str] = &["select", "show", "explain", "describe", "desc", "pragma table_info"];

/// Whether every program of a command line is known to only read. What is not known counts as writing.
pub(super) fn is_read_only(command: &str) -> bool {
    let command = command.trim();
    // Another command inside, or output into a file, could do anything.
    if command.is_empty() || command.contains(['`', '\n', ';']) || command.contains("$(") || command.contains("&&") {
        return false;
    }
    let Some(parts) = pipeline(command) else { return false };
    parts.iter().all(|words| program_reads(words))
}

/// The words of each program of a pipeline; `None` when a redirection or a mark outside quotes says it is more than that.
fn pipeline(command: &str) -> Option<Vec<Vec<String>>> {
    let (mut parts, mut words, mut word) = (Vec::new(), Vec::new(), String::new());
    let mut quote = None;
    for c in command.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), c) => word.push(c),
            (None, '\'' | '"') => quote = Some(c),
            (None, '>' | '<' | '&') => return None,
            (None, '|') => {
                words.push(std::mem::take(&mut word));
                parts.push(std::mem::take(&mut words));
            }
            (None, c) if c.is_whitespace() => words.push(std::mem::take(&mut word)),
            (None, c) => word.push(c),
        }
    }
    words.push(word);
    parts.push(words);
    parts.iter_mut().for_each(|words: &mut Vec<String>| words.retain(|word| !word.is_empty()));
    (quote.is_none()).then_some(parts)
}

fn program_reads(words: &[String]) -> bool {
    let mut words: &[String] = words;
    while words.first().is_some_and(|word| word == "sudo" || word == "watch") {
        words = &words[1..];
    }
    let Some((program, arguments)) = words.split_first() else { return false };
    match program.as_str() {
        "curl" | "wget" => is_plain_fetch(arguments),
        name if SQL.contains(&name) => statement(arguments).is_some_and(is_reading_statement),
        // Colour and count are no clearing; only these two programs have an option that is.
        "dmesg" | "journalctl" => {
            !arguments.iter().any(|word| WRITING_OPTIONS.contains(&word.split('=').next().unwrap_or(word)))
        }
        name if READERS.contains(&name) => true,
        name => subcommand_reads(name, arguments),
    }
}

fn subcommand_reads(program: &str, arguments: &[String]) -> bool {
    let plain: Vec<&String> = arguments.iter().filter(|word| !is_option_with_value(word)).collect();
    let Some((_, reading)) = SUBCOMMANDS.iter().find(|(name, _)| *name == program) else { return false };
    let first = plain.iter().find(|word| !word.starts_with('-') || reading.contains(&word.as_str()));
    let Some(first) = first else { return false };
    let nested = format!("{program} {first}");
    if SUBCOMMANDS.iter().any(|(name, _)| *name == nested) {
        let after = arguments.iter().position(|word| word == *first).map_or(0, |at| at + 1);
        return subcommand_reads(&nested, &arguments[after..]);
    }
    let writes = program != "kubectl" && plain.iter().any(|word| WRITING_WORDS.contains(&word.to_lowercase().as_str()));
    !writes && reading.contains(&first.to_lowercase().as_str())
}

/// `-n=prod`, `--namespace=prod`: no subcommand stands there.
fn is_option_with_value(word: &str) -> bool {
    word.starts_with('-') && word.contains('=')
}

fn is_plain_fetch(arguments: &[String]) -> bool {
    let writes = |word: &String| {
        ["-d", "-X", "-T", "-F", "-o", "-O"].iter().any(|option| word.starts_with(option) && !word.starts_with("--"))
            || [
                "--data",
                "--request",
                "--upload",
                "--form",
                "--json",
                "--output",
                "--post",
                "--method",
                "--remote-name",
            ]
            .iter()
            .any(|option| word.starts_with(option))
    };
    !arguments.iter().any(writes)
}

/// The statement that is given with `-c` or `-e`.
fn statement(arguments: &[String]) -> Option<&str> {
    let at =
        arguments.iter().position(|word| ["-c", "-e", "--command", "--execute", "--query"].contains(&word.as_str()))?;
    arguments.get(at + 1).map(String::as_str)
}

fn is_reading_statement(statement: &str) -> bool {
    let text = statement.trim().trim_end_matches('\\').to_lowercase();
    let writes = [
        "insert ",
        "update ",
        "delete ",
        "drop ",
        "alter ",
        "truncate ",
        " into ",
        "pg_terminate",
        "pg_cancel",
        "kill ",
    ]
    .iter()
    .any(|word| text.contains(word));
    READING_STATEMENTS.iter().any(|word| text.starts_with(word)) && !writes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_read_are_known() {
        for command in [
            "kubectl get pods -n shop -o wide",
            "kubectl -n=shop describe pod order-service-1",
            "kubectl rollout history deployment/order-service",
            "kubectl logs deploy/order-service --since=30m | grep -c timeout",
            "journalctl -u kubelet --since '10 min ago'",
            "psql -h db -c 'select count(*) from pg_stat_activity'",
            "mysql -e \"SHOW PROCESSLIST\"",
            "curl -s http://localhost:9090/-/healthy",
            "redis-cli INFO memory",
            "openssl s_client -connect pay:443",
            "oncall logs app.log",
            "sudo ss -s",
            "systemctl status chronyd",
            "df -h | sort -k5 | tail -3",
        ] {
            assert!(is_read_only(command), "{command}");
        }
    }

    #[test]
    fn commands_that_may_change_something_are_refused() {
        for command in [
            "",
            "kubectl delete pod x",
            "kubectl rollout restart deployment/x",
            "kubectl rollout undo deployment/x",
            "kubectl scale deploy x --replicas=3",
            "kubectl get pods; rm -rf /",
            "kubectl get pods && reboot",
            "kubectl get pods | xargs kubectl delete pod",
            "kubectl exec x -- sh",
            "echo $(reboot)",
            "cat x > /etc/passwd",
            "psql -c 'update t set a = 1'",
            "psql -c 'select pg_terminate_backend(1)'",
            "psql -c 'select 1; drop table t'",
            "psql -f x.sql",
            "curl -X POST http://localhost/-/reload",
            "curl -XDELETE http://es/_all",
            "curl --data x http://localhost",
            "redis-cli FLUSHALL",
            "redis-cli config set maxmemory 1",
            "systemctl restart nginx",
            "journalctl --vacuum-size=1G",
            "dmesg -C",
            "ip link set eth0 down",
            "docker rm x",
            "sudo reboot",
            "kafka-consumer-groups.sh --reset-offsets --describe",
            "kubectl",
            "cat 'unclosed",
        ] {
            assert!(!is_read_only(command), "{command}");
        }
    }
}
