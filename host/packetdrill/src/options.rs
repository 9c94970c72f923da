//! `getsockopt` and `setsockopt`.

use crate::completions::{SOF_KNOWN, SOF_OPT_ID};
use crate::flags::Profile;
use crate::memory::{self, Lent};
use crate::socket::{Socket, State};
use crate::world::{World, call};
use crate::{info, sysctl};
use core::ffi::{c_int, c_void};
use inhost_base::Duration;
use inhost_event::TcpState;
use inhost_socket::SendBuffer;
use inhost_stack::{ConnectionOption, KeepAlive, SocketOption, TcpConfig};
use inhost_tcp::{CongestionChoice, Info};
use libc::{EINVAL, ENOPROTOOPT, SOL_SOCKET, SOL_TCP, socklen_t};

/// The control message that tells what is still to be read.
pub(crate) const TCP_CM_INQ: c_int = 36;
const TCP_INQ: c_int = 36;
const SO_MEMINFO: c_int = 55;
const SO_ZEROCOPY: c_int = 60;
const TCP_CC_INFO: c_int = 26;
const TCP_FASTOPEN: c_int = 23;
const TCP_FASTOPEN_CONNECT: c_int = 30;
const TCP_FASTOPEN_KEY: c_int = 33;
const TCP_NOTSENT_LOWAT: c_int = 25;
/// The length of one key of cookies, and of one with its predecessor.
const KEY_BYTES: usize = 16;
const TWO_KEYS_BYTES: usize = 32;
/// The longest that TCP_LINGER2 may be.
const MOST_FIN_WAIT_2_SECONDS: i32 = 120;
/// The longest that TCP_SYNCNT may be.
const MOST_SYNS: i32 = 127;
/// The range of TCP_MAXSEG.
const LEAST_MSS: i32 = 88;
const MOST_MSS: i32 = 32_767;
/// The least that the receive buffer may be set to, as the kernel counts.
const LEAST_RECEIVE_BUFFER: usize = 2304;

/// Whether the peer has closed its side.
pub(crate) fn peer_has_closed(state: TcpState) -> bool {
    matches!(
        state,
        TcpState::CloseWait | TcpState::Closing | TcpState::LastAck | TcpState::TimeWait | TcpState::Closed
    )
}

pub(crate) unsafe extern "C" fn setsockopt(
    _: *mut c_void,
    fd: c_int,
    level: c_int,
    option: c_int,
    value: *const c_void,
    bytes: socklen_t,
) -> c_int {
    call(|world| {
        let value = Lent::new(value.cast_mut().cast(), bytes as usize)?;
        world.socket(fd)?;
        world.set_option(fd, level, option, value.bytes()).map(|()| 0)
    }) as c_int
}

/// The integer that most options are.
fn integer(value: &[u8]) -> Result<i32, i32> {
    let bytes = value.first_chunk::<4>().ok_or(EINVAL)?;
    Ok(i32::from_ne_bytes(*bytes))
}

