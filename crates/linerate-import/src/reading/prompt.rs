//! Recognises prompts of shells, and the commands after them.

use super::is_one_of;

/// The command in a line that begins with the prompt of a shell.
pub(crate) fn command(line: &str) -> Option<&str> {
    let line = line.trim();
    // A prompt is short: `user@host:~/folder$ `, `[root@host ~]# `, `PS C:\> `.
    let is_prompt = |before: &str| before.len() <= 60 && before.split(' ').count() <= 3;
    let after = ["$ ", "# ", "> ", "% "].iter().find_map(|prompt| {
        let (before, command) = line.split_once(prompt)?;
        is_prompt(before).then_some(command)
    });
    // A prompt of Windows ends without a blank: `C:\>iperf3`.
    let of_windows = || {
        let (before, command) = line.split_once('>')?;
        let is_folder = before.is_empty() || before.contains(":\\");
        (is_folder && is_prompt(before) && program(command).is_some()).then_some(command)
    };
    let command = after.or_else(of_windows)?.trim();
    (!command.is_empty()).then_some(command)
}

/// Whether a line is certainly a prompt with a command: it names a user and a host, or has nothing before its sign.
/// Rows and comments of outputs, which [`command`] may take for prompts, are not accepted.
pub(super) fn is_prompt(line: &str) -> bool {
    let line = line.trim();
    if line.starts_with("$ ") || line.starts_with("PS ") && line.contains("> ") {
        return true;
    }
    let before = ["$ ", "# ", "% "].iter().find_map(|prompt| line.split_once(prompt));
    before.is_some_and(|(before, _)| {
        before.len() <= 60 && before.contains('@') && before.split(' ').count() <= 2
    })
}

/// Programs whose output can be read, so that a command with one of them begins a new run.
const PROGRAMS: &str = "iperf iperf2 iperf3 nuttcp netperf qperf sockperf ucx_perftest fi_pingpong ping ibping \
    mtr networkQuality fio dd diskspd hdparm rsync scp ss nstat netstat iostat mpstat \
    nfsiostat multipath mpirun mpiexec srun ethtool ibstat ibv_devinfo lspci numactl lscpu \
    mlxlink perfquery ibqueryerrors nvme sysctl lsblk lsusb nproc nfsstat mount ifconfig \
    dmesg";
/// Starts of the names of further programs whose output can be read.
const FAMILIES: &[&str] =
    &["ib_write_", "ib_read_", "ib_send_", "ib_atomic_", "raw_ethernet_", "osu_", "IMB-"];
/// Programs that run the program after them; the words between may be their own options.
const WRAPPERS: &str =
    "sudo env time numactl taskset ip nice chrt stdbuf timeout mpirun mpiexec srun";
/// Largest number of words before the program.
const MOST_BEFORE: usize = 12;

/// The command in a line that runs a program whose output can be read. It follows a prompt, or has an option.
pub(crate) fn run(line: &str) -> Option<&str> {
    if let Some(command) = command(line).filter(|command| program(command).is_some()) {
        return Some(command);
    }
    // `set -x` of a shell writes `+ ` before a command.
    let line = line.trim().trim_start_matches('+').trim_start();
    let words = || line.split_whitespace();
    let is_option = |word: &str| {
        let rest = word.trim_start_matches('-');
        rest.len() < word.len() && rest.starts_with(|c: char| c.is_ascii_alphanumeric())
            || word.contains("=/")
    };
    // Rows of outputs and sentences begin with other characters.
    let starts = line.starts_with(|c: char| c.is_ascii_alphabetic() || c == '.' || c == '/');
    let is_setting =
        |word: &str| word.contains('=') && word.starts_with(|c: char| c.is_ascii_uppercase());
    let is_name =
        |word: &str| program(word).is_some() || is_one_of(WRAPPERS, word) || is_setting(word);
    (starts
        && words().next().is_some_and(is_name)
        && words().skip(1).any(is_option)
        && program(line).is_some())
    .then_some(line)
}

/// The name of the program that a command runs, without its folder, and without programs that only start it.
pub(crate) fn program(command: &str) -> Option<&str> {
    let name = |word: &'_ str| -> Option<usize> {
        let start = word.rfind(['/', '\\']).map_or(0, |at| at + 1);
        let name = word[start..].trim_end_matches(".exe");
        let is_known =
            is_one_of(PROGRAMS, name) || FAMILIES.iter().any(|start| name.starts_with(start));
        is_known.then_some(start)
    };
    let first = command.split_whitespace().next()?;
    let is_wrapper = is_one_of(WRAPPERS, first) || first.contains('=');
    let most = if is_wrapper { MOST_BEFORE } else { 1 };
    let known = || command.split_whitespace().take(most).filter(|word| name(word).is_some());
    let inner = known().find(|word| !is_one_of(WRAPPERS, word)).or_else(|| known().next())?;
    Some(inner[name(inner)?..].trim_end_matches(".exe"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_runs_a_known_program_is_a_run() {
        for (line, runs) in [
            ("root@gw:~# iperf3 -c 192.0.2.1", Some("iperf3")),
            ("[ops@n1 ~]$ sudo numactl -N 0 ib_write_bw -d mlx5_0", Some("ib_write_bw")),
            ("PS C:\\> .\\iperf3.exe -c 192.0.2.1", Some("iperf3")),
            ("iperf3 -c 192.0.2.1 -u -b 200M", Some("iperf3")),
            ("LD_PRELOAD=x taskset -c 8 ./osu_bw -m 4", Some("osu_bw")),
            ("dd if=/mnt/a of=/dev/null bs=1M", Some("dd")),
            ("$ nproc", Some("nproc")),
            // Lines of outputs, and sentences, are not commands.
            ("iperf Done.", None),
            ("iperf 3.18 (cJSON 1.7)", None),
            ("ping is fine", None),
            ("fio-3.28", None),
            ("# Size      Bandwidth (MB/s)", None),
            ("iperf3 says this - and nothing else", None),
            ("[  5] local 192.0.2.1 port 1 connected to 192.0.2.2 port 2", None),
        ] {
            assert_eq!(run(line).and_then(program), runs, "{line}");
        }
    }

    #[test]
    fn a_prompt_has_a_command() {
        assert_eq!(command("user@host:~$ ibstat mlx4_0"), Some("ibstat mlx4_0"));
        assert_eq!(command("[root@host ~]# lspci -vv"), Some("lspci -vv"));
        assert_eq!(command("$ ethtool eth0"), Some("ethtool eth0"));
        assert_eq!(command("PS C:\\> Get-NetAdapter"), Some("Get-NetAdapter"));
        assert_eq!(command(" #bytes #iterations"), None);
        assert_eq!(command("the price in this shop is 5 $ a piece"), None);
    }
}
