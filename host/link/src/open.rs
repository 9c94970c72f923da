//! Opens the driver that a SPEC describes.

use crate::spec::SERIAL_MTU_BYTES;
use crate::{
    Driver, Faults, Framing, Handover, Kept, Kind, OpenError, Serial, SerialConfig, SerialOffer, Spec,
    Tunnel, TunnelConfig,
};

/// Default MTU of TUN and TAP devices.
const TUNNEL_MTU_BYTES: usize = 1500;

/// The serial line that `spec` describes. An end without an IPv4 address asks for one, where the framing can.
fn serial(spec: &Spec) -> SerialConfig {
    let own = spec.addresses.iter().find(|own| own.address().is_ipv4()).copied();
    SerialConfig {
        path: spec.device.clone(),
        baud: spec.baud,
        framing: spec.framing,
        mtu_bytes: spec.mtu_bytes.unwrap_or(SERIAL_MTU_BYTES),
        offer: spec.offer.zip(own).map(|(address, own)| SerialOffer { address, own }),
        ask: spec.framing == Framing::Llp && own.is_none(),
        noise: spec.noise,
        seed: spec.faults.seed,
    }
}

/// The TUN or TAP device that `spec` describes.
fn tunnel(spec: &Spec) -> TunnelConfig {
    TunnelConfig {
        name: spec.device.clone(),
        ethernet: spec.kind == Kind::Tap,
        mtu_bytes: spec.mtu_bytes.unwrap_or(TUNNEL_MTU_BYTES),
        host_addresses: spec.host_addresses.clone(),
        offload: spec.offload,
        multi_queue: false,
    }
}

/// Opens the device that `spec` names, with its faults around it. The kinds `user` and `memory` have none.
pub fn open(spec: &Spec) -> Result<Box<dyn Driver>, OpenError> {
    let driver: Box<dyn Driver> = match spec.kind {
        Kind::Tap | Kind::Tun => Box::new(Tunnel::open(tunnel(spec))?),
        Kind::Serial => Box::new(Serial::open(serial(spec))?),
        Kind::User | Kind::Memory => return Err(OpenError::NoDevice(spec.kind)),
    };
    Ok(Faults::around(driver, spec.faults))
}

/// Takes over the TUN or TAP device that `spec` names, with its faults around it; see [`Driver::hand_over`].
///
/// # Errors
/// When the system refuses a step, or when the kind is another one.
pub fn take_over(spec: &Spec, handover: Handover, kept: Kept) -> Result<Box<dyn Driver>, OpenError> {
    match spec.kind {
        Kind::Tap | Kind::Tun => {
            let tunnel = Tunnel::take_over(tunnel(spec), handover, kept)?;
            Ok(Faults::around(Box::new(tunnel), spec.faults))
        }
        Kind::Serial | Kind::User | Kind::Memory => Err(OpenError::NoDevice(spec.kind)),
    }
}