impl World {
    fn set_option(&mut self, fd: c_int, level: c_int, option: c_int, value: &[u8]) -> Result<(), i32> {
        match level {
            SOL_SOCKET => self.set_socket_option(fd, option, value),
            SOL_TCP => self.set_tcp_option(fd, option, value),
            libc::SOL_IP | libc::SOL_IPV6 => self.set_ip_option(fd, level, option, value),
            _ => Err(ENOPROTOOPT),
        }
    }
    fn set_ip_option(&mut self, fd: c_int, level: c_int, option: c_int, value: &[u8]) -> Result<(), i32> {
        // One byte is enough to say any of them.
        let first = *value.first().ok_or(EINVAL)?;
        match (level, option) {
            // The whole octet; of it the two bits of ECN are not the application's.
            (libc::SOL_IP, libc::IP_TOS) | (libc::SOL_IPV6, libc::IPV6_TCLASS) => {
                self.set_on_connection(fd, SocketOption::DifferentiatedServices(first >> 2))
            }
            (libc::SOL_IP, libc::IP_TTL) | (libc::SOL_IPV6, libc::IPV6_UNICAST_HOPS) => {
                if first == 0 {
                    return Err(EINVAL);
                }
                self.set_on_connection(fd, SocketOption::HopLimit(Some(first)))
            }
            // The values are the same in both families.
            (libc::SOL_IP, libc::IP_MTU_DISCOVER) | (libc::SOL_IPV6, libc::IPV6_MTU_DISCOVER) => {
                match c_int::from(first) {
                    libc::IP_PMTUDISC_DONT => self.set_on_connection(fd, SocketOption::DontFragment(false)),
                    libc::IP_PMTUDISC_WANT | libc::IP_PMTUDISC_DO => {
                        self.set_on_connection(fd, SocketOption::DontFragment(true))
                    }
                    _ => Err(EINVAL),
                }
            }
            // Any address can be bound to here: the adapter learns it then.
            (libc::SOL_IP, libc::IP_FREEBIND) if first != 0 => Ok(()),
            _ => Err(ENOPROTOOPT),
        }
    }
    fn set_socket_option(&mut self, fd: c_int, option: c_int, value: &[u8]) -> Result<(), i32> {
        let socket = self.socket_mut(fd)?;
        match option {
            libc::SO_REUSEADDR => socket.options.reuse_address = integer(value)? != 0,
            libc::SO_LINGER => {
                let on = integer(value)?;
                let seconds = integer(value.get(4..).ok_or(EINVAL)?)?;
                socket.options.linger = (on != 0).then_some(seconds);
            }
            SO_ZEROCOPY => socket.options.zero_copy = integer(value)? != 0,
            libc::SO_TIMESTAMPING => {
                let flags = integer(value)? as u32;
                if flags & !SOF_KNOWN != 0 {
                    return Err(EINVAL);
                }
                let begins = flags & !socket.options.timestamping & SOF_OPT_ID != 0;
                socket.options.timestamping = flags;
                if begins {
                    self.descriptors_mut().completions_mut(fd)?.count_stamps_from_here();
                }
            }
            libc::SO_SNDBUF | libc::SO_SNDBUFFORCE => {
                let limit = SendBuffer::limit_of_option(integer(value)?.max(0) as usize);
                socket.options.send_buffer_bytes = Some(limit);
                if let Some(buffer) = &mut socket.send_buffer {
                    buffer.fix(limit);
                    return Ok(());
                }
                return self.pass_on(fd, SocketOption::SendBufferLimit(limit), |config| {
                    config.send_buffer_limit_bytes = limit;
                });
            }
            libc::SO_RCVBUF | libc::SO_RCVBUFFORCE => {
                let limit = (integer(value)?.max(0) as usize).saturating_mul(2).max(LEAST_RECEIVE_BUFFER);
                socket.options.receive_buffer_bytes = Some(limit);
                return self.pass_on(fd, SocketOption::ReceiveBufferLimit(limit), |config| {
                    config.receive_buffer_limit_bytes = limit;
                });
            }
            libc::SO_KEEPALIVE => {
                socket.options.keep_alive = integer(value)? != 0;
                let when = socket.options.keep_alive.then(|| socket.config.keep_alive.unwrap_or_default());
                return self.pass_on(fd, SocketOption::Tcp(ConnectionOption::KeepAlive(when)), |config| {
                    config.keep_alive = when
                });
            }
            _ => return Err(ENOPROTOOPT),
        }
        Ok(())
    }
    fn set_tcp_option(&mut self, fd: c_int, option: c_int, value: &[u8]) -> Result<(), i32> {
        let socket = self.socket_mut(fd)?;
        let options = &mut socket.options;
        match option {
            libc::TCP_NODELAY => {
                let nagle = integer(value)? == 0;
                return self.pass_on(fd, SocketOption::Tcp(ConnectionOption::Nagle(nagle)), |config| {
                    config.nagle = nagle
                });
            }
            libc::TCP_CORK => {
                options.cork = integer(value)? != 0;
                let on = options.cork;
                return self.set_on_connection(fd, SocketOption::Tcp(ConnectionOption::Cork(on)));
            }
            libc::TCP_MAXSEG => {
                let mss = integer(value)?;
                if mss != 0 && !(LEAST_MSS..=MOST_MSS).contains(&mss) {
                    return Err(EINVAL);
                }
                options.mss = (mss != 0).then_some(mss);
                if mss != 0 {
                    let limit = mss as u16;
                    return self.pass_on(
                        fd,
                        SocketOption::Tcp(ConnectionOption::MaxSegment(limit)),
                        |config| {
                            config.mss_limit_bytes = limit;
                        },
                    );
                }
            }
            TCP_NOTSENT_LOWAT => options.notsent_lowat = integer(value)? as u32,
            libc::TCP_USER_TIMEOUT => {
                let millis = integer(value)?;
                options.user_timeout_ms = millis;
                let limit = Duration::from_millis(u64::try_from(millis).map_err(|_| EINVAL)?);
                return self.pass_on(fd, SocketOption::Tcp(ConnectionOption::UserTimeout(limit)), |config| {
                    config.user_timeout = limit;
                });
            }
            libc::TCP_LINGER2 => {
                let seconds = integer(value)?.min(MOST_FIN_WAIT_2_SECONDS);
                options.fin_wait_2_seconds = seconds;
                let limit = match seconds {
                    // With no time at all.
                    ..0 => Duration::ZERO,
                    0 => TcpConfig::linux().fin_wait_2,
                    _ => Duration::from_secs(seconds.unsigned_abs().into()),
                };
                return self.pass_on(fd, SocketOption::Tcp(ConnectionOption::FinWait2(limit)), |config| {
                    config.fin_wait_2 = limit
                });
            }
            libc::TCP_SYNCNT => {
                let count = integer(value)?;
                if !(1..=MOST_SYNS).contains(&count) {
                    return Err(EINVAL);
                }
                options.syn_retries = Some(count);
                let retries = count as u8;
                return self.pass_on(
                    fd,
                    SocketOption::Tcp(ConnectionOption::SynRetries(retries)),
                    |config| {
                        config.syn_retries = retries;
                        // The kernel's undoubled time-outs are for its own count only.
                        config.syn_linear_timeouts = 0;
                    },
                );
            }
            libc::TCP_QUICKACK => {
                let on = integer(value)?;
                options.quick_acknowledgment = Some(on);
                return self.set_on_connection(
                    fd,
                    SocketOption::Tcp(ConnectionOption::QuickAcknowledgment(on != 0)),
                );
            }
            libc::TCP_DEFER_ACCEPT => {
                let seconds = integer(value)?;
                options.defer_accept = seconds;
                if let State::Listener(name) = socket.state {
                    let option = SocketOption::DeferAccept(defer_accept(seconds));
                    return self.set(name, option);
                }
            }
            TCP_FASTOPEN | TCP_FASTOPEN_CONNECT | TCP_FASTOPEN_KEY => {
                return self.set_fast_open(fd, option, value);
            }
            TCP_INQ => options.inquires = integer(value)? != 0,
            libc::TCP_CONGESTION => {
                let name = value.split(|&byte| byte == 0).next().unwrap_or_default();
                let name = core::str::from_utf8(name).map_err(|_| EINVAL)?;
                let choice = sysctl::congestion(name).ok_or(libc::ENOENT)?;
                let option = SocketOption::Tcp(ConnectionOption::Congestion(choice.clone()));
                return self.pass_on(fd, option, |config| config.congestion = choice);
            }
            libc::TCP_KEEPIDLE | libc::TCP_KEEPINTVL | libc::TCP_KEEPCNT => {
                return self.set_keep_alive(fd, option, integer(value)?);
            }
            _ => return Err(ENOPROTOOPT),
        }
        Ok(())
    }
    fn set_fast_open(&mut self, fd: c_int, option: c_int, value: &[u8]) -> Result<(), i32> {
        let socket = self.socket_mut(fd)?;
        let is_connection = matches!(socket.state, State::Connection(_));
        match option {
            TCP_FASTOPEN_CONNECT => {
                let on = integer(value)?;
                if !(0..=1).contains(&on) || (is_connection && sysctl::fast_open().client) {
                    return Err(EINVAL);
                }
                if socket.profile == Profile::Linux && !sysctl::fast_open().client {
                    return Err(libc::EOPNOTSUPP);
                }
                socket.options.fast_open_connect = on != 0;
                return Ok(());
            }
            TCP_FASTOPEN_KEY => {
                if !matches!(value.len(), KEY_BYTES | TWO_KEYS_BYTES) {
                    return Err(EINVAL);
                }
                socket.options.fast_open_key = value.to_vec();
            }
            _ => {
                let queue = integer(value)?;
                if queue < 0 || is_connection {
                    return Err(EINVAL);
                }
                socket.options.fast_open_queue = queue;
            }
        }
        let State::Listener(name) = socket.state else { return Ok(()) };
        if let Some((key, previous)) = self.socket(fd)?.fast_open_keys() {
            self.tcp_mut().set_fast_open_keys(key, previous);
        }
        let (queue, _) = self.socket(fd)?.fast_open();
        let option = SocketOption::FastOpenQueue(queue);
        self.set(name, option)
    }
    fn set_keep_alive(&mut self, fd: c_int, option: c_int, value: i32) -> Result<(), i32> {
        let count = u64::try_from(value).ok().filter(|&count| count > 0).ok_or(EINVAL)?;
        let socket = self.socket_mut(fd)?;
        let mut when = socket.config.keep_alive.unwrap_or_default();
        match option {
            libc::TCP_KEEPIDLE => when.idle = Duration::from_secs(count),
            libc::TCP_KEEPINTVL => when.interval = Duration::from_secs(count),
            _ => when.probes = count.min(127) as u8,
        }
        let when: Option<KeepAlive> = socket.options.keep_alive.then_some(when);
        self.pass_on(fd, SocketOption::Tcp(ConnectionOption::KeepAlive(when)), |config| {
            config.keep_alive = when
        })
    }
    /// Sets what a connection has no configuration of: on the one that there is, or on the one that will be.
    fn set_on_connection(&mut self, fd: c_int, option: SocketOption) -> Result<(), i32> {
        let socket = self.socket_mut(fd)?;
        match socket.stack_socket() {
            Some(name) => self.set(name, option),
            None => {
                let kind = core::mem::discriminant(&option);
                socket.pending.retain(|other| core::mem::discriminant(other) != kind);
                socket.pending.push(option);
                Ok(())
            }
        }
    }
    /// Gives the connection or listener of a socket that was fresh what was set on it before.
    pub fn set_pending(&mut self, fd: c_int) -> Result<(), i32> {
        let socket = self.socket_mut(fd)?;
        let Some(name) = socket.stack_socket() else { return Ok(()) };
        for option in std::mem::take(&mut socket.pending) {
            // A listener has no cork, and nothing else for which it is the wrong kind.
            let _ = self.set(name, option);
        }
        Ok(())
    }
    /// Sets what the connection will begin with, and changes the connection that there is.
    fn pass_on(
        &mut self,
        fd: c_int,
        option: SocketOption,
        begin: impl FnOnce(&mut TcpConfig),
    ) -> Result<(), i32> {
        let socket = self.socket_mut(fd)?;
        begin(&mut socket.config);
        match socket.stack_socket() {
            Some(name) => self.set(name, option),
            None => Ok(()),
        }
    }
}

