//! Commands that switch a port's negotiation of speed and duplex on, and restore the old state.

use super::{Duplex, Nic};
use crate::advice::{Advice, Kept};
use linerate_plan::path::Side;
use linerate_units::shell::word;

impl Nic {
    /// Advice that switches negotiation on. If a part of the old state is unknown, a step saves it first.
    pub fn negotiate(&self, host: Option<Side>, what: &str) -> Advice {
        let name = word(&self.name);
        let set = |to: &str| format!("sudo ethtool -s {name} autoneg {to}");
        let advice = Advice::new(what);
        let fixed = self.link.speed.filter(|_| self.link.autoneg == Some(false));
        let Some((speed, duplex)) = fixed.zip(self.link.duplex) else {
            return advice.keeping(host, kept(&name), set("on"));
        };
        let duplex = match duplex {
            Duplex::Half => "half",
            Duplex::Full => "full",
        };
        let old = format!("off speed {} duplex {duplex}", speed.0 / 1_000_000);
        advice.set(host, set("on")).undo_on(host, set(&old))
    }

    /// Advice to offer all modes that the port supports: `autoneg on` does this if no mode, speed or duplex is given.
    //= ethtool, netlink/settings.c, nl_sset_compat_linkmodes; undo: ethtool 5.6 or later
    pub(crate) fn offer_all(&self, what: &str) -> Advice {
        let name = word(&self.name);
        let withheld = self.link.withheld().map(|mode| format!(" {} off", word(mode)));
        let withheld: String = withheld.collect();
        Advice::new(what)
            .set(None, format!("sudo ethtool -s {name} autoneg on"))
            .undo_on(None, format!("sudo ethtool -s {name} advertise{withheld}"))
    }
}

/// Commands that save the link's settings as `ethtool` shows them, and restore them. Settings that `ethtool` does not
/// show stay as they are.
fn kept(name: &str) -> Kept {
    const OLD: &str = "$1 ~ /Speed/ && $2 + 0 {s = \" speed \" $2 + 0} \
                       $1 ~ /Duplex/ && /Half|Full/ {d = \" duplex \" tolower($2)} \
                       $1 ~ /Auto-neg/ {a = $2} \
                       END {print \"autoneg\", a == \"off\" ? a s d : \"on\"}";
    Kept {
        save: format!("ethtool {name} | tee link-before.txt"),
        restore: format!("sudo ethtool -s {name} $(awk -F': *' '{OLD}' link-before.txt)"),
    }
}
