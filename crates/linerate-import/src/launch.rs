//! Finds in a command the hosts at which a launcher of parallel programs (`mpirun`, `mpiexec`, `srun`) starts
//! processes.

use crate::reading::{option, program};

/// Starts of the names of launchers.
const LAUNCHERS: &[&str] = &["mpirun", "mpiexec", "orterun", "prun"];
/// Options of Open MPI, MPICH and Intel MPI that are followed by a list of hosts.
const HOSTS: &[&str] = &["--host", "-host", "-H", "-hosts", "--hosts"];
/// Options that are followed by the number of processes.
const PROCESSES: &[&str] = &["-np", "-n", "--np", "-c"];
/// Starts of options that spread the processes over the hosts in turn, or with a fixed number at each.
const SPREAD: &[&str] = &[
    "--map-by",
    "-map-by",
    "--rank-by",
    "-ppn",
    "--ppn",
    "-perhost",
    "-npernode",
    "--npernode",
    "-N",
    "-bynode",
    "--bynode",
    "-pernode",
    "--pernode",
];
/// Names that a host uses for itself.
const ITSELF: &[&str] = &["localhost", "127.0.0.1", "::1", "ip6-localhost"];

/// Largest number of hosts that are kept.
const MOST: usize = 64;
/// Longest name of a host, in bytes.
const MOST_NAME: usize = 255;