/// How long a connection without data waits to be accepted.
pub(crate) fn defer_accept(seconds: i32) -> Option<Duration> {
    u64::try_from(seconds).ok().filter(|&seconds| seconds > 0).map(Duration::from_secs)
}

/// `getsockopt`, for the table and for those who go past it.
pub(crate) unsafe extern "C" fn getsockopt(
    _: *mut c_void,
    fd: c_int,
    level: c_int,
    option: c_int,
    value: *mut c_void,
    bytes: *mut socklen_t,
) -> c_int {
    call(|world| {
        world.socket(fd)?;
        let room = memory::read(bytes)? as usize;
        let answer = world.option(fd, level, option)?;
        let fits = room.min(answer.len());
        let mut target = Lent::new(value.cast(), fits)?;
        target.bytes_mut().copy_from_slice(&answer[..fits]);
        memory::write(bytes, fits as socklen_t).map(|()| 0)
    }) as c_int
}

impl World {
    /// The value of an option, as its bytes.
    fn option(&mut self, fd: c_int, level: c_int, option: c_int) -> Result<Vec<u8>, i32> {
        if (level, option) == (SOL_SOCKET, libc::SO_ERROR) {
            let number = self.take_error(fd)?.unwrap_or(0);
            return Ok(number.to_ne_bytes().to_vec());
        }
        let socket = self.socket(fd)?;
        let tcp = socket.connection().and_then(|name| self.tcp(name));
        let number = match (level, option) {
            (SOL_SOCKET, SO_MEMINFO) => return Ok(info::memory(socket, tcp.as_ref())),
            (SOL_TCP, libc::TCP_INFO) => return Ok(info::connection(socket, tcp.as_ref(), self.now())),
            (SOL_TCP, TCP_CC_INFO) => return Ok(Vec::new()),
            (SOL_TCP, libc::TCP_CONGESTION) => return Ok(congestion_name(&socket.config.congestion)),
            (SOL_TCP, TCP_FASTOPEN_KEY) => return Ok(socket.options.fast_open_key.clone()),
            (SOL_SOCKET, libc::SO_LINGER) => {
                let mut answer = i32::from(socket.options.linger.is_some()).to_ne_bytes().to_vec();
                answer.extend(socket.options.linger.unwrap_or(0).to_ne_bytes());
                return Ok(answer);
            }
            (SOL_SOCKET, option) => socket_number(socket, option)?,
            (SOL_TCP, option) => tcp_number(socket, tcp.as_ref(), option)?,
            _ => return Err(ENOPROTOOPT),
        };
        Ok(number.to_ne_bytes().to_vec())
    }
}

