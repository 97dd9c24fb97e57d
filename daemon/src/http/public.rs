//! Which addresses are out on the internet. Everything else is this machine, its neighbours, or no place at all. Pure.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Ranges of IPv4 that are not global unicast, or that belong to whoever runs the machine.
const V4: [([u8; 4], u32); 17] = [
    ([0, 0, 0, 0], 8),
    ([10, 0, 0, 0], 8),
    ([100, 64, 0, 0], 10),
    ([127, 0, 0, 0], 8),
    // Azure's own services for a machine there.
    ([168, 63, 129, 16], 32),
    ([169, 254, 0, 0], 16),
    ([172, 16, 0, 0], 12),
    ([192, 0, 0, 0], 24),
    ([192, 0, 2, 0], 24),
    ([192, 88, 99, 0], 24),
    ([192, 168, 0, 0], 16),
    ([198, 18, 0, 0], 15),
    ([198, 51, 100, 0], 24),
    ([203, 0, 113, 0], 24),
    ([224, 0, 0, 0], 4),
    ([240, 0, 0, 0], 4),
    ([255, 255, 255, 255], 32),
];
/// The part of IPv6 that is given out.
const V6: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);
/// Ranges in it that are not global unicast: protocols (Teredo, benchmarks, ORCHID), documentation.
const V6_NOT: [(Ipv6Addr, u32); 3] = [
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

/// Tells whether an address is global unicast, and so is an IPv4 address that it stands for.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(one) => v4(one),
        IpAddr::V6(one) => inner(one).map_or_else(|| v6(one), v4),
    }
}

fn v4(one: Ipv4Addr) -> bool {
    let is_in = |(range, bits): &([u8; 4], u32)| {
        let rest = 32 - bits;
        one.to_bits() >> rest == u32::from_be_bytes(*range) >> rest
    };
    !V4.iter().any(is_in)
}

fn v6(one: Ipv6Addr) -> bool {
    let is_in = |(range, bits): &(Ipv6Addr, u32)| one.to_bits() >> (128 - bits) == range.to_bits() >> (128 - bits);
    // ISATAP: the way into an IPv4 network, whatever stands before it.
    let tunnels = matches!(one.segments()[4..6], [0 | 0x200, 0x5efe]);
    is_in(&V6) && !V6_NOT.iter().any(is_in) && !tunnels
}

/// Returns the IPv4 address that an IPv6 address leads to: mapped, compatible, by NAT64 or 6to4.
fn inner(one: Ipv6Addr) -> Option<Ipv4Addr> {
    let v4 = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    match one.segments() {
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => {
            Some(v4(high, low))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::is_public;

    fn check(addresses: &str, expected: bool) {
        for address in addresses.split_whitespace() {
            assert_eq!(is_public(address.parse().unwrap()), expected, "{address}");
        }
    }

    #[test]
    fn the_internet() {
        check("1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0", true);
        check("169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 192.0.1.0 192.0.3.0 192.167.255.255", true);
        check("192.169.0.0 198.17.255.255 198.20.0.0 203.0.112.255 203.0.114.0 223.255.255.255 168.63.129.17", true);
        check("2606:4700:4700::1111 2a00:1450:4001::1 2001:4860:4860::8888 2001:200::1 2003::1 3ffe::1", true);
        check("::ffff:8.8.8.8 ::8.8.8.8 64:ff9b::8.8.8.8 2002:808:808::1", true);
    }

    #[test]
    fn this_machine_and_its_neighbours() {
        check("0.0.0.0 0.1.2.3 127.0.0.1 127.1.2.3 127.255.255.255 10.0.0.1 10.255.255.255", false);
        check("172.16.0.1 172.31.255.255 192.168.0.1 100.64.0.1 100.127.255.255 169.254.0.1", false);
        check(":: ::1 fe80::1 febf::1 fec0::1 fc00::1 fdff::1", false);
    }

    #[test]
    fn metadata_of_clouds() {
        check("169.254.169.254 169.254.170.2 100.100.100.200 192.0.0.192 168.63.129.16 fd00:ec2::254", false);
        check("::ffff:169.254.169.254 64:ff9b::a9fe:a9fe 2002:a9fe:a9fe::1 fd20:ce::254", false);
    }

    #[test]
    fn no_places_at_all() {
        check("192.0.0.1 192.0.2.1 192.88.99.1 198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1", false);
        check("224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255", false);
        check("ff02::1 ff0e::1 100::1 2001:db8::1 2001:2::1 2001:10::1 2001:20::1 3fff::1 5f00::1 4000::1", false);
    }

    #[test]
    fn ways_around() {
        check("::ffff:127.0.0.1 ::ffff:10.0.0.1 ::127.0.0.1 ::ffff:0:127.0.0.1 ::ffff:0.0.0.0", false);
        check(
            "64:ff9b::7f00:1 64:ff9b:1::7f00:1 64:ff9b:1::8.8.8.8 2002:7f00:1:: 2002:a00:1::1 2002:c0a8:101::",
            false,
        );
        check("2001::1 2001:0:4136:e378:8000:63bf:3fff:fdd2", false);
        check("2a00:1450::5efe:7f00:1 2a00:1450::200:5efe:808:808", false);
    }
}
