//! Capabilities: a command has none and can get none.

use std::io;

use rustix::io::Errno;
use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set, remove_capability_from_bounding_set, set_capabilities,
    set_no_new_privs,
};

/// Gives up every capability, for whatever is executed as well.
pub fn drop_all() -> io::Result<()> {
    set_no_new_privs(true)?;
    for one in CapabilitySet::all().iter() {
        match remove_capability_from_bounding_set(one) {
            // Who has no rights cannot give up that of getting some; but no program gives any from here on. And an older
            // kernel knows fewer of them.
            Ok(()) | Err(Errno::PERM | Errno::INVAL) => {}
            Err(why) => return Err(why.into()),
        }
    }
    clear_ambient_capability_set()?;
    let none = CapabilitySet::empty();
    Ok(set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?)
}