fn socket_number(socket: &Socket, option: c_int) -> Result<i32, i32> {
    let options = &socket.options;
    Ok(match option {
        libc::SO_REUSEADDR => options.reuse_address.into(),
        libc::SO_KEEPALIVE => options.keep_alive.into(),
        libc::SO_SNDBUF => options.send_buffer_bytes.unwrap_or(socket.config.send_buffer_limit_bytes) as i32,
        libc::SO_RCVBUF => {
            options.receive_buffer_bytes.unwrap_or(socket.config.receive_buffer_limit_bytes) as i32
        }
        libc::SO_TYPE => libc::SOCK_STREAM,
        libc::SO_PROTOCOL => libc::IPPROTO_TCP,
        libc::SO_ACCEPTCONN => matches!(socket.state, State::Listener(_)).into(),
        SO_ZEROCOPY => options.zero_copy.into(),
        _ => return Err(ENOPROTOOPT),
    })
}

fn tcp_number(socket: &Socket, tcp: Option<&Info>, option: c_int) -> Result<i32, i32> {
    let options = &socket.options;
    Ok(match option {
        libc::TCP_NODELAY => i32::from(!socket.config.nagle),
        libc::TCP_CORK => options.cork.into(),
        libc::TCP_MAXSEG => match (tcp, options.mss) {
            (Some(tcp), _) if tcp.state != TcpState::Closed => i32::from(tcp.send_segment_bytes),
            (_, Some(mss)) => mss,
            _ => info::DEFAULT_MSS,
        },
        TCP_NOTSENT_LOWAT => options.notsent_lowat as i32,
        libc::TCP_USER_TIMEOUT => options.user_timeout_ms,
        libc::TCP_LINGER2 => match options.fin_wait_2_seconds {
            0 => TcpConfig::linux().fin_wait_2.as_secs() as i32,
            seconds => seconds.max(-1),
        },
        libc::TCP_SYNCNT => options.syn_retries.unwrap_or(6),
        libc::TCP_QUICKACK => options.quick_acknowledgment.unwrap_or(1),
        libc::TCP_DEFER_ACCEPT => options.defer_accept,
        TCP_FASTOPEN => options.fast_open_queue,
        TCP_FASTOPEN_CONNECT => options.fast_open_connect.into(),
        TCP_INQ => options.inquires.into(),
        libc::TCP_KEEPIDLE => socket.config.keep_alive.unwrap_or_default().idle.as_secs() as i32,
        libc::TCP_KEEPINTVL => socket.config.keep_alive.unwrap_or_default().interval.as_secs() as i32,
        libc::TCP_KEEPCNT => i32::from(socket.config.keep_alive.unwrap_or_default().probes),
        _ => return Err(ENOPROTOOPT),
    })
}

/// The name of a congestion control in the sixteen bytes that C gives it.
fn congestion_name(choice: &CongestionChoice) -> Vec<u8> {
    let name = match choice {
        CongestionChoice::Cubic | CongestionChoice::CubicInSegments => "cubic",
        CongestionChoice::NewReno => "reno",
        CongestionChoice::Custom(_) => "custom",
    };
    let mut bytes = name.as_bytes().to_vec();
    bytes.resize(16, 0);
    bytes
}
