//! The CPUs that process packets of a port after their reception: `rps_cpus` of each receive queue.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use linerate_facts::parse::link;
use rustix::io::Errno;
use rustix::net::netdevice::name_to_index;

use super::host::{socket, text};
use crate::netlink::Socket;
use crate::{Query, invalid};

/// Most receive queues of a port that is changed; a port with more is unsupported.
const QUEUES_MAX: usize = 64;

/// Returns the port's folder in sysfs, if it belongs to this network namespace. A /sys that was mounted in another
/// namespace shows that namespace's ports: they may have the same names and indices, but not the same MAC addresses. A
/// port without a MAC address cannot be identified.
pub(super) fn folder(root: &Path, port: &str) -> io::Result<PathBuf> {
    let index = name_to_index(socket()?, port)?;
    let reply = Socket::open(None)?.ask(&Query::Link(index))?;
    let folder = root.join("sys/class/net").join(port);
    let line = |file| text(&folder.join(file)).map(|text| text.trim().to_owned());
    let (number, address) = (line("ifindex")?, line("address")?);
    for found in link::parse(&reply) {
        let found = found.map_err(invalid)?;
        let octets: Vec<String> = found.address.iter().map(|o| format!("{o:02x}")).collect();
        let own = found.address.iter().any(|octet| *octet != 0);
        if own && found.index.to_string() == number && octets.join(":") == address {
            return Ok(folder);
        }
    }
    Err(Errno::NODEV.into())
}

/// Reads the mask of each receive queue, in order.
pub(super) fn read(folder: &Path) -> io::Result<Vec<u64>> {
    queues(folder)?.iter().map(|file| mask(file)).collect()
}

/// Writes one mask to each receive queue.
pub(super) fn write(folder: &Path, masks: &[u64]) -> io::Result<()> {
    let queues = queues(folder)?;
    if queues.len() != masks.len() {
        return Err(io::Error::other("its number of receive queues has changed"));
    }
    for (file, mask) in queues.iter().zip(masks) {
        let mut file = OpenOptions::new().write(true).truncate(true).open(file)?;
        file.write_all(format!("{mask:x}\n").as_bytes())?;
    }
    Ok(())
}

/// Lists the `rps_cpus` files of the receive queues, by queue number.
fn queues(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let folder = folder.join("queues");
    let mut numbers = Vec::new();
    for entry in fs::read_dir(&folder)? {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix("rx-"));
        numbers.extend(number.and_then(|n| n.parse::<u32>().ok()));
    }
    if numbers.is_empty() || numbers.len() > QUEUES_MAX {
        return Err(io::ErrorKind::Unsupported.into());
    }
    numbers.sort_unstable();
    let file = |n: &u32| folder.join(format!("rx-{n}/rps_cpus"));
    Ok(numbers.iter().map(file).collect())
}

/// Reads a mask such as `00000000,0000000c`: groups of 32 CPUs in hexadecimal, the highest group first. Fails if the
/// mask has a CPU above 31.
fn mask(file: &Path) -> io::Result<u64> {
    let other = || io::Error::new(io::ErrorKind::InvalidData, "a CPU mask with CPUs above 31");
    let text = text(file)?;
    let groups = text.trim().split(',');
    let groups: Result<Vec<u64>, _> = groups.map(|g| u64::from_str_radix(g, 16)).collect();
    match groups.map_err(|_| other())?.split_last() {
        Some((low, rest)) if rest.iter().all(|g| *g == 0) && u32::try_from(*low).is_ok() => {
            Ok(*low)
        }
        _ => Err(other()),
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    /// Makes a port with one receive queue per mask, and with a send queue that must be ignored.
    fn port(masks: &[&str]) -> TempDir {
        let dir = TempDir::new().unwrap();
        fs::create_dir_all(dir.path().join("queues/tx-0")).unwrap();
        for (n, mask) in masks.iter().enumerate() {
            let queue = dir.path().join(format!("queues/rx-{n}"));
            fs::create_dir(&queue).unwrap();
            fs::write(queue.join("rps_cpus"), format!("{mask}\n")).unwrap();
        }
        dir
    }

    #[test]
    fn masks_of_all_receive_queues_come_back_in_their_order() {
        let mut masks = ["0"; 12];
        masks[2] = "00000000,0000000c";
        masks[10] = "3";
        let dir = port(&masks);
        let mut read = vec![0; 12];
        (read[2], read[10]) = (12, 3);
        assert_eq!(super::read(dir.path()).unwrap(), read);
        write(dir.path(), &[10; 12]).unwrap();
        assert_eq!(super::read(dir.path()).unwrap(), [10; 12]);
        write(dir.path(), &read).unwrap();
        assert_eq!(super::read(dir.path()).unwrap(), read);
    }

    #[test]
    fn what_cannot_be_put_back_exactly_is_an_error() {
        assert!(read(port(&["1,00000000"]).path()).is_err());
        assert!(read(port(&["ffffffff"]).path()).is_ok());
        assert!(read(port(&["1ffffffff"]).path()).is_err());
        assert!(read(port(&[""]).path()).is_err());
        assert!(read(port(&[]).path()).is_err());
        let two = port(&["0", "0"]);
        assert!(write(two.path(), &[1]).is_err() && write(two.path(), &[1; 3]).is_err());
        assert_eq!(read(two.path()).unwrap(), [0, 0]);
    }
}