/// The hosts of the processes, each once; empty if the command does not show them.
pub(crate) fn hosts(command: &str) -> Vec<String> {
    let is_launcher = |word: &str| {
        let name = word.rsplit('/').next().unwrap_or(word);
        LAUNCHERS.iter().any(|known| name.starts_with(known))
    };
    if !command.split_whitespace().any(is_launcher) {
        return Vec::new();
    }
    let Some(list) = option(command, HOSTS) else {
        return Vec::new();
    };
    let each: Vec<(&str, u32)> = list.split(',').filter_map(slots).take(MOST).collect();
    let processes = option(command, PROCESSES).and_then(|n| n.parse::<u32>().ok());
    let is_spread =
        command.split_whitespace().any(|word| SPREAD.iter().any(|known| word.starts_with(known)));
    // If no option spreads the processes, they fill the slots of the first host first.
    let filled = match (each.first(), processes) {
        (Some((_, slots)), Some(processes)) if !is_spread && *slots >= processes => 1,
        _ => each.len(),
    };
    let mut names: Vec<String> = Vec::new();
    for (name, _) in each.into_iter().take(filled) {
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    names
}

/// The words of a command up to a pipe, without the list of hosts.
pub(crate) fn without_hosts(command: &str) -> String {
    let mut words =
        command.split_whitespace().take_while(|word| !word.starts_with(['|', '>', ';', '&']));
    let mut kept: Vec<&str> = Vec::new();
    while let Some(word) = words.next() {
        if HOSTS.contains(&word) {
            words.next();
        } else if !HOSTS.iter().any(|name| is_joined(word, name)) {
            kept.push(word);
        }
        if kept.len() == MOST {
            break;
        }
    }
    kept.join(" ")
}

/// Whether an option has its value in the same word: `--host=a,b`.
fn is_joined(word: &str, name: &str) -> bool {
    name.starts_with("--") && word.strip_prefix(name).is_some_and(|rest| rest.starts_with('='))
}

/// Reads the name of a host and its number of slots: `node07:2`.
fn slots(text: &str) -> Option<(&str, u32)> {
    let (name, slots) = text.rsplit_once(':').unwrap_or((text, "1"));
    let (name, slots) = match slots.parse() {
        Ok(slots) => (name, slots),
        Err(_) => (text, 1),
    };
    is_name(name).then_some((name, slots))
}

fn is_name(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    !text.is_empty() && text.len() <= MOST_NAME && text.chars().all(is_part)
}

/// The only host of a test between a client and a server, if the client connects to itself: `ib_write_bw localhost`.
pub(crate) fn itself(command: &str) -> Vec<String> {
    let last = command.split_whitespace().last().unwrap_or("");
    let is_itself = ITSELF.contains(&last);
    is_itself.then(|| "localhost".to_owned()).into_iter().collect()
}

/// Longest command that is kept, in bytes.
const MOST_COMMAND: usize = 256;

/// A command from its program on, without the words before it that bind it to CPUs or nodes. Runs with the same
/// command differ only in where they ran.
pub(crate) fn behind(command: &str) -> String {
    let at = program(command).and_then(|name| command.find(name));
    let own = at.and_then(|at| command.get(at..)).unwrap_or_default();
    own.chars().take(MOST_COMMAND).filter(|c| !c.is_control()).collect()
}

/// The first CPU and the NUMA node to which `taskset` and `numactl` before a program bind it.
pub(crate) fn bound(command: &str) -> (Option<u32>, Option<u32>) {
    let first = |list: &str| list.split([',', '-']).next()?.parse::<u32>().ok();
    let has = |program: &str| {
        let mut words = command.split_whitespace();
        words.any(|word| word.rsplit('/').next() == Some(program))
    };
    let cpus: &[&str] = match (has("taskset"), has("numactl")) {
        (true, _) => &["-c", "--cpu-list"],
        (_, true) => &["-C", "--physcpubind"],
        _ => return (None, None),
    };
    let nodes = option(command, &["-N", "--cpunodebind"]).filter(|_| has("numactl"));
    (option(command, cpus).and_then(first), nodes.and_then(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_at_the_hosts_of_the_command() {
        for (command, expected) in [
            ("mpirun -np 2 --host c1:2 ./osu_bw", "c1"),
            ("mpirun -np 2 --host c1:1,c2:1 ./osu_bw", "c1 c2"),
            ("mpirun -np 2 -H c1,c2 osu_bw", "c1 c2"),
            ("mpirun -n 2 -H c1,c1 osu_bw", "c1"),
            ("/opt/mpi/bin/mpiexec -n 2 -hosts c1,c2 ./osu_bw", "c1 c2"),
            ("env X=1 mpirun --np 2 --host=c1,c2 osu_bw", "c1 c2"),
            ("mpirun -np 2 --host c1:2,c2:2 osu_bw", "c1"),
            ("mpirun -np 4 --host c1:2,c2:2 osu_bw", "c1 c2"),
            ("mpirun -np 2 --map-by node --host c1:2,c2:2 osu_bw", "c1 c2"),
            ("mpirun -np 2 -npernode 1 --host c1:2,c2:2 osu_bw", "c1 c2"),
            ("mpirun -np 2 ./osu_bw", ""),
            ("mpirun -np 2 --hostfile hosts ./osu_bw", ""),
            ("mpirun -np 2 --host $(rm) osu_bw", ""),
            ("ssh -H c1 osu_bw", ""),
        ] {
            assert_eq!(hosts(command).join(" "), expected, "{command}");
        }
    }

    #[test]
    fn runs_at_other_hosts_have_the_same_words() {
        for command in [
            "mpirun -np 2 -H c1,c2 osu_bw",
            "mpirun -np 2 --host=c3,c4 osu_bw | tee c3.txt",
            "mpirun  -np 2 -hosts c5,c6 osu_bw",
        ] {
            assert_eq!(without_hosts(command), "mpirun -np 2 osu_bw", "{command}");
        }
    }

    #[test]
    fn a_command_may_bind_its_program() {
        for (command, expected) in [
            ("taskset -c 8 ib_write_bw h", (Some(8), None)),
            ("sudo taskset --cpu-list 8-15 ib_write_bw h", (Some(8), None)),
            ("numactl -N 1 -m 1 ib_write_bw h", (None, Some(1))),
            ("numactl --cpunodebind=1 --membind=1 ib_write_bw h", (None, Some(1))),
            ("numactl -C 3,5 ib_write_bw h", (Some(3), None)),
            ("ib_write_bw -c RC h", (None, None)),
            ("taskset 0xf ib_write_bw h", (None, None)),
        ] {
            assert_eq!(bound(command), expected, "{command}");
        }
    }

    #[test]
    fn a_client_may_name_itself() {
        assert_eq!(itself("ib_write_bw -d mlx5_0 localhost"), ["localhost"]);
        assert_eq!(itself("ib_write_bw -d mlx5_0 c2"), [""; 0]);
    }
}
