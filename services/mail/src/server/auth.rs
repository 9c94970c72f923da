//! The dialogue of AUTH: PLAIN and LOGIN (RFC 4954, RFC 4616).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// How far it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Auth {
    /// PLAIN: its one response is to come.
    Plain,
    /// LOGIN: the name is to come.
    Name,
    /// LOGIN: the password is to come.
    Password(String),
}

/// What follows from a response.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// The client is asked for more, by this challenge in base64.
    Challenge(&'static str, Auth),
    /// Name and password.
    Check(String, String),
    /// The client gives up.
    Cancelled,
    /// It is not a response of this mechanism.
    Wrong,
}

impl Auth {
    /// A mechanism with the initial response that may have come with it.
    pub fn begin(mechanism: &str, initial: Option<&str>) -> Option<Step> {
        let initial = initial.map(|text| if text == "=" { "" } else { text });
        Some(match (mechanism, initial) {
            ("PLAIN", Some(text)) => Auth::Plain.respond(text),
            ("PLAIN", None) => Step::Challenge("", Auth::Plain),
            ("LOGIN", Some(text)) => Auth::Name.respond(text),
            // "Username:", "Password:".
            ("LOGIN", None) => Step::Challenge("VXNlcm5hbWU6", Auth::Name),
            _ => return None,
        })
    }
    /// A response.
    pub fn respond(self, text: &str) -> Step {
        if text == "*" {
            return Step::Cancelled;
        }
        let Some(text) = STANDARD.decode(text).ok().and_then(|octets| String::from_utf8(octets).ok()) else {
            return Step::Wrong;
        };
        match self {
            Auth::Plain => {
                let mut parts = text.split('\0');
                match (parts.next(), parts.next(), parts.next(), parts.next()) {
                    // Nobody may act for somebody else.
                    (Some(acts_as), Some(user), Some(password), None)
                        if acts_as.is_empty() || acts_as == user =>
                    {
                        Step::Check(user.to_owned(), password.to_owned())
                    }
                    _ => Step::Wrong,
                }
            }
            Auth::Name => Step::Challenge("UGFzc3dvcmQ6", Auth::Password(text)),
            Auth::Password(user) => Step::Check(user, text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// spec: RFC4616 §2, RFC4954 §4
    #[test]
    fn plain_and_login() {
        let check = Step::Check("ada".into(), "pass".into());
        let plain = STANDARD.encode("\0ada\0pass");
        assert_eq!(Auth::begin("PLAIN", Some(&plain)), Some(Step::Check("ada".into(), "pass".into())));
        assert_eq!(Auth::begin("PLAIN", None), Some(Step::Challenge("", Auth::Plain)));
        assert_eq!(Auth::Plain.respond(&STANDARD.encode("eve\0ada\0pass")), Step::Wrong);
        assert_eq!(Auth::Plain.respond("*"), Step::Cancelled);
        assert_eq!(Auth::Plain.respond("%%%"), Step::Wrong);
        let Some(Step::Challenge(_, name)) = Auth::begin("LOGIN", None) else { panic!() };
        let Step::Challenge(_, password) = name.respond(&STANDARD.encode("ada")) else { panic!() };
        assert_eq!(password.respond(&STANDARD.encode("pass")), check);
        assert_eq!(Auth::begin("CRAM-MD5", None), None);
    }
}
